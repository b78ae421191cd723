/* Every pool of the list: no block of one ever serves another, nor malloc(). */

#include <algorithm>
#include <atomic>
#include <thread>

#include "mysys/memdiag/unittest/test.h"

namespace memdiag_test {

Pool owner_of(const void *block) {
  const auto arena = mallctl::arena_of(block);
  return arena ? pools::owner_of_arena(arena.value()) : Pool::general;
}

/** Writes to all of a small block, and of a large one to the beginning of each
page and the last byte. jemalloc gives large blocks whole pages, so blocks that
overlap have one of these bytes in common, and the thread sanitizer sees it. */
void touch(void *block, size_t size) {
  constexpr size_t page = 4096;
  auto *const bytes = static_cast<unsigned char *>(block);
  memset(block, 1, std::min(size, page));
  for (size_t at = page - reinterpret_cast<uintptr_t>(block) % page; at < size;
       at += page)
    bytes[at] = 1;
  bytes[size - 1] = 1;
}

/** In a thread, for malloc() and each pool in turn: blocks of all sizes come
from it and from nowhere else, whatever was freed before.
@param pools_done  counts the pools
@return how many did not */
size_t misplaced(unsigned rounds, std::atomic<unsigned> *pools_done = nullptr) {
  size_t wrong = 0;
  for (unsigned round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < memdiag::pool_count; ++i) {
      const Pool each = static_cast<Pool>(i);
      if (uses_malloc(each) && each != Pool::general) continue;
      std::vector<std::pair<void *, size_t>> blocks;
      for (size_t size : sizes)
        for (int n = 0; n < (size > 100000 ? 1 : 40); ++n) {
          void *block = pools::allocate(each, size, n % 2 == 0);
          if (block == nullptr || owner_of(block) != each) ++wrong;
          touch(block, size);
          blocks.emplace_back(block, size);
        }
      for (const auto &[block, size] : blocks) pools::free(each, block, size);
      if (pools_done == nullptr) continue;
      ++*pools_done;
      pools_done->notify_one();
    }
  }
  return wrong;
}

TEST(EveryPool, KeepsItsBlocksToItself) {
  std::atomic<size_t> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&wrong] { wrong += misplaced(6); });
  for (std::thread &thread : threads) thread.join();
  EXPECT_EQ(0u, wrong.load());
}

TEST(EveryPool, WhatWaitsInItsCachesGoesBackWithAPurge) {
  EXPECT_EQ(0u, misplaced(1));
  for (size_t i = first_pool; i < memdiag::pool_count; ++i) {
    const Pool each = static_cast<Pool>(i);
    EXPECT_EQ(0, purging::purge(each).error);
    ASSERT_EQ(0, mallctl::refresh());
    EXPECT_EQ(0u, sum_over<Ctl::stats_arena_small_allocated>(each) +
                      sum_over<Ctl::stats_arena_large_allocated>(each))
        << memdiag::pool_specs[i].name;
    EXPECT_EQ(0u, pools::counters(each).live_bytes);
    EXPECT_EQ(0u, dirty_pages(each));
    // And the cache works again.
    void *block = pools::allocate(each, 100);
    EXPECT_EQ(each, owner_of(block));
    pools::free(each, block, 100);
  }
}

TEST(EveryPool, HasNoMoreArenasThanItMay) {
  EXPECT_EQ(0u, misplaced(1));
  for (size_t i = first_pool; i < memdiag::pool_count; ++i) {
    unsigned arenas = 0;
    pools::for_each_arena(static_cast<Pool>(i), [&](unsigned) { ++arenas; });
    EXPECT_LE(arenas, memdiag::pool_specs[i].arenas);
    EXPECT_GE(arenas, 1u);
  }
}

TEST(EveryPool, CachesAreUsableWhileTheyArePurged) {
  std::atomic<bool> stop{false};
  std::atomic<unsigned> pools_done{0};
  std::thread purging([&] {
    for (;;) {
      for (size_t i = first_pool; i < memdiag::pool_count; ++i)
        EXPECT_EQ(0, purging::purge(static_cast<Pool>(i)).error);
      // The others have their turn: jemalloc's mutexes are not fair.
      const unsigned done = pools_done;
      if (stop) return;
      pools_done.wait(done);
    }
  });
  std::atomic<size_t> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] { wrong += misplaced(4, &pools_done); });
  for (std::thread &thread : threads) thread.join();
  stop = true;
  ++pools_done;
  pools_done.notify_one();
  purging.join();
  EXPECT_EQ(0u, wrong.load());
}

FRESH_TEST(EveryPool, CachesSurviveAFork) {
  if (!malloc_after_fork) GTEST_SKIP() << "Stress does it without malloc()";
  EXPECT_EQ(0u, misplaced(1));
  std::atomic<bool> stop{false};
  // While the child runs, which has a processor then also on a busy machine.
  std::atomic<bool> rest{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&stop, &rest] {
      while (!stop.load()) {
        rest.wait(true);
        (void)misplaced(1);
      }
    });
  for (int child = 0; child < 5; ++child) {
    EXPECT_EQ(0, in_child([] { return misplaced(2) == 0 ? 0 : 1; },
                          [&rest] { rest = true; }));
    rest = false;
    rest.notify_all();
  }
  stop = true;
  for (std::thread &thread : threads) thread.join();
}

}  // namespace memdiag_test
