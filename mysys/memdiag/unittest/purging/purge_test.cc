/* Purges: how often a pool is purged for one, and what they leave alone. */

#include "mysys/memdiag/purging/purge.h"

#include <atomic>
#include <thread>

#include "mysys/memdiag/purging/policies.h"
#include "mysys/memdiag/unittest/test.h"
#include "mysys/memdiag/upstream/hooks.h"

namespace memdiag_test {

namespace policies = memdiag::policies;
using memdiag::Policy;

uint64_t purge_passes(Pool of) {
  EXPECT_EQ(0, mallctl::refresh());
  return sum_over<Ctl::stats_arena_dirty_npurge>(of);
}

/** One pass over the arenas does, although as many pages are unused right
after it. */
FRESH_TEST(Purge, ABusyPoolIsPurgedOnce) {
  ASSERT_EQ("", policies::set(Policy::dirty_decay_ms, "all=-1"));
  std::atomic<bool> stop{false};
  std::atomic<unsigned> rounds{0};
  std::thread churn([&] {
    while (!stop) {
      std::vector<Block> live;
      for (int i = 0; i < 64; ++i) live.push_back(Block::make(64 << 10, 1));
      for (const Block &block : live) block.free();
      ++rounds;
      rounds.notify_one();
    }
  });
  rounds.wait(0);
  constexpr unsigned purges = 30;
  const uint64_t before = purge_passes(pool);
  for (unsigned i = 0; i < purges; ++i) {
    EXPECT_EQ(0, purging::purge(pool).error);
    rounds.wait(rounds.load());  // pages are unused again
  }
  const uint64_t passes = purge_passes(pool) - before;
  stop = true;
  churn.join();
  // Now and then more pages are freed than were given back, between the two
  // looks at an arena.
  EXPECT_LE(passes, 2 * purges * arenas_of_pool().size());
}

/** jemalloc's statistics are of all arenas, and stay as of the last refresh. */
FRESH_TEST(Purge, RefreshesNothingOfOtherPools) {
  const auto active_of_ddl = [] {
    return sum_over<Ctl::stats_arena_pactive>(Pool::ddl);
  };
  void *first = pools::allocate(Pool::ddl, 1 << 20);
  ASSERT_EQ(0, mallctl::refresh());
  const uint64_t before = active_of_ddl();
  void *second = pools::allocate(Pool::ddl, 1 << 20);
  Block::make(1 << 20, 1).free();
  const auto receipt = purging::purge(pool);
  EXPECT_EQ(0, receipt.error);
  EXPECT_GE(receipt.given_back_bytes(), uint64_t{1} << 20);
  EXPECT_EQ(0u, purging::dirty_bytes(pool).value());
  EXPECT_EQ(before, active_of_ddl());
  ASSERT_EQ(0, mallctl::refresh());
  EXPECT_LE(before + (1 << 20) / 4096, active_of_ddl());
  pools::free(Pool::ddl, first, 1 << 20);
  pools::free(Pool::ddl, second, 1 << 20);
}

/** Policies and routes change while the process forks: the child can change
them too. */
FRESH_TEST(Purge, AForkHoldsTheMutexesOfPoliciesAndRoutes) {
  if (!malloc_after_fork) GTEST_SKIP() << "the sanitizer's malloc() may hang";
  std::atomic<bool> stop{false};
  const auto change = [] {
    bool done = policies::set(Policy::quiet_ms, "all=500").empty();
    for (int i = 0; i < 100; ++i)
      (void)memdiag_note_instrument("test", "fork", 0);
    return done;
  };
  std::thread changes([&] {
    while (!stop) change();
  });
  for (int i = 0; i < 50; ++i)
    EXPECT_EQ(0, in_child([&change] { return change() ? 0 : 1; }));
  stop = true;
  changes.join();
}

}  // namespace memdiag_test
