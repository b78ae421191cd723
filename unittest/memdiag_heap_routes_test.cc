/* Which of InnoDB's source files creates heaps in which pool. */

#include "../storage/innobase/memdiag_heap_routes.h"

#include <gtest/gtest.h>

#include <string>

#include "memdiag_routes.h"

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

/** As in rec_get_offsets(), which passes its own caller's on. */
TEST(HeapRoutes, AFileThatIsNoConstantIsNotLookedAt) {
  const std::string path = "/build/storage/innobase/fts/fts0que.cc";
  EXPECT_EQ(memdiag::pack_tag(static_cast<uint16_t>(Place::heap_other),
                              memdiag::Pool::transaction),
            memdiag::heap_tag(path.c_str()));
}

}  // namespace memdiag_test
