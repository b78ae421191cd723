/* Purges: how often a pool is purged for one, and what they leave alone. */

#include "mysys/memdiag/purging/purge.h"

#include <atomic>
#include <thread>
#include <utility>

#include "mysys/memdiag/base/interruption.h"
#include "mysys/memdiag/pools/uncached.h"
#include "mysys/memdiag/purging/policies.h"
#include "mysys/memdiag/purging/purge_log.h"
#include "mysys/memdiag/unittest/purging/lone_purger.h"
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
  leave_pages_to_purges();
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

/** The pages of a statement that frees much go back, in whatever arenas they
are. Those of other arenas and the caches stay for other threads, and the log of
purges is as it was. */
FRESH_TEST(Purge, FreedBlocksGoBackAndNothingElse) {
  leave_pages_to_purges();
  constexpr Pool session = Pool::session;
  constexpr size_t size = 16 << 20;
  const auto arena_of = [](const void *block) {
    return mallctl::arena_of(block).value();
  };
  const auto in_caches = [] {
    EXPECT_EQ(0, mallctl::refresh());
    return sum_over<Ctl::stats_arena_small_allocated>(session);
  };
  stay_on_this_cpu();
  std::vector<void *> small;
  for (int i = 0; i < 200; ++i) small.push_back(pools::allocate(session, 900));
  void *const other = pools::allocate(session, size);
  const unsigned others_arena = arena_of(other);
  // While a thread is at work in the arena, a block comes from another one.
  const auto allocate_elsewhere = [others_arena](size_t bytes) {
    const pools::Arena_guard guard(session, pools::slot_of_arena(others_arena));
    return pools::allocate(session, bytes);
  };
  void *const own = allocate_elsewhere(size);
  const unsigned own_arena = arena_of(own);
  ASSERT_NE(others_arena, own_arena);
  (void)purging::purge(session);
  const uint64_t sequence = memdiag::purge_log::last_of(session)->sequence;

  purging::Freed_blocks blocks;
  blocks.add(own, size);
  blocks.add(small[0], 900);
  blocks.add(&blocks, size);  // not the allocator's
  for (void *const block : small) pools::free(session, block, 900);
  pools::free(session, other, size);
  pools::free(session, own, size);
  const uint64_t cached = in_caches();
  EXPECT_LT(0u, cached);
  blocks.give_back();
  EXPECT_EQ(0u, mallctl::arena_pages(own_arena).value().dirty_pages);
  EXPECT_LE(size / mallctl::read<Ctl::arenas_page>().value(),
            mallctl::arena_pages(others_arena).value().dirty_pages);
  EXPECT_EQ(cached, in_caches());
  EXPECT_EQ(sequence, memdiag::purge_log::last_of(session)->sequence);

  void *const more = allocate_elsewhere(2 * size);
  EXPECT_EQ(own_arena, arena_of(more));
  EXPECT_EQ(0u, purging::taken_again(session, sequence).value())
      << "that purge did not give these pages back";
  pools::free(session, more, 2 * size);
}

/** Others may need what its thread holds. */
FRESH_TEST(Purge, FreedBlocksDoNotWaitForAPurge) {
  constexpr Pool session = Pool::session;
  constexpr size_t size = 8 << 20;
  leave_pages_to_purges();
  void *const block = pools::allocate(session, size);
  const unsigned arena = mallctl::arena_of(block).value();
  purging::Freed_blocks blocks;
  blocks.add(block, size);
  pools::free(session, block, size);
  purging::hold_purges();
  std::thread([&blocks] { blocks.give_back(); }).join();
  purging::let_go_of_purges();
  EXPECT_LT(0u, mallctl::arena_pages(arena).value().dirty_pages);
  blocks.give_back();
  EXPECT_EQ(0u, mallctl::arena_pages(arena).value().dirty_pages);
}

/** A statement that was killed while it waited for another one's purge. */
FRESH_TEST(Purge, AnInterruptedOneHasNotHappened) {
  purging::purge(pool);
  const auto logged = memdiag::purge_log::last_of(pool)->sequence;
  const auto before = purging::counters(pool);
  const memdiag::Interruptible killed([](const void *) { return true; },
                                      nullptr);
  EXPECT_EQ(0u, purging::purge(pool).arenas);
  EXPECT_EQ(0u, purging::purge_all().arenas);
  EXPECT_EQ(logged, memdiag::purge_log::last_of(pool)->sequence);
  EXPECT_EQ(before.purges, purging::counters(pool).purges);
}

/** The arena that it did not come to is still one of the purge before. */
FRESH_TEST(Purge, OneThatIsInterruptedInTheMiddle) {
  leave_pages_to_purges();
  constexpr size_t size = 4 << 20;
  const auto allocate_in_two_arenas = [] {
    void *const own = pools::allocate(pool, size);
    const pools::Arena_guard guard(
        pool, pools::slot_of_arena(mallctl::arena_of(own).value()));
    return std::pair{own, pools::allocate(pool, size)};
  };
  const auto free_both = [](std::pair<void *, void *> blocks) {
    pools::free(pool, blocks.first, size);
    pools::free(pool, blocks.second, size);
  };
  free_both(allocate_in_two_arenas());
  ASSERT_EQ(2u, arenas_of_pool().size());
  EXPECT_EQ(2u, purging::purge(pool).arenas);
  const uint64_t first = memdiag::purge_log::last_of(pool)->sequence;
  const auto blocks = allocate_in_two_arenas();
  int questions_left = 2;  // before the purge, and before the first arena
  {
    const memdiag::Interruptible killed(
        [](const void *left) {
          return (*static_cast<int *>(const_cast<void *>(left)))-- <= 0;
        },
        &questions_left);
    EXPECT_EQ(1u, purging::purge(pool).arenas);
  }
  const uint64_t taken_bytes = purging::taken_again(pool, first).value();
  EXPECT_LE(size, taken_bytes);
  EXPECT_GT(2 * size, taken_bytes);
  free_both(blocks);
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
