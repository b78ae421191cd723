/* Threads that are bound to the pool `connection`: the pool has the blocks that
they take from malloc(), and no blocks of other threads. Any thread may free. */

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <latch>
#include <thread>

#include "mysys/memdiag/pools/cpus.h"
#include "mysys/memdiag/unittest/test.h"

namespace memdiag_test {

Pool owner_of(const void *block) {
  const auto arena = mallctl::arena_of(block);
  return arena ? pools::owner_of_arena(arena.value()) : Pool::general;
}

/** More than a thread's cache takes at once, of all sizes. Any thread may free
them. */
std::vector<void *> take_many() {
  std::vector<void *> blocks;
  for (size_t size : sizes)
    for (int n = 0; n < (size > 100000 ? 1 : 300); ++n) {
      blocks.push_back(malloc(size));
      if (size > 0) memset(blocks.back(), 1, size);
    }
  return blocks;
}

size_t count_of(Pool owner, const std::vector<void *> &blocks) {
  return static_cast<size_t>(std::count_if(
      blocks.begin(), blocks.end(),
      [owner](const void *block) { return owner_of(block) == owner; }));
}

std::vector<unsigned> connection_arenas() {
  std::vector<unsigned> arenas;
  pools::for_each_arena(Pool::connection,
                        [&](unsigned arena) { arenas.push_back(arena); });
  return arenas;
}

class Connection : public testing::Test {
  void SetUp() override {
    if (!mallctl::serves_malloc()) GTEST_SKIP() << "malloc() is a sanitizer's";
  }
};

TEST_F(Connection, WhatItsThreadsTakeIsItsAndNobodyElses) {
  std::vector<void *> bound;
  std::vector<void *> other;
  std::thread([&] {
    pools::bind_thread(Pool::connection);
    bound = take_many();
  }).join();
  std::thread([&] { other = take_many(); }).join();
  // The thread's cache may have had some before.
  EXPECT_GE(count_of(Pool::connection, bound), bound.size() * 19 / 20);
  EXPECT_EQ(bound.size(),
            count_of(Pool::connection, bound) + count_of(Pool::general, bound));
  EXPECT_EQ(other.size(), count_of(Pool::general, other));
  for (void *block : bound) free(block);  // in another thread
  for (void *block : other) free(block);
}

TEST_F(Connection, OtherPoolsOfABoundThreadKeepTheirs) {
  std::thread([] {
    pools::bind_thread(Pool::connection);
    for (size_t i = first_pool; i < memdiag::pool_count; ++i) {
      const Pool each = static_cast<Pool>(i);
      for (size_t size : sizes) {
        void *block = pools::allocate(each, size);
        EXPECT_EQ(each, owner_of(block));
        pools::free(each, block, size);
      }
    }
  }).join();
}

// A block of malloc() that serves for a pool comes from the thread's arena, and
// is known as the stand-in that it is.
TEST_F(Connection, FallbacksOfABoundThreadAreCountedDown) {
  std::thread([] {
    pools::bind_thread(Pool::connection);
    pools::fail_allocations_for_test(
        {.count = 1, .pool = pool, .this_thread = true});
    void *block = pools::allocate(pool, 5 << 20);
    pools::fail_allocations_for_test({.count = 0});
    EXPECT_EQ(Pool::connection, owner_of(block));
    EXPECT_EQ(1u, pools::fallback_blocks(pool));
    pools::free(pool, block, 5 << 20);
    EXPECT_EQ(0u, pools::fallback_blocks(pool));
  }).join();
}

TEST_F(Connection, ThreadsOfGroupReplicationHaveTheirOwn) {
  const auto arenas = [] {
    size_t count = 0;
    pools::for_each_arena(Pool::group_replication,
                          [&count](unsigned) { ++count; });
    return count;
  };
  EXPECT_EQ(0u, arenas());
  std::vector<void *> bound;
  std::thread([&] {
    pools::bind_thread(Pool::group_replication);
    bound = take_many();
  }).join();
  EXPECT_GE(count_of(Pool::group_replication, bound), bound.size() * 19 / 20);
  EXPECT_EQ(0u, count_of(Pool::connection, bound));
  for (void *block : bound) free(block);
  EXPECT_EQ(1u, arenas());
  EXPECT_EQ(0, purging::purge(Pool::group_replication).error);
  EXPECT_EQ(0u, dirty_pages(Pool::group_replication));
}

TEST_F(Connection, WhatIsHandedToABoundThreadIsOfItsPool) {
  constexpr Pool its = Pool::group_replication;
  std::vector<void *> handed;
  std::thread([&] {
    pools::bind_thread(Pool::connection);
    for (size_t size : sizes)
      handed.push_back(pools::allocate_as_bound(its, size, true));
    for (int i = 0; i < 1000; ++i)
      handed.push_back(pools::allocate_as_bound(its, 100, false));
    EXPECT_EQ(handed.size(), count_of(its, handed));
    // A block that it frees itself does not stay in its cache.
    pools::free_as_bound(its, handed.back());
    handed.pop_back();
    void *const own = malloc(100);
    EXPECT_NE(its, owner_of(own));
    pools::free_as_bound(its, own);
    pools::free_as_bound(its, nullptr);
  }).join();
  std::thread([&] {
    pools::bind_thread(its);
    for (void *block : handed) free(block);
    std::vector<void *> own(1000);
    for (void *&block : own) block = pools::allocate_as_bound(its, 100, false);
    EXPECT_EQ(own.size(), count_of(its, own));
    for (void *block : own) pools::free_as_bound(its, block);
  }).join();
}

/** Blocks that other threads allocated are not used again for the pool. */
TEST_F(Connection, ABoundThreadGivesBackWhatOthersHandedToIt) {
  const auto allocated = [] {
    EXPECT_EQ(0, mallctl::refresh());
    return sum_over<Ctl::stats_arena_small_allocated>(Pool::connection);
  };
  const uint64_t before = allocated();
  std::vector<void *> of_others(1000);
  std::thread([&of_others] {
    pools::bind_thread(Pool::connection);
    for (void *&block : of_others) block = malloc(100);
  }).join();
  EXPECT_LT(before + 90'000, allocated());
  std::thread([&of_others] {
    constexpr Pool its = Pool::group_replication;
    pools::bind_thread(its);
    for (void *block : of_others) pools::free_as_bound(its, block);
    std::vector<void *> own(1000);
    for (void *&block : own) block = malloc(100);
    EXPECT_EQ(0u, count_of(Pool::connection, own));
    for (void *block : own) free(block);
  }).join();
  EXPECT_GT(before + 10'000, allocated());
}

TEST_F(Connection, AThreadThatIsBoundAgainLeavesTheFormerPool) {
  std::thread([] {
    pools::bind_thread(Pool::connection);
    pools::bind_thread(Pool::group_replication);
    void *const block = malloc(1 << 20);
    EXPECT_EQ(Pool::group_replication, owner_of(block));
    free(block);
  }).join();
}

/** Threads are counted where they are, also after an arena that they could not
have. */
FRESH_TEST(Binding, AThreadThatCannotBeBoundStaysWhereItWas) {
  if (!mallctl::serves_malloc()) GTEST_SKIP() << "malloc() is a sanitizer's";
  const auto arena_of_thread = [] {
    return mallctl::read<Ctl::thread_arena>().value();
  };
  const auto bind = [](Pool which) {
    rlimit limit{0, RLIM_INFINITY};
    // No arena can be made then.
    if (which == Pool::group_replication) setrlimit(RLIMIT_AS, &limit);
    pools::bind_thread(which);
    limit.rlim_cur = RLIM_INFINITY;
    setrlimit(RLIMIT_AS, &limit);
  };
  cpu_set_t four;
  CPU_ZERO(&four);
  for (const int cpu : {0, 1, 2, 3}) CPU_SET(cpu, &four);
  pools::map_cpus(&four, sizeof four);
  unsigned first = 0;
  std::thread([&] {
    bind(Pool::connection);
    first = arena_of_thread();
    EXPECT_EQ(Pool::connection, pools::owner_of_arena(first));
    bind(Pool::group_replication);
    pools::for_each_arena(Pool::group_replication,
                          [](unsigned) { ADD_FAILURE() << "it was made"; });
    EXPECT_EQ(first, arena_of_thread());
    std::thread([&] {
      bind(Pool::connection);
      EXPECT_NE(first, arena_of_thread()) << "one thread has the first";
    }).join();
  }).join();
  for (int i = 0; i < 3; ++i)
    std::thread([&] {
      bind(Pool::connection);
      EXPECT_EQ(first, arena_of_thread()) << "no thread has it";
    }).join();
  pools::map_allowed_cpus();
}

/** An arena for each CPU at first, and then one for sixteen threads. */
TEST_F(Connection, HasMoreArenasForMoreThreads) {
  constexpr int count = 200;
  std::latch all_are_bound(count);
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i)
    threads.emplace_back([&all_are_bound] {
      pools::bind_thread(Pool::connection);
      free(malloc(100));
      all_are_bound.arrive_and_wait();
    });
  for (std::thread &thread : threads) thread.join();
  const auto arenas = connection_arenas();
  EXPECT_EQ(std::clamp<size_t>(13, pools::allowed_cpus(), 64), arenas.size());
  EXPECT_EQ(0, mallctl::refresh());
  for (const unsigned arena : arenas) {
    char name[mallctl::arena_name_size];
    EXPECT_EQ(0, mallctl::arena_name(arena, name));
    EXPECT_EQ(0, strncmp(name, "connection.", 11)) << name;
    EXPECT_EQ(mallctl::read<Ctl::opt_dirty_decay_ms>().value(),
              mallctl::read<Ctl::arena_dirty_decay_ms>(arena).value());
    EXPECT_EQ(0u, mallctl::read<Ctl::stats_arena_nthreads>(arena).value());
  }
}

/** The CPUs that the process may use count, not those that the machine has. */
TEST_F(Connection, AProcessOnOneCpuHasOneArena) {
  if (!in_fresh_process()) {
    // A new process has the CPUs of the thread that starts it.
    std::thread([] {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(sched_getcpu(), &one);
      ASSERT_EQ(0, sched_setaffinity(0, sizeof one, &one));
      EXPECT_EQ(0, run_in_fresh_process());
    }).join();
    return;
  }
  EXPECT_EQ(1u, pools::allowed_cpus());
  EXPECT_EQ(1u + pools::stand_ins, pools::used_shards());
  constexpr int count = 16;
  std::atomic<int> bound{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i)
    threads.emplace_back([&bound] {
      pools::bind_thread(Pool::connection);
      free(malloc(100));
      ++bound;
      while (bound < count) sched_yield();
    });
  for (std::thread &thread : threads) thread.join();
  EXPECT_EQ(1u, connection_arenas().size());
}

/** Threads come in turn, one stays and one goes. Those that stay are
not all bound to the same arenas. */
TEST_F(Connection, ThreadsThatStayAreSpread) {
  cpu_set_t four;
  CPU_ZERO(&four);
  for (const int cpu : {0, 2, 5, 7}) CPU_SET(cpu, &four);
  pools::map_cpus(&four, sizeof four);
  std::atomic<int> bound{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> staying;
  for (int i = 0; i < 80; ++i) {
    staying.emplace_back([&] {
      pools::bind_thread(Pool::connection);
      ++bound;
      bound.notify_one();
      stop.wait(false);
    });
    bound.wait(i);
    std::thread([] { pools::bind_thread(Pool::connection); }).join();
  }
  EXPECT_EQ(0, mallctl::refresh());
  const auto arenas = connection_arenas();
  // The last that went was the 81st at that time, and had the sixth arena.
  EXPECT_LE(6u, arenas.size());
  unsigned threads = 0;
  for (const unsigned arena : arenas) {
    const unsigned there =
        mallctl::read<Ctl::stats_arena_nthreads>(arena).value();
    EXPECT_LE(there, 16u);
    threads += there;
  }
  EXPECT_EQ(80u, threads);
  stop = true;
  stop.notify_all();
  for (std::thread &thread : staying) thread.join();
  pools::map_allowed_cpus();
}

/** Slabs of a size class in the pool's arenas. */
size_t slabs_of(size_t size) {
  const unsigned bin = bin_of(size);
  EXPECT_EQ(0, mallctl::refresh());
  size_t slabs = 0;
  for (unsigned arena : connection_arenas())
    slabs += mallctl::read<Ctl::stats_bin_curslabs>(arena, bin).value();
  return slabs;
}

// Else the pages of a slab are taken for the one block that each thread keeps.
TEST_F(Connection, ThreadsThatKeepABlockEachShareItsSlab) {
  constexpr size_t size = 1280;  // 16 in a slab
  constexpr unsigned count = 48;
  const size_t before = slabs_of(size);
  std::vector<std::thread> threads;
  std::vector<void *> blocks(2 * count);
  std::barrier all(count);
  for (unsigned i = 0; i < count; ++i)
    threads.emplace_back([&, i] {
      pools::bind_thread(Pool::connection);
      // As often as its client is idle.
      for (unsigned time = 0; time < 2; ++time) {
        blocks[2 * i + time] = malloc(size);
        all.arrive_and_wait();
        pools::suspend_cache();
        all.arrive_and_wait();
        pools::resume_cache();
      }
    });
  for (std::thread &thread : threads) thread.join();
  EXPECT_EQ(blocks.size(), count_of(Pool::connection, blocks));
  // The blocks fill 6 slabs, and each arena may have two that are not full.
  EXPECT_LE(slabs_of(size) - before, 6 + 2 * connection_arenas().size());
  for (void *block : blocks) free(block);
}

TEST_F(Connection, APurgeGivesBackWhatItsThreadsFreed) {
  // On a busy machine, a thread of jemalloc's may purge the same arena for
  // longer than a purge waits for it.
  ASSERT_EQ(0, mallctl::write<Ctl::background_thread>(false));
  std::thread([] {
    pools::bind_thread(Pool::connection);
    for (void *block : take_many()) free(block);
  }).join();
  const auto receipt = purging::purge(Pool::connection);
  EXPECT_EQ(0, receipt.error);
  EXPECT_EQ(connection_arenas().size(), receipt.arenas);
  EXPECT_EQ(0u, dirty_pages(Pool::connection));
  EXPECT_EQ(0, mallctl::write<Ctl::background_thread>(true));
}

TEST_F(Connection, ThreadsComeAndGoWhileOthersForkAndPurge) {
  std::atomic<bool> stop{false};
  std::thread beside([&stop] {
    while (!stop) (void)purging::purge(Pool::connection);
  });
  for (int round = 0; round < 10; ++round) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i)
      threads.emplace_back([] {
        pools::bind_thread(Pool::connection);
        for (void *block : take_many()) free(block);
      });
    EXPECT_EQ(0, in_child([] {
                pools::bind_thread(Pool::connection);
                void *block = malloc(100000);
                const bool its = owner_of(block) == Pool::connection;
                free(block);
                return its ? 0 : 1;
              }));
    for (std::thread &thread : threads) thread.join();
  }
  stop = true;
  beside.join();
}

}  // namespace memdiag_test
