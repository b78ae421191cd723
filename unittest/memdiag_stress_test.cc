/* Everything at once. Worth most under the thread sanitizer. */

#include <atomic>
#include <mutex>
#include <random>
#include <thread>

#include "memdiag_purger.h"
#include "memdiag_test.h"

namespace memdiag_test {

/** Blocks that one thread made and another will free. */
struct Exchange {
  std::mutex mutex;
  std::vector<Block> blocks;

  void put(const Block &block) {
    const std::lock_guard<std::mutex> guard(mutex);
    blocks.push_back(block);
  }
  bool take(Block *block) {
    const std::lock_guard<std::mutex> guard(mutex);
    if (blocks.empty()) return false;
    *block = blocks.back();
    blocks.pop_back();
    return true;
  }
};

void allocate_and_free(Exchange *exchange, unsigned seed, int rounds) {
  std::minstd_rand random(seed);
  std::vector<Block> mine;
  for (int i = 0; i < rounds; ++i) {
    const size_t size = 1 + random() % (random() % 50 == 0 ? 2000000 : 20000);
    const Block block = Block::make(size, static_cast<unsigned char>(random()));
    ASSERT_NE(nullptr, block.memory);
    if (random() % 3 == 0)
      exchange->put(block);
    else
      mine.push_back(block);
    Block given;
    if (random() % 3 == 0 && exchange->take(&given)) mine.push_back(given);
    while (mine.size() > random() % 40) {
      const size_t victim = random() % mine.size();
      ASSERT_TRUE(mine[victim].intact());
      mine[victim].free();
      mine[victim] = mine.back();
      mine.pop_back();
    }
  }
  for (const Block &block : mine) {
    ASSERT_TRUE(block.intact());
    block.free();
  }
}

TEST(Stress, EverythingAtOnce) {
  const uint64_t live = pools::counters(pool).live_bytes;
  const int rounds = sanitized ? 3000 : 8000;
  Exchange exchange;
  std::atomic<bool> stop{false};
  ASSERT_EQ(0, memdiag::purger::start());

  std::vector<std::thread> workers;
  for (unsigned t = 0; t < 4; ++t)
    workers.emplace_back(
        [&exchange, t, rounds] { allocate_and_free(&exchange, t, rounds); });
  std::vector<std::thread> others;
  others.emplace_back([&] {
    while (!stop) EXPECT_EQ(0, pools::purge(pool).error);
  });
  others.emplace_back([&] {
    while (!stop) EXPECT_EQ(0, pools::purge_all().error);
  });
  others.emplace_back([&] {
    uint64_t peak = 0;
    while (!stop) {
      const auto counters = pools::counters(pool);
      EXPECT_GE(counters.peak_bytes, peak);
      EXPECT_GE(counters.peak_bytes, counters.live_bytes);
      peak = counters.peak_bytes;
      (void)pools::activity(pool);
    }
  });
  others.emplace_back([&] {
    while (!stop) {
      EXPECT_EQ(0, mallctl::refresh());
      for (unsigned arena : arenas_of_pool()) {
        EXPECT_EQ(pool, pools::owner_of_arena(arena));
        (void)mallctl::read<Ctl::stats_arena_pdirty>(arena);
        char name[mallctl::arena_name_size];
        EXPECT_EQ(0, mallctl::arena_name(arena, name));
      }
    }
  });
  others.emplace_back([&] {
    while (!stop) {
      pools::fail_allocations_for_test(2);
      sleep_ms(3);
    }
  });
  others.emplace_back([&] {  // threads come and go
    unsigned seed = 100;
    while (!stop)
      std::thread([&] { allocate_and_free(&exchange, seed++, 20); }).join();
  });
  for (std::thread &thread : workers) thread.join();
  stop = true;
  for (std::thread &thread : others) thread.join();
  memdiag::purger::stop();
  pools::fail_allocations_for_test(0);

  for (const Block &block : exchange.blocks) {
    EXPECT_TRUE(block.intact());
    block.free();
  }
  EXPECT_GT(pools::counters(pool).fallbacks, 0u);
  EXPECT_EQ(live, pools::counters(pool).live_bytes);
  EXPECT_EQ(live, allocated_in_pool());
  EXPECT_EQ(0, pools::purge(pool).error);
  EXPECT_EQ(0u, dirty_pages(pool));
}

}  // namespace memdiag_test
