/* Pools: routing, counters, fallback, purges. */

#include "mysys/memdiag/pools/pools.h"

#include <sys/resource.h>

#include <atomic>
#include <cerrno>
#include <latch>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

#include "mysys/memdiag/base/rss.h"
#include "mysys/memdiag/pools/attention.h"
#include "mysys/memdiag/pools/fallback_filter.h"
#include "mysys/memdiag/unittest/test.h"

namespace memdiag_test {

namespace placed = memdiag::placed;

/** A malloc() block that the compiler cannot do without. */
void *general_block(size_t size) {
  void *block = malloc(size);
  if (block != nullptr) *static_cast<volatile char *>(block) = 1;
  return block;
}

/** Switches jemalloc's own purging off for a test. */
struct No_decay {
  std::vector<std::pair<unsigned, ssize_t>> before;
  No_decay() {
    for (unsigned arena = 0; arena < narenas(); ++arena) {
      const auto decay = mallctl::read<Ctl::arena_dirty_decay_ms>(arena);
      if (!decay) continue;
      before.emplace_back(arena, decay.value());
      EXPECT_EQ(0, mallctl::write<Ctl::arena_dirty_decay_ms>(-1, arena));
    }
  }
  ~No_decay() {
    for (const auto &[arena, decay] : before)
      EXPECT_EQ(0, mallctl::write<Ctl::arena_dirty_decay_ms>(decay, arena));
  }
};

// ---------------------------------------------------------------- the list

TEST(PoolList, NamesAreFound) {
  for (size_t i = 0; i < memdiag::pool_count; ++i) {
    const auto found = memdiag::find_pool(memdiag::pool_specs[i].name);
    ASSERT_TRUE(found);
    EXPECT_EQ(static_cast<Pool>(i), *found);
    // "<name>.<shard>" must fit an arena's name.
    EXPECT_LT(strlen(memdiag::pool_specs[i].name) + 4,
              mallctl::arena_name_size);
  }
  EXPECT_EQ(Pool::fts_query, memdiag::find_pool("FTS_Query"));
  for (const char *wrong : {"", "fts_quer", "fts_query ", "fts_query2", "all"})
    EXPECT_FALSE(memdiag::find_pool(wrong)) << wrong;
  EXPECT_FALSE(memdiag::find_pool(std::string_view("fts_query\0", 10)));
}

// ----------------------------------------------------------------- routing

TEST(PoolRouting, BlocksLieInThePoolsArenas) {
  for (size_t size : sizes) {
    const Block block = Block::make(size, 3);
    ASSERT_NE(nullptr, block.memory);
    EXPECT_TRUE(lies_in_pool(block.memory)) << size;
    EXPECT_EQ(
        0u, reinterpret_cast<uintptr_t>(block.memory) % (size >= 16 ? 16 : 8));
    block.free();
  }
}

#ifdef __SANITIZE_ADDRESS__
TEST(PoolRouting, TheSanitizerKnowsWhatIsFree) {
  for (size_t size : sizes) {
    if (size == 0) continue;
    const Block block = Block::make(size, 3);
    char *const bytes = static_cast<char *>(block.memory);
    EXPECT_EQ(nullptr, __asan_region_is_poisoned(bytes, size)) << size;
    if (size % 8 == 0 && placed::usable(size) > size) {
      EXPECT_TRUE(__asan_address_is_poisoned(bytes + size)) << size;
    }
    block.free();
    EXPECT_TRUE(__asan_address_is_poisoned(bytes)) << size;
    EXPECT_TRUE(__asan_address_is_poisoned(bytes + size - 1)) << size;
  }
}
#endif

TEST(PoolRouting, ArenasAreNamedAndSetUp) {
  Block::make(10, 1).free();
  const auto &spec = memdiag::spec_of(pool);
  const auto arenas = arenas_of_pool();
  ASSERT_FALSE(arenas.empty());
  EXPECT_EQ(arenas.size(),
            std::set<unsigned>(arenas.begin(), arenas.end()).size());
  for (unsigned arena : arenas) {
    EXPECT_EQ(pool, pools::owner_of_arena(arena));
    EXPECT_EQ(spec.dirty_decay_ms,
              mallctl::read<Ctl::arena_dirty_decay_ms>(arena).value());
    EXPECT_EQ(spec.muzzy_decay_ms,
              mallctl::read<Ctl::arena_muzzy_decay_ms>(arena).value());
    char name[mallctl::arena_name_size];
    EXPECT_EQ(0, mallctl::arena_name(arena, name));
    EXPECT_EQ(0, strncmp(name, "fts_query.", 10)) << name;
    EXPECT_GE(arena, mallctl::read<Ctl::opt_narenas>().value())
        << "an automatic arena";
  }
  pools::for_each_arena(Pool::general, [](unsigned) { FAIL(); });
}

/** In several threads, of all sizes: malloc() and free() blocks that never
come from a pool. @return how many did */
size_t general_blocks_from_pool(unsigned rounds) {
  std::atomic<size_t> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (size_t size : sizes) {
        std::vector<void *> blocks;
        const size_t count = size > 100000 ? 4 : rounds;
        for (size_t i = 0; i < count; ++i) {
          blocks.push_back(general_block(size));
          if (lies_in_pool(blocks.back())) ++wrong;
        }
        for (void *block : blocks) free(block);
      }
    });
  for (std::thread &thread : threads) thread.join();
  // The calling thread freed the pool's blocks: its cache matters most.
  for (size_t size : sizes) {
    std::vector<void *> blocks;
    for (size_t i = 0; i < (size > 100000 ? 4 : rounds); ++i) {
      blocks.push_back(general_block(size));
      if (lies_in_pool(blocks.back())) ++wrong;
    }
    for (void *block : blocks) free(block);
  }
  return wrong;
}

TEST(PoolRouting, FreedPoolBlocksNeverServeMalloc) {
  std::vector<Block> blocks;
  for (size_t size : sizes)
    for (int i = 0; i < (size > 100000 ? 4 : 300); ++i)
      blocks.push_back(Block::make(size, static_cast<unsigned char>(i)));
  for (const Block &block : blocks) EXPECT_TRUE(block.intact());
  for (const Block &block : blocks) block.free();
  EXPECT_EQ(0u, general_blocks_from_pool(600));
}

TEST(PoolRouting, FreedMallocBlocksNeverServeThePool) {
  EXPECT_EQ(0u, general_blocks_from_pool(300));  // fills the threads' caches
  for (int t = 0; t < 3; ++t) {
    std::thread([] {
      for (size_t size : sizes) {
        std::vector<void *> general;
        for (int i = 0; i < (size > 100000 ? 4 : 100); ++i)
          general.push_back(general_block(size));
        for (void *block : general) free(block);
        for (int i = 0; i < (size > 100000 ? 4 : 200); ++i) {
          const Block block = Block::make(size, 9);
          EXPECT_TRUE(lies_in_pool(block.memory)) << size;
          block.free();
        }
      }
    }).join();
  }
}

TEST(PoolRouting, FreedInAnotherThread) {
  std::vector<Block> blocks;
  const uint64_t before = pools::counters(pool).live_bytes;
  std::thread([&] {
    for (size_t size : sizes)
      for (int i = 0; i < 20; ++i) blocks.push_back(Block::make(size, 5));
  }).join();
  // The thread that allocated is gone; its blocks are not.
  std::atomic<size_t> leaked{0};
  std::thread([&] {
    for (const Block &block : blocks) {
      EXPECT_TRUE(block.intact());
      block.free();
    }
    // The freeing thread does not keep them for itself either.
    for (size_t size : sizes) {
      void *block = general_block(size);
      if (lies_in_pool(block)) ++leaked;
      free(block);
    }
  }).join();
  EXPECT_EQ(0u, leaked.load());
  EXPECT_EQ(before, pools::counters(pool).live_bytes);
  EXPECT_EQ(before, allocated_in_pool());
}

/** Uses the pool as the last thing its thread does in C++. */
struct Used_at_thread_exit {
  Block block = Block::make(300, 1);
  ~Used_at_thread_exit() {
    const Block last = Block::make(5000, 2);
    EXPECT_TRUE(lies_in_pool(last.memory));
    last.free();
    EXPECT_TRUE(block.intact());
    block.free();
  }
};

TEST(PoolRouting, UsedByADyingThread) {
  // Destructors of pthread's thread-specific data may run after jemalloc's own.
  // Then a thread can free, but jemalloc no longer lets it choose an arena.
  pthread_key_t key;
  ASSERT_EQ(0, pthread_key_create(
                   &key, [](void *block) { pools::free(pool, block, 300); }));
  const uint64_t before = pools::counters(pool).live_bytes;
  for (int t = 0; t < 8; ++t)
    std::thread([&] {
      thread_local Used_at_thread_exit used;
      EXPECT_TRUE(lies_in_pool(used.block.memory));
      EXPECT_EQ(0, pthread_setspecific(key, pools::allocate(pool, 300)));
    }).join();
  EXPECT_EQ(before, pools::counters(pool).live_bytes);
  EXPECT_EQ(before, allocated_in_pool());
  pthread_key_delete(key);
}

TEST(PoolRouting, GeneralIsMalloc) {
  void *block = pools::allocate(Pool::general, 100);
  ASSERT_NE(nullptr, block);
  EXPECT_FALSE(lies_in_pool(block));
  free(block);
  pools::free(Pool::general, malloc(100), 100);
  pools::free(Pool::general, nullptr, 100);
  EXPECT_EQ(0u, pools::counters(Pool::general).live_bytes);
  EXPECT_EQ(0u, pools::activity(Pool::general));
}

TEST(PoolRouting, SizeZeroAndNullptr) {
  const auto before = pools::counters(pool);
  pools::free(pool, nullptr, 100);
  EXPECT_EQ(before.live_bytes, pools::counters(pool).live_bytes);
  void *one = pools::allocate(pool, 0);
  void *other = pools::allocate(pool, 0);
  ASSERT_NE(nullptr, one);
  ASSERT_NE(nullptr, other);
  EXPECT_NE(one, other);
  EXPECT_EQ(before.live_bytes + 2 * placed::usable(0),
            pools::counters(pool).live_bytes);
  pools::free(pool, one, 0);
  pools::free(pool, other, 0);
  EXPECT_EQ(before.live_bytes, pools::counters(pool).live_bytes);
}

TEST(PoolRouting, LookingNeverCreates) {
  (void)mallctl::refresh();
  const unsigned arenas = narenas();
  const auto of_pool = arenas_of_pool();
  for (size_t i = 0; i < memdiag::pool_count; ++i) {
    const Pool each = static_cast<Pool>(i);
    (void)pools::counters(each);
    (void)pools::activity(each);
    (void)purging::purge(each);
    for (unsigned shard = 0; shard < 100; ++shard)
      (void)pools::arena_in_slot(each, shard);
  }
  (void)purging::purge_all();
  for (unsigned arena = 0; arena < 5000; ++arena)
    (void)pools::owner_of_arena(arena);
  EXPECT_EQ(arenas, narenas());
  EXPECT_EQ(of_pool, arenas_of_pool());
}

FRESH_TEST(PoolRouting, LookingNeverCreatesInAnUnusedPool) {
  (void)mallctl::refresh();
  const unsigned arenas = narenas();
  EXPECT_TRUE(arenas_of_pool().empty());
  const auto counters = pools::counters(pool);
  EXPECT_EQ(0u, counters.live_bytes);
  EXPECT_EQ(0u, counters.peak_bytes);
  EXPECT_EQ(0u, counters.peak_time_us);
  const auto receipt = purging::purge(pool);
  EXPECT_EQ(0, receipt.error);
  EXPECT_EQ(0u, receipt.arenas);
  EXPECT_EQ(0u, receipt.arenas_before_bytes);
  EXPECT_EQ(0u, receipt.arenas_after_bytes);
  EXPECT_EQ(0, purging::purge_all().error);
  pools::free(pool, nullptr, 1);
  EXPECT_TRUE(arenas_of_pool().empty());
  EXPECT_EQ(arenas, narenas());
  // And the first use does.
  Block::make(1, 1).free();
  EXPECT_EQ(1u, arenas_of_pool().size());
  EXPECT_EQ(arenas + 1, narenas());
}

// All threads meet on one CPU's unmade arena, while others look and purge.
FRESH_TEST(PoolRouting, FirstUseByManyThreadsAtOnce) {
  cpu_set_t all;
  ASSERT_EQ(0, sched_getaffinity(0, sizeof all, &all));
  std::latch all_are_ready(17);
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t)
    threads.emplace_back([&] {
      all_are_ready.arrive_and_wait();
      for (int i = 0; i < 10; ++i) {
        const Block block = Block::make(700, 1);
        EXPECT_TRUE(lies_in_pool(block.memory));
        block.free();
      }
    });
  std::thread purger([&] {
    all_are_ready.arrive_and_wait();
    while (!done) (void)purging::purge_all();
  });
  for (std::thread &thread : threads) thread.join();
  done = true;
  purger.join();

  const auto arenas = arenas_of_pool();
  EXPECT_GE(arenas.size(), 1u);
  EXPECT_EQ(arenas.size(),
            std::set<unsigned>(arenas.begin(), arenas.end()).size());
  // No arena of the pool is lost from sight.
  size_t owned = 0;
  for (unsigned arena = 0; arena < narenas(); ++arena)
    if (pools::owner_of_arena(arena) == pool) ++owned;
  EXPECT_EQ(arenas.size(), owned);
  EXPECT_EQ(0u, pools::counters(pool).fallbacks);
  EXPECT_EQ(0u, pools::counters(pool).live_bytes);
  EXPECT_EQ(0u, allocated_in_pool());
}

// A thread that is moved from CPU to CPU finds the pages it has freed.
FRESH_TEST(PoolRouting, LargeBlocksComeFromOneArena) {
  cpu_set_t all;
  ASSERT_EQ(0, sched_getaffinity(0, sizeof all, &all));
  std::set<unsigned> arenas;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &all)) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    ASSERT_EQ(0, sched_setaffinity(0, sizeof one, &one));
    const Block block = Block::make(3 << 20, 1);
    arenas.insert(mallctl::arena_of(block.memory).value());
    block.free();
  }
  EXPECT_EQ(0, sched_setaffinity(0, sizeof all, &all));
  EXPECT_EQ(1u, arenas.size());
}

// ---------------------------------------------------------------- counters

TEST(PoolCounters, AgreeWithJemalloc) {
  const uint64_t start = pools::counters(pool).live_bytes;
  EXPECT_EQ(start, allocated_in_pool());
  uint64_t expected = start;
  std::vector<Block> blocks;
  for (size_t size : sizes) {
    for (int i = 0; i < 7; ++i) {
      blocks.push_back(Block::make(size + i, 4));
      expected += placed::usable(size + i);
    }
    EXPECT_EQ(expected, pools::counters(pool).live_bytes) << size;
    EXPECT_EQ(expected, allocated_in_pool()) << size;
  }
  for (size_t i = 0; i < blocks.size(); i += 2) {
    blocks[i].free();
    expected -= placed::usable(blocks[i].size);
  }
  EXPECT_EQ(expected, pools::counters(pool).live_bytes);
  EXPECT_EQ(expected, allocated_in_pool());
  for (size_t i = 1; i < blocks.size(); i += 2) blocks[i].free();
  EXPECT_EQ(start, pools::counters(pool).live_bytes);
  EXPECT_EQ(start, allocated_in_pool());
}

TEST(PoolCounters, ActivityMovesWithUseOnly) {
  const uint64_t before = pools::activity(pool);
  (void)pools::counters(pool);
  (void)purging::purge(pool);
  EXPECT_EQ(before, pools::activity(pool));
  const Block block = Block::make(5000, 1);
  const uint64_t allocated = pools::activity(pool);
  EXPECT_LT(before, allocated);
  block.free();
  EXPECT_LT(allocated, pools::activity(pool));
}

TEST(PoolCounters, PeakAndItsTime) {
  // Go over whatever peak earlier tests left.
  const auto before = pools::counters(pool);
  const Test_clock clock;
  std::vector<Block> blocks;
  while ((blocks.size() << 20) <= before.peak_bytes)
    blocks.push_back(Block::make(1 << 20, 1));
  const auto high = pools::counters(pool);
  EXPECT_EQ(before.live_bytes + (blocks.size() << 20), high.live_bytes);
  EXPECT_EQ(high.live_bytes, high.peak_bytes);
  EXPECT_EQ(clock.now(), high.peak_time_us);

  clock.advance_ms(2);
  blocks.back().free();
  blocks.pop_back();
  const auto lower = pools::counters(pool);
  EXPECT_EQ(high.live_bytes - (1 << 20), lower.live_bytes);
  EXPECT_EQ(high.peak_bytes, lower.peak_bytes);
  EXPECT_EQ(high.peak_time_us, lower.peak_time_us);

  // Reaching it again is no new peak, passing it is.
  blocks.push_back(Block::make(1 << 20, 1));
  EXPECT_EQ(high.peak_time_us, pools::counters(pool).peak_time_us);
  blocks.push_back(Block::make(1 << 20, 1));
  const auto higher = pools::counters(pool);
  EXPECT_EQ(high.peak_bytes + (1 << 20), higher.peak_bytes);
  EXPECT_EQ(clock.now(), higher.peak_time_us);
  for (const Block &block : blocks) block.free();
  EXPECT_EQ(before.live_bytes, pools::counters(pool).live_bytes);
}

// Each thread holds one block at most, so more can never have been live,
// however the thread that looks is interrupted while it looks.
FRESH_TEST(PoolCounters, PeakIsNeverMoreThanWasLive) {
  constexpr size_t block_size = 1 << 16;
  constexpr int workers = 4;
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < workers; ++t)
    threads.emplace_back([&] {
      while (!stop)
        pools::free(pool, pools::allocate(pool, block_size), block_size);
    });
  uint64_t most = 0;
  const uint64_t end =
      now_us(CLOCK_MONOTONIC) + (address_sanitized ? 100000 : 700000);
  while (now_us(CLOCK_MONOTONIC) < end)
    most = std::max(most, pools::counters(pool).live_bytes);
  stop = true;
  for (std::thread &thread : threads) thread.join();
  EXPECT_LE(most, workers * block_size);
  EXPECT_LE(pools::counters(pool).peak_bytes, workers * block_size);
  EXPECT_EQ(0u, pools::counters(pool).live_bytes);
}

// ---------------------------------------------------------------- fallback

TEST(PoolFallback, InjectedFailure) {
  const auto before = pools::counters(pool);
  for (size_t size : sizes) {
    const auto start = pools::counters(pool);
    const Block own = Block::make(size, 1);
    pools::fail_allocations_for_test({.count = 2});
    const Block first = Block::make(size, 2);
    const Block second = Block::make(size, 3);
    const Block after = Block::make(size, 4);
    ASSERT_NE(nullptr, first.memory);
    ASSERT_NE(nullptr, second.memory);
    EXPECT_TRUE(lies_in_pool(own.memory));
    EXPECT_FALSE(lies_in_pool(first.memory));
    EXPECT_FALSE(lies_in_pool(second.memory));
    EXPECT_TRUE(lies_in_pool(after.memory)) << "the injection ended";
    const auto now = pools::counters(pool);
    EXPECT_EQ(start.fallbacks + 2, now.fallbacks);
    EXPECT_EQ(start.live_bytes + 2 * placed::usable(size), now.live_bytes);
    EXPECT_EQ(now.live_bytes, allocated_in_pool());
    // Freed in any order, of any thread, each goes where it came from.
    for (const Block &block : {own, first, second, after})
      EXPECT_TRUE(block.intact());
    second.free();
    own.free();
    std::thread([&] { first.free(); }).join();
    after.free();
    EXPECT_EQ(start.live_bytes, pools::counters(pool).live_bytes);
    EXPECT_EQ(start.live_bytes, allocated_in_pool());
  }
  EXPECT_EQ(before.fallbacks + 2 * std::size(sizes),
            pools::counters(pool).fallbacks);
  EXPECT_EQ(0u, general_blocks_from_pool(100));
}

TEST(PoolFallback, AFilterRulesOutMostOtherBlocks) {
  pools::Fallback_filter filter;
  const auto address = [](uintptr_t n) {
    return reinterpret_cast<const void *>(0x7f0000000000 + n);
  };
  for (const uintptr_t distance : {16, 48, 64, 512, 4096, 16384, 2 << 20}) {
    filter.add(address(0));
    EXPECT_TRUE(filter.may_have(address(0)));
    constexpr unsigned others = 8192;
    unsigned not_ruled_out = 0;
    for (unsigned i = 1; i <= others; ++i)
      not_ruled_out += filter.may_have(address(i * distance));
    EXPECT_LT(not_ruled_out, others / 64) << distance;
    filter.remove(address(0));
    EXPECT_FALSE(filter.may_have(address(0)));
  }
  filter.remove(address(0));  // never below 0
  filter.add(address(0));
  EXPECT_TRUE(filter.may_have(address(0)));
}

/** Among blocks that have the same counter, too, each goes back to where it
came from. */
TEST(PoolFallback, ManyThatLiveAmongOthers) {
  const auto before = pools::counters(pool);
  const uint64_t fallbacks = pools::fallback_blocks(pool);
  std::vector<Block> blocks;
  for (int i = 0; i < 2000; ++i) {
    if (i % 3 == 0) pools::fail_allocations_for_test({.count = 1});
    blocks.push_back(Block::make(sizes[i % 8], static_cast<unsigned char>(i)));
    EXPECT_EQ(i % 3 != 0, lies_in_pool(blocks.back().memory));
  }
  EXPECT_EQ(fallbacks + 667, pools::fallback_blocks(pool));
  for (const Block &block : blocks) EXPECT_TRUE(block.intact());
  for (const Block &block : blocks) block.free();
  EXPECT_EQ(fallbacks, pools::fallback_blocks(pool));
  EXPECT_EQ(before.live_bytes, pools::counters(pool).live_bytes);
  EXPECT_EQ(before.live_bytes, allocated_in_pool());
  EXPECT_EQ(0u, general_blocks_from_pool(100));
}

TEST(PoolFallback, InjectionCanBeTakenBack) {
  pools::fail_allocations_for_test({.count = 1000});
  pools::fail_allocations_for_test({.count = 0});
  const Block block = Block::make(100, 1);
  EXPECT_TRUE(lies_in_pool(block.memory));
  block.free();
}

TEST(PoolFallback, InjectionOfOnePoolAccountAndThread) {
  const auto allocate = [](Pool each, pools::Account account) {
    void *block = pools::allocate(each, 3000, false, account);
    const auto arena = mallctl::arena_of(block);
    const bool fell_back =
        !arena || pools::owner_of_arena(arena.value()) != each;
    pools::free(each, block, 3000, account);
    return fell_back;
  };
  pools::Failures failures{.count = 2};
  failures.skip = 1;
  failures.pool = Pool::ddl;
  pools::fail_allocations_for_test(failures);
  EXPECT_FALSE(allocate(Pool::session, 0));
  EXPECT_FALSE(allocate(Pool::ddl, 0)) << "skipped";
  EXPECT_TRUE(allocate(Pool::ddl, 0));
  EXPECT_FALSE(allocate(Pool::session, 0));
  EXPECT_EQ(1u, pools::fail_allocations_for_test({.count = 0}));
  EXPECT_FALSE(allocate(Pool::ddl, 0));

  failures = {.count = 1};
  failures.account = 7;
  failures.this_thread = true;
  pools::fail_allocations_for_test(failures);
  EXPECT_FALSE(allocate(Pool::session, 8));
  std::thread([&] { EXPECT_FALSE(allocate(Pool::session, 7)); }).join();
  EXPECT_TRUE(allocate(Pool::session, 7));
  EXPECT_EQ(0u, pools::fail_allocations_for_test({.count = 0}));
}

TEST(PoolFallback, HardInjection) {
  const auto before = pools::counters(pool);
  pools::Failures failures{.count = 1};
  failures.hard = true;
  pools::fail_allocations_for_test(failures);
  errno = 0;
  EXPECT_EQ(nullptr, pools::allocate(pool, 100));
  EXPECT_EQ(ENOMEM, errno);
  const Block after = Block::make(100, 1);
  EXPECT_TRUE(lies_in_pool(after.memory));
  after.free();
  EXPECT_EQ(before.fallbacks, pools::counters(pool).fallbacks);
  EXPECT_EQ(before.live_bytes, pools::counters(pool).live_bytes);
}

TEST(PoolFallback, GeneralPoolIsNotInjected) {
  pools::fail_allocations_for_test({.count = 1});
  void *block = pools::allocate(Pool::general, 10);
  EXPECT_NE(nullptr, block);
  pools::free(Pool::general, block, 10);
  pools::fail_allocations_for_test({.count = 0});
  EXPECT_EQ(0u, pools::counters(Pool::general).fallbacks);
}

TEST(PoolFallback, MoreThanThereCanBe) {
  if (sanitized) GTEST_SKIP() << "sanitizers abort on such sizes";
  const auto before = pools::counters(pool);
  for (size_t size :
       {SIZE_MAX, SIZE_MAX - 4096, size_t{PTRDIFF_MAX}, size_t{1} << 62})
    EXPECT_EQ(nullptr, pools::allocate(pool, size));
  const auto after = pools::counters(pool);
  EXPECT_EQ(before.fallbacks, after.fallbacks);
  EXPECT_EQ(before.live_bytes, after.live_bytes);
  // No trace of them: the fast path of free() is open again.
  Block::make(10, 1).free();
  EXPECT_EQ(before.live_bytes, allocated_in_pool());
}

/** Let this process map nothing more. */
void end_address_space() {
  rlimit none{0, RLIM_INFINITY};
  setrlimit(RLIMIT_AS, &none);
}
void open_address_space() {
  rlimit all{RLIM_INFINITY, RLIM_INFINITY};
  setrlimit(RLIMIT_AS, &all);
}

/** Leave malloc() something to give without asking the system. */
void stock_up_malloc(size_t blocks) {
  std::vector<void *> stock;
  for (size_t i = 0; i < blocks; ++i) stock.push_back(general_block(1 << 20));
  for (void *block : stock) free(block);
}

#define CHECK_IN_CHILD(condition)                \
  do {                                           \
    if (!(condition)) return __LINE__ % 200 + 1; \
  } while (0)

/** Small blocks that come and go in a pool with caches, more than a trim asks
for. @return true: a cache has them now, where jemalloc counts them as
allocated */
bool are_cached(Pool each) {
  for (int i = 0; i < 2000; ++i)
    pools::free(each, pools::allocate(each, 1000), 1000);
  EXPECT_EQ(0, mallctl::refresh());
  return sum_over<Ctl::stats_arena_small_allocated>(each) >
         pools::counters(each).live_bytes;
}

/** Fresh: pages that other tests gave back would serve for the cache. */
FRESH_TEST(PoolFallback, ABusyShardGetsItsCacheOnceThereIsMemory) {
  if (sanitized) GTEST_SKIP() << "sanitizers need address space of their own";
  constexpr uint64_t least_bytes = 256 << 10;
  constexpr Pool each = Pool::transaction;
  EXPECT_EQ(0, in_child([] {
              stay_on_this_cpu();
              pools::free(each, pools::allocate(each, 1000), 1000);
              end_address_space();
              // No page is left for the cache.
              static void *blocks[100000];
              size_t count = 0;
              for (const size_t size : {1 << 20, 64 << 10, 4 << 10})
                while (count < std::size(blocks) &&
                       (blocks[count] = general_block(size)) != nullptr)
                  ++count;
              CHECK_IN_CHILD(!are_cached(each));
              open_address_space();
              while (count > 0) free(blocks[--count]);
              CHECK_IN_CHILD(!are_cached(each));
              // The shard is busy between the calls.
              pools::trim_caches(each, least_bytes);
              CHECK_IN_CHILD(are_cached(each));
              return 0;
            }));
}

TEST(PoolFallback, AddressSpaceRunsOut) {
  if (sanitized) GTEST_SKIP() << "sanitizers need address space of their own";
  EXPECT_EQ(
      0, in_child([] {
        stay_on_this_cpu();
        // The arenas exist, that of large blocks too.
        Block::make(10, 1).free();
        Block::make(1 << 20, 1).free();
        const auto before = pools::counters(pool);
        static Block blocks[4000];
        stock_up_malloc(64);
        end_address_space();
        size_t count = 0;
        size_t own = 0;
        while (count < std::size(blocks)) {
          blocks[count] =
              Block::make(1 << 20, static_cast<unsigned char>(count));
          if (blocks[count].memory == nullptr) break;
          own += lies_in_pool(blocks[count].memory);
          ++count;
        }
        CHECK_IN_CHILD(count < std::size(blocks));  // it did end
        auto now = pools::counters(pool);
        CHECK_IN_CHILD(now.fallbacks - before.fallbacks == count - own);
        CHECK_IN_CHILD(count - own > 10);  // malloc() had something
        CHECK_IN_CHILD(now.live_bytes - before.live_bytes == own << 20);
        for (size_t i = 0; i < count; ++i) CHECK_IN_CHILD(blocks[i].intact());
        for (size_t i = 0; i < count; i += 2) blocks[i].free();
        // Purging needs no memory.
        CHECK_IN_CHILD(purging::purge(pool).error == 0);
        open_address_space();
        const Block late = Block::make(8 << 20, 1);
        CHECK_IN_CHILD(lies_in_pool(late.memory));
        late.free();
        for (size_t i = 1; i < count; i += 2) {
          CHECK_IN_CHILD(blocks[i].intact());
          blocks[i].free();
        }
        CHECK_IN_CHILD(pools::counters(pool).live_bytes == before.live_bytes);
        return 0;
      }));
}

/** Also without room for a cache, which a purge has taken away: jemalloc would
end the process if it had to make one anew by itself. */
TEST(PoolFallback, AddressSpaceRunsOutAfterAPurge) {
  if (sanitized) GTEST_SKIP() << "sanitizers need address space of their own";
  constexpr Pool cached = Pool::session;
  static_assert(memdiag::spec_of(cached).cached_max > 100);
  EXPECT_EQ(
      0, in_child([] {
        stay_on_this_cpu();
        const auto use_the_cache = [] {
          for (int i = 0; i < 100; ++i)
            pools::free(cached, pools::allocate(cached, 100), 100);
        };
        use_the_cache();
        void *const live = pools::allocate(cached, 100);
        void *const freed = pools::allocate(cached, 100);
        CHECK_IN_CHILD(purging::purge(cached).error == 0);
        end_address_space();
        // Caches are jemalloc's, made in its first arena.
        for (size_t size = 1 << 20; size >= 8; size /= 2)
          while (placed::allocate(0, placed::no_cache, size, false) !=
                 nullptr) {
          }
        pools::free(cached, freed, 100);
        use_the_cache();
        pools::free(cached, live, 100);
        open_address_space();
        CHECK_IN_CHILD(purging::purge(cached).error == 0);
        void *const late = pools::allocate(cached, 100);
        const auto arena = mallctl::arena_of(late);
        CHECK_IN_CHILD(arena && pools::owner_of_arena(arena.value()) == cached);
        pools::free(cached, late, 100);
        return 0;
      }));
}

FRESH_TEST(PoolFallback, NoArenaToBeHad) {
  if (sanitized) GTEST_SKIP() << "sanitizers need address space of their own";
  stock_up_malloc(16);
  EXPECT_EQ(0, in_child([] {
              stay_on_this_cpu();
              end_address_space();
              const Block block = Block::make(1000, 1);
              CHECK_IN_CHILD(block.memory != nullptr);
              CHECK_IN_CHILD(!lies_in_pool(block.memory));
              CHECK_IN_CHILD(arenas_of_pool().empty());
              auto now = pools::counters(pool);
              CHECK_IN_CHILD(now.fallbacks == 1 && now.live_bytes == 0);
              CHECK_IN_CHILD(purging::purge(pool).error == 0);
              CHECK_IN_CHILD(block.intact());
              block.free();
              open_address_space();
              // The shortage is over: in the end the pool gets its arena.
              bool in_pool = false;
              for (int i = 0; i < 10000 && !in_pool; ++i) {
                const Block late = Block::make(100, 7);
                in_pool = lies_in_pool(late.memory);
                late.free();
              }
              CHECK_IN_CHILD(in_pool);
              for (size_t size : sizes) {
                const Block late = Block::make(size, 7);
                CHECK_IN_CHILD(late.memory != nullptr && late.intact());
                late.free();
              }
              CHECK_IN_CHILD(pools::counters(pool).live_bytes == 0);
              return 0;
            }));
}

// ------------------------------------------------------------------ purges

/** Dirty `count` blocks of 1 MB in the pool. */
void dirty_the_pool(size_t count) {
  std::vector<Block> blocks;
  for (size_t i = 0; i < count; ++i) blocks.push_back(Block::make(1 << 20, 8));
  for (const Block &block : blocks) block.free();
}

TEST(PoolPurge, ReceiptSaysWhatWasReleased) {
  Block::make(1, 1).free();
  (void)purging::purge(pool);
  const auto before = purging::counters(pool);
  const uint64_t rss_empty = memdiag::process_rss();
  dirty_the_pool(48);
  const uint64_t rss_dirty = memdiag::process_rss();
  const auto receipt = purging::purge(pool);
  const uint64_t rss_purged = memdiag::process_rss();
  EXPECT_EQ(0, receipt.error);
  EXPECT_EQ(arenas_of_pool().size(), receipt.arenas);
  EXPECT_GE(receipt.given_back_bytes(), uint64_t{48} << 20);
  EXPECT_EQ(0u, dirty_pages(pool));
  EXPECT_EQ(sum_over<Ctl::stats_arena_resident>(pool),
            receipt.arenas_after_bytes);
  // Kernels before 6.17 are a little behind.
  constexpr uint64_t behind = 4 << 20;
  EXPECT_LE(receipt.rss_before_bytes, rss_dirty + behind);
  EXPECT_GE(receipt.rss_before_bytes + behind, rss_dirty);
  EXPECT_LE(receipt.rss_after_bytes, rss_purged + behind);
  EXPECT_GE(receipt.rss_after_bytes + behind, rss_purged);
  EXPECT_GE(receipt.released_bytes() + behind, uint64_t{48} << 20);

  const auto after = purging::counters(pool);
  EXPECT_EQ(before.purges + 1, after.purges);
  EXPECT_EQ(before.purged_bytes + receipt.released_bytes(), after.purged_bytes);
  EXPECT_EQ(before.purge_us + receipt.duration_us, after.purge_us);

  // The operating system agrees.
  EXPECT_GT(rss_dirty, rss_empty + (uint64_t{24} << 20));
  EXPECT_LT(rss_purged + (uint64_t{24} << 20), rss_dirty);

  const auto again = purging::purge(pool);
  EXPECT_EQ(again.arenas_before_bytes, again.arenas_after_bytes);
  EXPECT_EQ(after.purged_bytes, purging::counters(pool).purged_bytes);
}

/** jemalloc counts pages that the process has not written. */
TEST(PoolPurge, PagesThatWereNeverWrittenAreNotReleased) {
  (void)purging::purge(pool);
  constexpr size_t bytes = 64 << 20;
  void *const block = pools::allocate(pool, bytes);
  ASSERT_NE(nullptr, block);
  pools::free(pool, block, bytes);
  const auto receipt = purging::purge(pool);
  EXPECT_GE(receipt.arenas_before_bytes, bytes);
  EXPECT_GE(receipt.given_back_bytes(), bytes);
  EXPECT_GT(receipt.rss_before_bytes, 0u);
  EXPECT_LT(receipt.released_bytes(), bytes / 8);
  EXPECT_LT(purging::purge_all().released_bytes(), receipt.rss_before_bytes);
}

TEST(PoolPurge, LiveBlocksStay) {
  std::vector<Block> blocks;
  for (size_t size : sizes)
    for (unsigned char i = 0; i < 10; ++i)
      blocks.push_back(Block::make(size, i));
  for (size_t i = 0; i < blocks.size(); i += 2) blocks[i].free();
  EXPECT_EQ(0, purging::purge(pool).error);
  for (size_t i = 1; i < blocks.size(); i += 2) {
    EXPECT_TRUE(blocks[i].intact());
    blocks[i].free();
  }
}

TEST(PoolPurge, TouchesNoOtherArena) {
  if (!mallctl::serves_malloc()) GTEST_SKIP() << "no general arenas in use";
  Block::make(1, 1).free();
  const No_decay no_decay;
  std::vector<void *> general;
  for (int i = 0; i < 32; ++i) general.push_back(general_block(1 << 20));
  for (void *block : general) free(block);
  dirty_the_pool(16);

  const uint64_t dirty = dirty_pages(Pool::general);
  const uint64_t purges =
      sum_over<Ctl::stats_arena_dirty_npurge>(Pool::general);
  ASSERT_GE(dirty, 32u * 256);
  EXPECT_EQ(0, purging::purge(pool).error);
  EXPECT_EQ(0u, dirty_pages(pool));
  EXPECT_EQ(dirty, dirty_pages(Pool::general));
  EXPECT_EQ(purges, sum_over<Ctl::stats_arena_dirty_npurge>(Pool::general));

  // And the reverse.
  dirty_the_pool(16);
  const uint64_t of_pool = dirty_pages(pool);
  ASSERT_GE(of_pool, 16u * 256);
  const auto receipt = purging::purge(Pool::general);
  EXPECT_EQ(0, receipt.error);
  EXPECT_GE(receipt.given_back_bytes(), uint64_t{32} << 20);
  EXPECT_EQ(of_pool, dirty_pages(pool));
}

TEST(PoolPurge, AllOfThem) {
  Block::make(1, 1).free();
  const No_decay no_decay;
  std::vector<void *> general;
  for (int i = 0; i < 16; ++i) general.push_back(general_block(1 << 20));
  for (void *block : general) free(block);
  dirty_the_pool(16);
  const uint64_t purges = purging::counters(pool).purges;
  const auto receipt = purging::purge_all();
  EXPECT_EQ(0, receipt.error);
  EXPECT_GT(receipt.arenas, arenas_of_pool().size());
  EXPECT_GE(receipt.given_back_bytes(),
            uint64_t{mallctl::serves_malloc() ? 32u : 16u} << 20);
  EXPECT_EQ(0u, dirty_pages(pool));
  EXPECT_EQ(purges + 1, purging::counters(pool).purges);
}

/** What allocate() asked its watcher, and what it told it. */
struct Watched {
  bool may_have = true;
  std::vector<std::pair<Pool, size_t>> asked;
  std::vector<std::pair<const void *, size_t>> allocated;
  std::vector<const void *> freed;
};
Watched watched;
constexpr Pool asked_of = Pool::session;

class WatchedBlocks : public testing::Test {
 protected:
  WatchedBlocks() {
    static constexpr pools::Watcher watcher{
        [](Pool asking, size_t size, pools::Account) {
          watched.asked.emplace_back(asking, size);
          return watched.may_have;
        },
        [](const void *block, size_t size) {
          watched.allocated.emplace_back(block, size);
        },
        [](const void *block) { watched.freed.push_back(block); }};
    watched = Watched{};
    pools::set_watcher(&watcher);
  }
  ~WatchedBlocks() override {
    pools::set_attention(pools::Attention::ceiling, false);
    pools::set_watcher(nullptr);
  }
};

TEST_F(WatchedBlocks, AreAskedForAndTold) {
  constexpr size_t size = pools::watched_size;
  void *const small = pools::allocate(asked_of, size - 1);
  EXPECT_TRUE(watched.asked.empty());
  void *const block = pools::allocate(asked_of, size);
  ASSERT_NE(nullptr, block);
  EXPECT_EQ((std::vector{std::pair{asked_of, size}}), watched.asked);
  EXPECT_EQ((std::vector{std::pair<const void *, size_t>{block, size}}),
            watched.allocated);
  pools::free(asked_of, small, size - 1);
  EXPECT_TRUE(watched.freed.empty());
  pools::free(asked_of, block, size);
  EXPECT_EQ((std::vector<const void *>{block}), watched.freed);
}

TEST_F(WatchedBlocks, AreToldIfMallocServedThem) {
  constexpr size_t size = pools::watched_size;
  std::vector<void *> blocks;
  pools::fail_allocations_for_test({.count = 4, .pool = asked_of});
  for (int i = 0; i < 3; ++i) blocks.push_back(pools::allocate(asked_of, size));
  void *const small = pools::allocate(asked_of, size - 1);
  pools::free(asked_of, small, size - 1);
  EXPECT_TRUE(watched.freed.empty());
  pools::free(asked_of, blocks[0], size);
  pools::free(asked_of, blocks[1], 0);
  pools::free_general(asked_of, blocks[2]);
  EXPECT_EQ((std::vector<const void *>{blocks[0], blocks[1], blocks[2]}),
            watched.freed);
}

TEST_F(WatchedBlocks, AreAskedForOnceWhileAllBlocksAre) {
  pools::set_attention(pools::Attention::ceiling, true);
  void *const small = pools::allocate(asked_of, 100);
  void *const block = pools::allocate(asked_of, pools::watched_size);
  EXPECT_EQ((std::vector{std::pair{asked_of, size_t{100}},
                         std::pair{asked_of, pools::watched_size}}),
            watched.asked);
  EXPECT_EQ(1u, watched.allocated.size());
  pools::free(asked_of, small, 100);
  pools::free(asked_of, block, pools::watched_size);
}

TEST_F(WatchedBlocks, AreNotAllocatedIfTheyAreRefused) {
  watched.may_have = false;
  const uint64_t before = pools::allocated_bytes(asked_of);
  errno = 0;
  EXPECT_EQ(nullptr, pools::allocate(asked_of, pools::watched_size));
  EXPECT_EQ(ENOMEM, errno);
  pools::set_attention(pools::Attention::ceiling, true);
  EXPECT_EQ(nullptr, pools::allocate(asked_of, 100));
  EXPECT_TRUE(watched.allocated.empty());
  EXPECT_EQ(before, pools::allocated_bytes(asked_of));
}

}  // namespace memdiag_test
