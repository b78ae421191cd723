/* The thread that gives a pool's pages back when the pool has fallen quiet. */

#include "mysys/memdiag/purging/purger.h"

#include <atomic>
#include <thread>

#include "mysys/memdiag/unittest/test.h"

namespace memdiag_test {

namespace purger = memdiag::purger;

struct Running_purger {
  Running_purger() { EXPECT_EQ(0, purger::start()); }
  ~Running_purger() { purger::stop(); }
};

void burst(unsigned blocks) {
  std::vector<Block> live;
  for (unsigned i = 0; i < blocks; ++i)
    live.push_back(Block::make(1 << 20, static_cast<unsigned char>(i)));
  for (const Block &block : live) block.free();
}

/** Wait until the pool has no unused page left, and as many purges are counted:
a purge is counted when it has ended. @return false: in vain */
bool clean_within_ms(unsigned ms, uint64_t purges = 0) {
  const uint64_t end = now_us(CLOCK_MONOTONIC) + ms * uint64_t{1000};
  while (dirty_pages(pool) != 0 || pools::counters(pool).purges < purges) {
    if (now_us(CLOCK_MONOTONIC) > end) return false;
    sleep_ms(20);
  }
  return true;
}

TEST(Purger, StartsOnceAndAgain) {
  purger::stop();  // not running: nothing happens
  EXPECT_EQ(0, purger::start());
  EXPECT_EQ(EALREADY, purger::start());
  purger::stop();
  purger::stop();
  EXPECT_EQ(0, purger::start());
  EXPECT_EQ(EALREADY, purger::start());
  purger::stop();
}

TEST(Purger, StartAndStopFromManyThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      for (int i = 0; i < 200; ++i) {
        const int error = purger::start();
        EXPECT_TRUE(error == 0 || error == EALREADY) << error;
        purger::stop();
      }
    });
  for (std::thread &thread : threads) thread.join();
  EXPECT_EQ(0, purger::start());
  purger::stop();
}

TEST(Purger, CleansUpAfterABurst) {
  const Running_purger running;
  const auto before = pools::counters(pool);
  for (int again = 1; again <= 2; ++again) {
    burst(32);
    EXPECT_TRUE(clean_within_ms(2000, before.purges + again)) << again;
  }
  const auto after = pools::counters(pool);
  EXPECT_EQ(before.purges + 2, after.purges);
  EXPECT_GE(after.purged_bytes - before.purged_bytes, uint64_t{32} << 20);
}

TEST(Purger, AlsoAfterABurstBeforeItsStart) {
  burst(8);
  ASSERT_NE(0u, dirty_pages(pool));
  const Running_purger running;
  EXPECT_TRUE(clean_within_ms(2000));
}

TEST(Purger, LeavesAQuietPoolAlone) {
  const Running_purger running;
  const uint64_t purges = pools::counters(pool).purges + 1;
  burst(4);
  ASSERT_TRUE(clean_within_ms(2000, purges));
  // Looking is not using.
  for (int i = 0; i < 15; ++i) {
    sleep_ms(100);
    (void)pools::counters(pool);
    (void)mallctl::refresh();
  }
  EXPECT_EQ(purges, pools::counters(pool).purges);
}

TEST(Purger, LetsABusyPoolWork) {
  const Running_purger running;
  burst(16);
  const uint64_t purges = pools::counters(pool).purges;
  uint64_t last = now_us(CLOCK_MONOTONIC);
  const uint64_t end = last + 1500000;
  uint64_t longest_gap = 0;
  uint64_t seen = purges;
  while (last < end) {
    sleep_ms(5);
    Block::make(5000, 1).free();
    const uint64_t now = now_us(CLOCK_MONOTONIC);
    longest_gap = std::max(longest_gap, now - last);
    last = now;
    seen = pools::counters(pool).purges;
  }
  // On a machine that let this thread wait, the pool really was quiet.
  if (longest_gap < 300000) {
    EXPECT_EQ(purges, seen);
  }
  EXPECT_TRUE(clean_within_ms(2000));
}

/** Background threads never rest altogether: what so little leaves behind is
left to decay, however long it goes on. */
TEST(Purger, LeavesATrickleToDecay) {
  const Running_purger running;
  burst(2);
  const uint64_t purges = pools::counters(pool).purges + 1;
  ASSERT_TRUE(clean_within_ms(2000, purges));
  for (int i = 0; i < 40; ++i) {  // 20 KB in and out, each tick
    Block::make(10000, 1).free();
    sleep_ms(50);
  }
  EXPECT_EQ(purges, pools::counters(pool).purges);
  // A megabyte of it is worth a purge, and one only.
  for (int i = 0; i < 40; ++i) {
    Block::make(20000, 1).free();
    sleep_ms(50);
  }
  EXPECT_GE(purges + 2, pools::counters(pool).purges);
}

TEST(Purger, DatesThePeakOfABurst) {
  const Running_purger running;
  const auto before = pools::counters(pool);
  const uint64_t start = now_us();
  std::vector<Block> live;
  while (live.size() * (1 << 20) <= before.peak_bytes + (8 << 20))
    live.push_back(Block::make(1 << 20, 2));
  const uint64_t expected = live.size() << 20;
  // The sampler, not this test, must see it.
  sleep_ms(600);
  const uint64_t end = now_us();
  for (const Block &block : live) block.free();
  const auto after = pools::counters(pool);
  EXPECT_EQ(expected, after.peak_bytes);
  EXPECT_GE(after.peak_time_us, start);
  EXPECT_LE(after.peak_time_us, end);
}

}  // namespace memdiag_test
