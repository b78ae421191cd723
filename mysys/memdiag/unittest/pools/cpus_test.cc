/* Shards of CPUs, as many processors have them. */

#include "mysys/memdiag/pools/cpus.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <functional>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "mysys/memdiag/pools/shards.h"
#include "mysys/memdiag/pools/uncached.h"
#include "mysys/memdiag/purging/policies.h"
#include "mysys/memdiag/purging/purger.h"
#include "mysys/memdiag/unittest/pools/cpu_of_thread.h"
#include "mysys/memdiag/unittest/test.h"

namespace memdiag_test {

unsigned shard_on(int cpu) {
  cpu_of_thread = cpu;
  return pools::current_shard();
}

/** Run body(i) in a thread on each of the first CPUs, all at once.
@param body  is called again and again until all have begun */
template <typename Body>
void on_cpus(unsigned count, Body body) {
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < count; ++i)
    threads.emplace_back([i, &body] {
      cpu_of_thread = static_cast<int>(i);
      body(i);
    });
  for (std::thread &thread : threads) thread.join();
}

FRESH_TEST(Cpus, SparseOnesAreNumberedDensely) {
  const Allowed_cpus allowed({0, 8, 16, 24});
  EXPECT_EQ(4u, pools::allowed_cpus());
  EXPECT_EQ(4u * (1 + pools::stand_ins), pools::used_shards());
  EXPECT_EQ(0u, shard_on(0));
  EXPECT_EQ(1u, shard_on(8));
  EXPECT_EQ(2u, shard_on(16));
  EXPECT_EQ(3u, shard_on(24));
  // Those that the process may be moved to share the same four.
  for (const int outside : {1, 7, 25, 100, 3000, 100000})
    EXPECT_LT(shard_on(outside), 4u) << outside;
  EXPECT_EQ(0u, shard_on(-1));
}

FRESH_TEST(Cpus, SiblingsFarApartDoNotShare) {
  const Allowed_cpus allowed(first_cpus(128));
  EXPECT_NE(shard_on(1), shard_on(65));
  std::set<unsigned> shards;
  for (int cpu = 0; cpu < 128; ++cpu) shards.insert(shard_on(cpu));
  EXPECT_EQ(128u, shards.size());
}

FRESH_TEST(Cpus, MoreThanShardsShareEvenly) {
  const Allowed_cpus allowed(first_cpus(256));
  std::vector<unsigned> cpus_of(pools::max_shards);
  for (int cpu = 0; cpu < 256; ++cpu) ++cpus_of[shard_on(cpu)];
  for (const unsigned count : cpus_of)
    EXPECT_EQ(256 / pools::max_shards, count);
}

FRESH_TEST(Cpus, SmallBlocksOfEachCpuHaveAShardInEachPool) {
  constexpr unsigned cpus = 16;
  const Allowed_cpus allowed(first_cpus(cpus));
  for (size_t i = first_pool; i < memdiag::pool_count; ++i) {
    const Pool each = static_cast<Pool>(i);
    if (memdiag::spec_of(each).cached_max == 0) continue;
    on_cpus(cpus, [each](unsigned) {
      for (int n = 0; n < 2000; ++n)
        pools::free(each, pools::allocate(each, 100), 100);
    });
    EXPECT_EQ(0u, pools::counters(each).bypasses)
        << memdiag::pool_specs[i].name;
    EXPECT_EQ(0u, pools::counters(each).live_bytes);
    // At the same moment, too: none takes a stand-in.
    std::vector<std::unique_ptr<pools::Shard_lock>> locks;
    for (unsigned cpu = 0; cpu < cpus; ++cpu) {
      cpu_of_thread = static_cast<int>(cpu);
      locks.push_back(std::make_unique<pools::Shard_lock>(
          &pools::state_of(each), pools::current_shard()));
      EXPECT_TRUE(locks.back()->is_mine());
      EXPECT_EQ(cpu, locks.back()->shard()) << memdiag::pool_specs[i].name;
    }
  }
}

/** The arena of a block of the session pool. It is freed. */
unsigned arena_of_block(size_t size) {
  void *const block = pools::allocate(Pool::session, size, false, 7);
  const unsigned arena = mallctl::arena_of(block).value();
  pools::free(Pool::session, block, size, 7);
  return arena;
}

/** A thread that is interrupted within the shard's lock costs the others
nothing: they have a cache and an arena of their own. */
FRESH_TEST(Cpus, AStandInServesWhileTheShardIsTaken) {
  const Allowed_cpus allowed(first_cpus(2));
  auto &state = pools::state_of(Pool::session);
  std::set<unsigned> arenas{arena_of_block(100)};
  {
    const pools::Shard_lock first(&state, 0);
    EXPECT_EQ(0u, first.shard());
    arenas.insert(arena_of_block(100));
    const pools::Shard_lock second(&state, 0);
    EXPECT_EQ(2u, second.shard());
    arenas.insert(arena_of_block(100));
    const pools::Shard_lock third(&state, 0);
    EXPECT_EQ(4u, third.shard());
    arenas.insert(arena_of_block(100));
    EXPECT_EQ(4u, arenas.size());
    EXPECT_EQ(0u, pools::counters(Pool::session).bypasses);
    // All are interrupted: no cache, but no thread waits.
    const pools::Shard_lock fourth(&state, 0);
    EXPECT_EQ(6u, fourth.shard());
    EXPECT_FALSE(pools::Shard_lock(&state, 0).is_mine());
    arenas.insert(arena_of_block(100));
    EXPECT_EQ(4u, arenas.size());
    EXPECT_EQ(2u, pools::counters(Pool::session).bypasses);
    // Those of the other CPU are its own.
    EXPECT_EQ(1u, pools::Shard_lock(&state, 1).shard());
  }
  EXPECT_EQ(0u, pools::Shard_lock(&state, 0).shard());
  EXPECT_EQ(0u, pools::counters(Pool::session).live_bytes);
  EXPECT_EQ(0u, live_of(7).blocks);
  EXPECT_EQ(0u, live_of(7).bytes);
}

/** Counts pauses that end at once. The second one calls `then`. */
class Pauses {
 public:
  explicit Pauses(std::function<void()> then = [] {}) {
    number = 0;
    total_us = 0;
    second = std::move(then);
    memdiag::set_pause_for_test([](unsigned us) {
      total_us += us;
      errno = EINTR;
      if (++number == 2) second();
    });
  }
  ~Pauses() { memdiag::set_pause_for_test(nullptr); }
  Pauses(const Pauses &) = delete;
  Pauses &operator=(const Pauses &) = delete;

  static inline unsigned number;
  static inline unsigned total_us;

 private:
  static inline std::function<void()> second;
};

FRESH_TEST(Cpus, BlocksWithoutACacheHaveStandInsToo) {
  constexpr size_t size = 48 << 10;
  const Allowed_cpus allowed(first_cpus(2));
  std::set<unsigned> arenas{arena_of_block(size)};
  const pools::Arena_guard first =
      pools::Arena_guard::in_pool(Pool::session, 0);
  arenas.insert(arena_of_block(size));
  const pools::Arena_guard second =
      pools::Arena_guard::in_pool(Pool::session, 0);
  arenas.insert(arena_of_block(size));
  const pools::Arena_guard third =
      pools::Arena_guard::in_pool(Pool::session, 0);
  arenas.insert(arena_of_block(size));
  EXPECT_EQ(4u, arenas.size());
  const pools::Arena_guard fourth =
      pools::Arena_guard::in_pool(Pool::session, 0);
  EXPECT_TRUE(fourth.is_mine());
  const Pauses pauses;
  arenas.insert(arena_of_block(size));
  EXPECT_EQ(4u, arenas.size());
  EXPECT_FALSE(pools::Arena_guard::in_pool(Pool::session, 0).is_mine());
  // Small blocks do not see it.
  EXPECT_EQ(0u, pools::Shard_lock(&pools::state_of(Pool::session), 0).shard());
  EXPECT_EQ(0u, pools::counters(Pool::session).bypasses);
  EXPECT_EQ(0u, pools::counters(Pool::session).live_bytes);
}

uint64_t large_bytes(unsigned arena) {
  EXPECT_EQ(0, mallctl::refresh());
  return mallctl::read<Ctl::stats_arena_large_allocated>(arena).value();
}

/** A thread that is interrupted at work in an arena does not stop those that
give blocks back to it. */
FRESH_TEST(Cpus, ABlockIsLeftWithTheThreadThatIsAtWorkInItsArena) {
  constexpr size_t size = 48 << 10;
  const Allowed_cpus allowed(first_cpus(2));
  void *const blocks[] = {pools::allocate(Pool::session, size),
                          pools::allocate(Pool::session, size)};
  const unsigned arena = mallctl::arena_of(blocks[0]).value();
  const uint64_t before = large_bytes(arena);
  {
    const pools::Arena_guard guard(Pool::session, pools::slot_of_arena(arena));
    ASSERT_TRUE(guard.is_mine());
    for (void *block : blocks) pools::free(Pool::session, block, size);
    EXPECT_EQ(0u, pools::counters(Pool::session).live_bytes);
    EXPECT_EQ(before, large_bytes(arena));
  }
  EXPECT_EQ(before - 2 * memdiag::placed::usable(size), large_bytes(arena));
}

/** A thread that finds all arenas held does not queue for one of them: it takes
the first that becomes free. */
FRESH_TEST(Cpus, ABlockWithoutACacheWaitsForTheFirstFreeArena) {
  constexpr size_t size = 48 << 10;
  const Allowed_cpus allowed(first_cpus(2));
  std::unique_ptr<const pools::Arena_guard> held[4];
  for (auto &one : held)
    one.reset(
        new pools::Arena_guard(pools::Arena_guard::in_pool(Pool::session, 0)));
  const unsigned slot = held[2]->slot();
  const Pauses pauses([&] { held[2].reset(); });
  EXPECT_EQ(slot, pools::slot_of_arena(arena_of_block(size)));
  EXPECT_EQ(2u, Pauses::number);
}

/** An interrupted thread that takes or gives back a large block does not stop
others. */
FRESH_TEST(Cpus, LargeBlocksHaveStandInsToo) {
  const Allowed_cpus allowed(first_cpus(2));
  std::set<unsigned> slots;
  std::vector<std::unique_ptr<const pools::Arena_guard>> interrupted;
  const Pauses pauses;
  for (int i = 0; i < 4; ++i) {
    const unsigned slot =
        pools::slot_of_arena(arena_of_block(pools::large_size));
    slots.insert(slot);
    interrupted.emplace_back(new pools::Arena_guard(Pool::session, slot));
    ASSERT_TRUE(interrupted.back()->is_mine());
  }
  EXPECT_EQ(4u, slots.size());
  EXPECT_EQ(0u, Pauses::number);
}

/** Their arena would take new pages for each large block until the interrupted
thread goes on. */
FRESH_TEST(Cpus, LargeBlocksAreNotLeft) {
  const Allowed_cpus allowed(first_cpus(2));
  void *const block = pools::allocate(Pool::session, pools::large_size);
  const unsigned arena = mallctl::arena_of(block).value();
  const uint64_t before = large_bytes(arena);
  auto interrupted = std::make_unique<const pools::Arena_guard>(
      Pool::session, pools::slot_of_arena(arena));
  ASSERT_TRUE(interrupted->is_mine());
  const Pauses pauses([&] { interrupted.reset(); });
  errno = 0;
  pools::free(Pool::session, block, pools::large_size);
  EXPECT_EQ(0, errno);
  EXPECT_EQ(2u, Pauses::number);
  EXPECT_GT(before, large_bytes(arena));
}

/** The flag is only a hint. */
FRESH_TEST(Cpus, NoThreadPausesForMoreThanASecond) {
  const Allowed_cpus allowed(first_cpus(2));
  void *const block = pools::allocate(Pool::session, pools::large_size);
  const unsigned arena = mallctl::arena_of(block).value();
  const uint64_t before = large_bytes(arena);
  const pools::Arena_guard interrupted(Pool::session,
                                       pools::slot_of_arena(arena));
  ASSERT_TRUE(interrupted.is_mine());
  const Pauses pauses;
  pools::free(Pool::session, block, pools::large_size);
  EXPECT_GT(before, large_bytes(arena));
  EXPECT_LT(900'000u, Pauses::total_us);
  EXPECT_GT(1'100'000u, Pauses::total_us);
}

/** One thread does nearly everything then. */
FRESH_TEST(Cpus, NoThreadPausesWhileTheServerStarts) {
  const Allowed_cpus allowed(first_cpus(2));
  pools::share_one_arena(true);
  const unsigned arena = arena_of_block(pools::large_size);
  const pools::Arena_guard other(Pool::session, pools::slot_of_arena(arena));
  ASSERT_TRUE(other.is_mine());
  const Pauses pauses;
  EXPECT_EQ(arena, arena_of_block(pools::large_size));
  EXPECT_EQ(0u, Pauses::number);
  pools::share_one_arena(false);
}

/** Those without an account are of no use to listeners, with and without a
shard. */
FRESH_TEST(Cpus, BlocksOfAnAccountAreAnnouncedAlsoWithoutAShard) {
  const Allowed_cpus allowed(first_cpus(2));
  cpu_of_thread = 0;
  static int64_t announced[3];
  pools::set_block_listener(
      [](Pool owner, pools::Account account, int64_t bytes) noexcept {
        if (owner == Pool::session && account < std::size(announced))
          announced[account] += bytes;
      });
  const auto announced_by = [](pools::Account account) {
    std::fill(std::begin(announced), std::end(announced), 0);
    void *const block = pools::allocate(Pool::session, 100, false, account);
    const auto size = static_cast<int64_t>(memdiag::placed::usable(100));
    for (pools::Account each = 0; each < std::size(announced); ++each)
      EXPECT_EQ(each == account && each != 0 ? size : 0, announced[each]);
    const int64_t taken = announced[account];
    pools::free(Pool::session, block, 100, account);
    EXPECT_EQ(0, announced[account]);
    return taken;
  };
  auto &state = pools::state_of(Pool::session);
  for (const bool has_shard : {true, false}) {
    std::vector<std::unique_ptr<pools::Shard_lock>> locks;
    while (!has_shard && (locks.empty() || locks.back()->is_mine()))
      locks.push_back(std::make_unique<pools::Shard_lock>(&state, 0));
    const uint64_t bypasses = pools::counters(Pool::session).bypasses;
    EXPECT_EQ(0, announced_by(0));
    EXPECT_LT(0, announced_by(1));
    EXPECT_LT(0, announced_by(2));
    EXPECT_EQ(has_shard ? 0u : 6u,
              pools::counters(Pool::session).bypasses - bypasses);
  }
  pools::set_block_listener(nullptr);
}

/** A machine with many CPUs has no fewer arenas. */
FRESH_TEST(Cpus, BlocksWithoutACacheHaveFourArenasOnAnyMachine) {
  for (const unsigned cpus : {1u, 15u, 64u, 96u, 128u, 256u})
    for (const Pool pool : {Pool::fts_query, Pool::statement, Pool::innodb}) {
      const Allowed_cpus allowed(first_cpus(cpus));
      const Pauses pauses;
      const unsigned own = std::min(cpus, memdiag::pools::max_shards) - 1;
      std::set<unsigned> slots;
      std::vector<std::unique_ptr<const pools::Arena_guard>> interrupted;
      for (int i = 0; i < 4; ++i) {
        interrupted.emplace_back(
            new pools::Arena_guard(pools::Arena_guard::in_pool(pool, own)));
        slots.insert(interrupted.back()->slot());
      }
      EXPECT_EQ(4u, slots.size()) << cpus;
      EXPECT_EQ(0u, Pauses::number) << cpus;
    }
}

/** All allocations go to the first arena then, and can use those blocks. */
FRESH_TEST(Cpus, NothingStaysLeftWhileThereIsNoStandIn) {
  constexpr size_t size = 48 << 10;
  const Allowed_cpus allowed(first_cpus(2));
  void *const block = pools::allocate(Pool::session, size);
  const unsigned arena = mallctl::arena_of(block).value();
  const uint64_t before = large_bytes(arena);
  const pools::Arena_guard first =
      pools::Arena_guard::in_pool(Pool::session, 0);
  const pools::Arena_guard second =
      pools::Arena_guard::in_pool(Pool::session, 0);
  const pools::Arena_guard third =
      pools::Arena_guard::in_pool(Pool::session, 0);
  const pools::Arena_guard fourth =
      pools::Arena_guard::in_pool(Pool::session, 0);
  ASSERT_TRUE(fourth.is_mine());
  const Pauses pauses;
  pools::free(Pool::session, block, size);
  EXPECT_EQ(before, large_bytes(arena));
  EXPECT_FALSE(pools::Arena_guard::in_pool(Pool::session, 0).is_mine());
  EXPECT_GT(before, large_bytes(arena));
}

uint64_t small_bytes(unsigned arena) {
  EXPECT_EQ(0, mallctl::refresh());
  return mallctl::read<Ctl::stats_arena_small_allocated>(arena).value();
}

/** Threads with the locks of all four shards wait for an arena whose lock an
interrupted thread holds. No further thread waits with them. */
FRESH_TEST(Cpus, SmallBlocksWithoutATurnWaitForNoArena) {
  const Allowed_cpus allowed(first_cpus(2));
  auto &state = pools::state_of(Pool::session);
  constexpr size_t size = 8 << 10;
  void *const block = pools::allocate(Pool::session, size);
  const unsigned arena = mallctl::arena_of(block).value();
  const pools::Shard_lock first(&state, 0), second(&state, 0), third(&state, 0),
      fourth(&state, 0);
  ASSERT_TRUE(fourth.is_mine());
  uint64_t before;
  {
    const pools::Arena_guard interrupted(Pool::session,
                                         pools::slot_of_arena(arena));
    ASSERT_TRUE(interrupted.is_mine());
    EXPECT_NE(arena, arena_of_block(size));
    before = small_bytes(arena);
    pools::free(Pool::session, block, size);
    EXPECT_EQ(before, small_bytes(arena));
    EXPECT_EQ(0u, pools::counters(Pool::session).live_bytes);
  }
  EXPECT_EQ(before - memdiag::placed::usable(size), small_bytes(arena));
}

/** No block is lost, whichever thread looks first. */
FRESH_TEST(Cpus, BlocksThatAreLeftAreFreed) {
  const Allowed_cpus allowed(first_cpus(1));
  on_cpus(8, [](unsigned) {
    cpu_of_thread = 0;
    for (int round = 0; round < 2000; ++round) {
      const size_t size = round % 4 == 0 ? pools::large_size : 48 << 10;
      void *const block = pools::allocate(Pool::session, size);
      pools::free(Pool::session, block, size);
    }
  });
  EXPECT_EQ(0, mallctl::refresh());
  EXPECT_EQ(0u, sum_over<Ctl::stats_arena_large_allocated>(Pool::session));
  EXPECT_EQ(0u, pools::counters(Pool::session).live_bytes);
}

/** The locks of one arena cannot stop a CPU's shard and its stand-ins. */
FRESH_TEST(Cpus, AStandInHasAnotherArena) {
  for (unsigned cpus = 1; cpus <= 130; ++cpus) {
    const Allowed_cpus allowed(first_cpus(cpus));
    const pools::Stand_ins others = pools::stand_in_shards();
    for (size_t i = 0; i < memdiag::pool_count; ++i) {
      if (memdiag::pool_specs[i].arenas <= pools::stand_ins) continue;
      const auto pool = static_cast<Pool>(i);
      for (unsigned own = 0; own < others.distance; ++own) {
        std::set<unsigned> slots;
        size_t shards = 0;
        for (unsigned shard = own; shard < std::max(others.end, own + 1);
             shard += others.distance, ++shards)
          slots.insert(pools::slot_of_shard(pool, shard));
        ASSERT_EQ(shards, slots.size())
            << memdiag::pool_specs[i].name << ", " << own << " of " << cpus;
      }
    }
  }
}

unsigned arenas_of(Pool which) {
  unsigned count = 0;
  pools::for_each_arena(which, [&](unsigned) { ++count; });
  return count;
}

FRESH_TEST(Cpus, AllShareOneArenaWhileTheServerStarts) {
  constexpr unsigned cpus = 8;
  const Allowed_cpus allowed(first_cpus(cpus));
  pools::share_one_arena(true);
  const auto use = [](size_t size) {
    on_cpus(cpus, [size](unsigned) {
      pools::free(Pool::session, pools::allocate(Pool::session, size), size);
    });
  };
  use(100);
  EXPECT_EQ(1u, arenas_of(Pool::session));
  use(1 << 20);
  EXPECT_EQ(2u, arenas_of(Pool::session)) << "one more for large blocks";
  void *const early = pools::allocate(Pool::session, 100);
  pools::share_one_arena(false);
  use(100);
  EXPECT_EQ(cpus, arenas_of(Pool::session));
  pools::free(Pool::session, early, 100);
  EXPECT_EQ(0u, pools::counters(Pool::session).live_bytes);
}

FRESH_TEST(Cpus, LargeBlocksAreSpreadOverArenas) {
  const Allowed_cpus allowed(first_cpus(64));
  std::set<unsigned> arenas;
  for (int t = 0; t < 16; ++t)
    std::thread([&arenas] {
      std::set<unsigned> own;
      for (int cpu = 0; cpu < 64; ++cpu) {  // wherever the thread goes on
        cpu_of_thread = cpu;
        void *block = pools::allocate(Pool::temp_table, 1 << 20);
        own.insert(mallctl::arena_of(block).value());
        pools::free(Pool::temp_table, block, 1 << 20);
      }
      EXPECT_EQ(1u, own.size());
      arenas.insert(own.begin(), own.end());
    }).join();
  EXPECT_EQ(memdiag::spec_of(Pool::temp_table).arenas, arenas.size());
}

FRESH_TEST(Cpus, APoolHasNoMoreArenasThanDeclared) {
  const Allowed_cpus allowed(first_cpus(256));
  for (size_t i = first_pool; i < memdiag::pool_count; ++i) {
    const Pool each = static_cast<Pool>(i);
    for (int cpu = 0; cpu < 256; ++cpu) {
      cpu_of_thread = cpu;
      pools::free(each, pools::allocate(each, 100), 100);
    }
    size_t arenas = 0;
    pools::for_each_arena(each, [&](unsigned) { ++arenas; });
    EXPECT_EQ(memdiag::pool_specs[i].arenas, arenas);
  }
}

uint64_t cached_in(Pool each) {
  EXPECT_EQ(0, mallctl::refresh());
  return pools::cached_bytes(
      pools::counters(each),
      sum_over<Ctl::stats_arena_small_allocated>(each) +
          sum_over<Ctl::stats_arena_large_allocated>(each));
}

/** A burst of blocks of many sizes on each of the first CPUs. */
void fill_caches(Pool each, unsigned cpus) {
  for (unsigned cpu = 0; cpu < cpus; ++cpu) {
    cpu_of_thread = static_cast<int>(cpu);
    std::vector<void *> blocks;
    for (size_t n = 0; n < 200; ++n)
      blocks.push_back(pools::allocate(each, 1000 + 100 * (n % 100)));
    for (size_t n = 0; n < 200; ++n)
      pools::free(each, blocks[n], 1000 + 100 * (n % 100));
  }
}

FRESH_TEST(Cpus, CachesThatAreHardlyUsedAreDropped) {
  constexpr unsigned cpus = 16;
  constexpr Pool each = Pool::session;
  const Allowed_cpus allowed(first_cpus(cpus));
  // No purge: the pool could have as little to do for ever.
  ASSERT_EQ("", memdiag::policies::set(memdiag::Policy::quiet_ms, "all=0"));
  memdiag::purger::Watch watch;
  fill_caches(each, cpus);
  EXPECT_GT(cached_in(each), cpus * uint64_t{64} << 10);
  // For ten seconds hardly anything happens.
  for (int tick = 0; tick < 100; ++tick) {
    for (int n = 0; n < 5; ++n)
      pools::free(each, pools::allocate(each, 8000), 8000);
    watch.tick();
  }
  EXPECT_EQ(0u, purging::counters(each).purges);
  EXPECT_LE(cached_in(each), cpus * uint64_t{64} << 10);
}

/** A pool that is never idle does not keep what a burst left in its caches. */
FRESH_TEST(Cpus, CachesInUseAreDroppedInTurn) {
  constexpr unsigned cpus = 4;
  constexpr Pool each = Pool::session;
  const Allowed_cpus allowed(first_cpus(cpus));
  ASSERT_EQ("", memdiag::policies::set(memdiag::Policy::quiet_ms, "all=0"));
  memdiag::purger::Watch watch;
  fill_caches(each, cpus);
  EXPECT_GT(cached_in(each), cpus * uint64_t{64} << 10);
  // Each CPU goes on with blocks of one size.
  for (unsigned trim = 0; trim < cpus; ++trim) {
    for (unsigned cpu = 0; cpu < cpus; ++cpu) {
      cpu_of_thread = static_cast<int>(cpu);
      for (uint64_t moved = 0; moved < memdiag::purger::least_cached_bytes;
           moved += 1024)
        pools::free(each, pools::allocate(each, 1024), 1024);
    }
    for (unsigned ms = 0; ms < memdiag::purger::trim_ms;
         ms += memdiag::purger::tick_ms)
      watch.tick();
  }
  EXPECT_EQ(0u, purging::counters(each).purges);
  EXPECT_LE(cached_in(each), cpus * uint64_t{64} << 10);
}

/** A CPU that touches a pool now and then takes no memory for a cache. */
FRESH_TEST(Cpus, ACacheIsMadeWhereItIsOfUse) {
  const Allowed_cpus allowed(first_cpus(8));
  for (int cpu = 0; cpu < 8; ++cpu) {
    cpu_of_thread = cpu;
    for (int n = 0; n < 10; ++n)
      pools::free(Pool::session, pools::allocate(Pool::session, 100), 100);
  }
  EXPECT_EQ(0u, cached_in(Pool::session));
}

}  // namespace memdiag_test
