/* Which of InnoDB's source files creates heaps in which pool. */

#include "../storage/innobase/memdiag_heap_routes.h"

#include <gtest/gtest.h>

#include <string>

namespace memdiag_test {

using memdiag::heap_pool;
using memdiag::Pool;

// At compile time, wherever the build tree is and however it names its files.
static_assert(heap_pool("/a/b/storage/innobase/fts/fts0que.cc") ==
              Pool::fts_query);
static_assert(heap_pool("fts/fts0que.cc") == Pool::fts_query);
static_assert(heap_pool("/fts0que.cc") == Pool::fts_query);

static_assert(heap_pool("") == Pool::general);
static_assert(heap_pool("/") == Pool::general);
static_assert(heap_pool("/a/fts0opt.cc") == Pool::general);
static_assert(heap_pool("/a/xfts0que.cc") == Pool::general);
static_assert(heap_pool("/a/fts0que.cc/b") == Pool::general);
static_assert(heap_pool("/a/fts0que.c") == Pool::general);
static_assert(heap_pool("/a/fts0que.h") == Pool::general);
static_assert(heap_pool(__FILE__) == Pool::general);

TEST(HeapRoutes, AtRunTimeToo) {
  const std::string path = "/build/storage/innobase/fts/fts0que.cc";
  EXPECT_EQ(Pool::fts_query, heap_pool(path.c_str()));
  for (size_t cut = 0; cut < path.size(); ++cut)
    EXPECT_EQ(Pool::general, heap_pool(path.substr(0, cut).c_str())) << cut;
}

TEST(HeapRoutes, EveryRouteLeadsToItsPool) {
  for (const auto &route : memdiag::heap_routes) {
    EXPECT_EQ(route.pool, heap_pool(route.file));
    EXPECT_EQ('/', route.file[0]);
    EXPECT_NE(Pool::general, route.pool);
  }
}

}  // namespace memdiag_test
