/* Which of InnoDB's source files creates heaps in which pool. */

#include "storage/innobase/memdiag/heap_routes.h"

#include <gtest/gtest.h>

#include <string>

#include "mysys/memdiag/routes/routes.h"
#include "mysys/memdiag/unittest/test.h"

namespace memdiag_test {

using memdiag::heap_place;
using memdiag::Place;

// At compile time, wherever the build tree is and however it names its files.
static_assert(heap_place("/a/b/storage/innobase/fts/fts0que.cc") ==
              Place::heap_fts_query);
static_assert(heap_place("fts/fts0que.cc") == Place::heap_fts_query);
static_assert(heap_place("fts0que.cc") == Place::heap_fts_query);
static_assert(heap_place("/a/fts0opt.cc") == Place::heap_fts);
static_assert(heap_place("/a/ddl0fts.cc") == Place::heap_ddl);
static_assert(heap_place("/a/row0sel.cc") == Place::heap_row);
static_assert(heap_place("/a/row0log.cc") == Place::heap_ddl);
static_assert(heap_place("/a/dict/mem.cc") == Place::heap_dictionary);

static_assert(heap_place("") == Place::heap_other);
static_assert(heap_place("/") == Place::heap_other);
static_assert(heap_place("/fts/btr0btr.cc") == Place::heap_other);
static_assert(heap_place("/a/xfts0que.cc") == Place::heap_other);
static_assert(heap_place(__FILE__) == Place::heap_other);

TEST(HeapRoutes, AtRunTimeToo) {
  const std::string path = "/build/storage/innobase/fts/fts0que.cc";
  EXPECT_EQ(Place::heap_fts_query, heap_place(path.c_str()));
  EXPECT_EQ(Place::heap_fts,
            heap_place(path.substr(0, path.size() - 1).c_str()));
}

TEST(HeapRoutes, EveryRouteLeadsToItsPlace) {
  for (const auto &route : memdiag::heap_routes)
    EXPECT_EQ(route.place, heap_place(route.begin_of_name))
        << route.begin_of_name;
}

TEST(HeapRoutes, TheTagIsThatOfThePlace) {
  EXPECT_EQ(memdiag::pack_tag(static_cast<uint16_t>(Place::heap_fts_query),
                              memdiag::Pool::fts_query),
            memdiag::heap_tag("fts0que.cc"));
}

constexpr memdiag::Packed_tag of_transactions(Place place) {
  return memdiag::pack_tag(static_cast<uint16_t>(place),
                           memdiag::Pool::transaction);
}

/** As in rec_get_offsets(), which passes its own caller's on. */
TEST(HeapRoutes, AFileThatIsNoConstantIsNotLookedAt) {
  const std::string path = "/build/storage/innobase/fts/fts0que.cc";
  EXPECT_EQ(of_transactions(Place::heap_other) | memdiag::only_large,
            memdiag::heap_tag(path.c_str()));
}

TEST(HeapRoutes, SmallHeapsOfRowsAreMallocsAndWhatTheyGrowByIsNot) {
  using memdiag::large_heap_block;
  using memdiag::tag_of_heap_block;
  const auto row = memdiag::heap_tag("row0upd.cc");
  EXPECT_EQ(0u, tag_of_heap_block(row, large_heap_block));
  EXPECT_EQ(of_transactions(Place::heap_row),
            tag_of_heap_block(row, large_heap_block + 1));
  const auto locks = memdiag::heap_tag("lock0lock.cc");
  EXPECT_EQ(of_transactions(Place::heap_transaction),
            tag_of_heap_block(locks, 100));
}

/** Every place's tag is marked from the start where its row says so. */
TEST(HeapRoutes, TagsAgreeWithTheTable) {
  for (size_t i = 0; i < memdiag::place_count; ++i) {
    if (static_cast<Place>(i) == Place::none) continue;
    const auto row = memdiag::routes::all()[i];
    const auto tag = memdiag::routes::tag_of_place(static_cast<Place>(i));
    EXPECT_EQ(row.larger_than != 0, (tag & memdiag::only_large) != 0)
        << row.name;
  }
}

/** An option that names the route pools all of its blocks. */
FRESH_TEST(HeapRoutes, AnOverrideTakesSmallOnesToo) {
  memdiag::routes::options.routes = "mem_heap/row=transaction";
  EXPECT_EQ("", memdiag::routes::apply_options());
  EXPECT_EQ(of_transactions(Place::heap_row), memdiag::heap_tag("row0upd.cc"));
}

}  // namespace memdiag_test
