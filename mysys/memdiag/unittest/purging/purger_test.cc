/* The thread that gives a pool's pages back when the pool has fallen quiet. */

#include "mysys/memdiag/purging/purger.h"

#include <thread>

#include "mysys/memdiag/purging/policies.h"
#include "mysys/memdiag/purging/purge_log.h"
#include "mysys/memdiag/unittest/purging/lone_purger.h"
#include "mysys/memdiag/unittest/test.h"

namespace memdiag_test {

namespace purger = memdiag::purger;

void burst(unsigned blocks) {
  stay_on_this_cpu();
  std::vector<Block> live;
  for (unsigned i = 0; i < blocks; ++i)
    live.push_back(Block::make(1 << 20, static_cast<unsigned char>(i)));
  for (const Block &block : live) block.free();
}

/** The pool falls quiet after so many ticks in which nothing moves. */
const unsigned quiet_ticks =
    memdiag::spec_of(pool).quiet_ms / memdiag::purger::tick_ms;

void ticks(purger::Watch *watch, unsigned count) {
  for (unsigned i = 0; i < count; ++i) watch->tick();
}

/** Blocks come and go between the ticks, so the pool never falls quiet. */
void load(purger::Watch *watch, unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    for (int n = 0; n < 50; ++n) Block::make(5000, 1).free();
    watch->tick();
  }
}

uint64_t purges() { return purging::counters(pool).purges; }

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

FRESH_TEST(Purger, CleansUpAfterABurst) {
  Lone_purger watch;
  for (int again = 1; again <= 2; ++again) {
    burst(32);
    ticks(&watch, 1);  // sees the burst
    const auto before = purging::counters(pool);
    ticks(&watch, quiet_ticks - 1);
    EXPECT_EQ(before.purges, purges());
    EXPECT_NE(0u, dirty_pages(pool));
    ticks(&watch, 1);
    const auto after = purging::counters(pool);
    EXPECT_EQ(before.purges + 1, after.purges);
    // RSS falls by less if the process touches pages of its own meanwhile.
    constexpr uint64_t of_others = 64 << 10;
    EXPECT_GE(after.purged_bytes - before.purged_bytes + of_others,
              uint64_t{32} << 20);
    EXPECT_EQ(0u, dirty_pages(pool));
    // The purger judges the pages that went back: none was wanted again.
    ticks(&watch, 11);
  }
}

/** The same by its own thread, with a purge as soon as the pool is quiet. */
FRESH_TEST(Purger, ItsThreadTicks) {
  ASSERT_EQ("", memdiag::policies::set(memdiag::Policy::quiet_ms, "all=1"));
  burst(8);
  ASSERT_EQ(0, purger::start());
  // The thread sends no event, and its clock is the system's: ask again.
  const uint64_t end = now_us(CLOCK_MONOTONIC) + 120'000'000;
  while (purges() == 0 && now_us(CLOCK_MONOTONIC) < end) sleep_ms(5);
  purger::stop();
  EXPECT_EQ(1u, purges());
  EXPECT_EQ(0u, dirty_pages(pool));
}

FRESH_TEST(Purger, AlsoAfterABurstBeforeItsStart) {
  burst(8);
  ASSERT_NE(0u, dirty_pages(pool));
  purger::Watch watch;
  ticks(&watch, 1 + quiet_ticks);
  EXPECT_EQ(1u, purges());
  EXPECT_EQ(0u, dirty_pages(pool));
}

FRESH_TEST(Purger, EndsTheSharingOfArenas) {
  purger::Watch watch;
  pools::share_one_arena(true);
  ticks(&watch, purger::starting_ms / purger::tick_ms - 1);
  EXPECT_TRUE(pools::shares_one_arena());
  ticks(&watch, 1);
  EXPECT_FALSE(pools::shares_one_arena());
}

FRESH_TEST(Purger, LeavesAQuietPoolAlone) {
  purger::Watch watch;
  burst(4);
  ticks(&watch, 1 + quiet_ticks);
  ASSERT_EQ(1u, purges());
  // Looking is not using.
  for (int i = 0; i < 100; ++i) {
    watch.tick();
    (void)pools::counters(pool);
    (void)mallctl::refresh();
  }
  EXPECT_EQ(1u, purges());
}

FRESH_TEST(Purger, LetsABusyPoolWork) {
  purger::Watch watch;
  for (int i = 0; i < 100; ++i) {
    burst(16);  // has come and gone between two ticks
    watch.tick();
  }
  EXPECT_EQ(0u, purges());
  ticks(&watch, quiet_ticks);
  EXPECT_EQ(1u, purges());
}

/** A burst is over, and a steady load of small blocks goes on. */
FRESH_TEST(Purger, GivesBackPagesThatABusyPoolNoLongerNeeds) {
  Lone_purger watch;
  for (int round = 1; round <= 3; ++round) {
    std::vector<Block> live;
    for (int i = 0; i < 32; ++i) live.push_back(Block::make(1 << 20, 1));
    load(&watch, 20);
    for (const Block &block : live) block.free();
    // The period in which the burst ended, and one without it.
    load(&watch, 2 * quiet_ticks);
    EXPECT_EQ(static_cast<unsigned>(round), purges());
    EXPECT_LE(dirty_pages(pool), (uint64_t{1} << 20) / 4096);
    // The load had all that it needed: the purge is judged to be right.
    load(&watch, 20);
    EXPECT_EQ(static_cast<unsigned>(round), purges());
    EXPECT_EQ(1u, purging::backoff(pool));
  }
}

/** Small bursts after a quiet purge use the same few pages again and again: the
bytes that they allocate say nothing about the pages that they take. */
FRESH_TEST(Purger, CountsPagesThatAreTakenAgainAndNotBytes) {
  Lone_purger watch;
  for (int round = 1; round <= 4; ++round) {
    burst(100);
    ticks(&watch, 1 + quiet_ticks);
    EXPECT_EQ(static_cast<unsigned>(round), purges());
    const auto before = purging::counters(pool);
    for (int i = 0; i < 11; ++i) {
      for (int n = 0; n < 150; ++n) Block::make(64 << 10, 1).free();
      watch.tick();
    }
    EXPECT_LE(purging::counters(pool).refaulted_bytes - before.refaulted_bytes,
              2u << 20);
    EXPECT_EQ(1u, purging::backoff(pool));
  }
}

/** Pages that are taken again make the pool wait longer. */
FRESH_TEST(Purger, LearnsFromPagesThatAreTakenAgain) {
  Lone_purger watch;
  burst(32);
  ticks(&watch, 1 + quiet_ticks);
  ASSERT_EQ(1u, purges());
  burst(32);
  ticks(&watch, 10);
  EXPECT_EQ(2u, purging::backoff(pool));
  EXPECT_GE(purging::counters(pool).refaulted_bytes, uint64_t{31} << 20);
}

/** A purge that another asked for does not hide what the one before cost. */
FRESH_TEST(Purger, LearnsAlsoIfAnothersPurgeComesFirst) {
  Lone_purger watch;
  burst(32);
  ticks(&watch, 1 + quiet_ticks);
  ASSERT_EQ(1u, purges());
  burst(32);
  (void)purging::purge(pool);
  ticks(&watch, 11);
  const auto rows = memdiag::purge_log::all();
  ASSERT_LE(2u, rows.size());
  EXPECT_STREQ("quiet", rows[0].reason);
  EXPECT_STREQ("asked", rows[1].reason);
  EXPECT_GE(rows[0].refaulted_bytes.value(), uint64_t{31} << 20);
  EXPECT_EQ(rows[0].refaulted_bytes, purging::counters(pool).refaulted_bytes);
  EXPECT_EQ(2u, purging::backoff(pool));
  // One that took nothing again until then teaches nothing.
  const uint64_t before = purges();
  burst(32);
  ticks(&watch, 1 + 2 * quiet_ticks);
  ASSERT_EQ(before + 1, purges());
  (void)purging::purge(pool);
  ticks(&watch, 11);
  EXPECT_EQ(2u, purging::backoff(pool));
}

/** An arena keeps what it takes again in the midst of a load. Pages beyond that
go back at once, and so do all of a pool that has fallen quiet. */
FRESH_TEST(Purger, ALoadKeepsWhatItTakesAgain) {
  Lone_purger watch;
  // Each comes after the arena has rested for a whole period and was purged.
  for (unsigned round = 0; round < 2; ++round) {
    burst(16);
    load(&watch, 2 * quiet_ticks + 2);
    ASSERT_EQ(1u, purges()) << round;
    ASSERT_STREQ("excess", memdiag::purge_log::all().back().reason);
  }
  for (unsigned round = 0; round < 20; ++round) {
    burst(16);
    load(&watch, 2 * quiet_ticks + 2);
    EXPECT_EQ(1u, purges()) << round;
  }
  EXPECT_EQ(1u, purging::backoff(pool));

  burst(64);
  load(&watch, 2 * quiet_ticks);
  EXPECT_EQ(2u, purges());
  EXPECT_LE(dirty_pages(pool), (uint64_t{1} << 20) / 4096);

  burst(32);
  ticks(&watch, quiet_ticks);
  EXPECT_EQ(2u, purges());
  ticks(&watch, 1);
  EXPECT_EQ(3u, purges());
  EXPECT_STREQ("quiet", memdiag::purge_log::all().back().reason);
  EXPECT_EQ(0u, dirty_pages(pool));
}

/** A surplus that stays the same is left to decay. It is what a burst left if
the load had none for a minute. */
FRESH_TEST(Purger, AUsualSurplusIsLeftToDecay) {
  Lone_purger watch;
  burst(16);
  load(&watch, 2 * quiet_ticks);
  ASSERT_EQ(1u, purges());
  burst(16);
  load(&watch, 1300);
  EXPECT_EQ(1u, purges());
  (void)purging::purge(pool);  // as decay does
  load(&watch, 600);
  burst(16);
  load(&watch, 2 * quiet_ticks);
  EXPECT_EQ(3u, purges());
}

/** A large block that lives takes little beside it. */
FRESH_TEST(Purger, GivesBackPagesOfABurstBesideALargeBlock) {
  Lone_purger watch;
  const Block large = Block::make(200 << 20, 1);
  load(&watch, 2 * quiet_ticks);
  const uint64_t before = purges();
  burst(32);
  load(&watch, 2 * quiet_ticks);
  EXPECT_EQ(before + 1, purges());
  large.free();
}

/** A quiet pool forgets its usual surplus. */
FRESH_TEST(Purger, GivesBackPagesOfABurstAfterAQuietTime) {
  Lone_purger watch;
  burst(16);
  load(&watch, 2 * quiet_ticks);
  burst(16);
  load(&watch, 2 * quiet_ticks);  // most of it was taken again: usual
  ticks(&watch, 2 * quiet_ticks);
  const uint64_t before = purges();
  burst(16);
  load(&watch, 2 * quiet_ticks);
  EXPECT_EQ(before + 1, purges());
}

/** The pool is busy in each fourth tick only, and never quiet. */
FRESH_TEST(Purger, GivesBackPagesOfABurstBesideFewStatements) {
  Lone_purger watch;
  burst(32);
  for (unsigned i = 0; i < 5; ++i) {
    load(&watch, 1);
    ticks(&watch, 3);
  }
  EXPECT_EQ(1u, purges());
  EXPECT_LE(dirty_pages(pool), (uint64_t{1} << 20) / 4096);
}

/** A pool that takes the same few pages each second is purged less and less
often, until it leaves more. */
FRESH_TEST(Purger, FewPagesThatAreTakenAgainWait) {
  stay_on_this_cpu();
  Lone_purger watch;
  const auto seconds = [&watch](unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      for (int n = 0; n < 6; ++n) Block::make(200 << 10, 1).free();
      ticks(&watch, 10);
    }
  };
  seconds(40);
  const uint64_t at_first = purges();
  seconds(60);
  EXPECT_LE(purges() - at_first, 12u);
  const uint64_t before = purges();
  burst(32);
  ticks(&watch, 1 + quiet_ticks);
  EXPECT_EQ(before + 1, purges());
  EXPECT_EQ(0u, dirty_pages(pool));
}

/** Background threads never rest altogether: pages that so little leaves behind
are left to decay, however long it goes on. */
FRESH_TEST(Purger, LeavesATrickleToDecay) {
  purger::Watch watch;
  burst(2);
  ticks(&watch, 1 + quiet_ticks);
  ASSERT_EQ(1u, purges());
  for (int i = 0; i < 40; ++i) {  // 20 KB in and out, each tick
    Block::make(10000, 1).free();
    watch.tick();
  }
  EXPECT_EQ(1u, purges());
  // A megabyte of it is worth a purge, and one only.
  for (int i = 0; i < 40; ++i) {
    Block::make(10000, 1).free();
    watch.tick();
  }
  EXPECT_EQ(2u, purges());
}

FRESH_TEST(Purger, DatesThePeakOfABurst) {
  const Test_clock clock;
  purger::Watch watch;
  std::vector<Block> live;
  for (int i = 0; i < 8; ++i) live.push_back(Block::make(1 << 20, 2));
  clock.advance_ms(50);
  watch.tick();  // sees the peak
  const uint64_t seen_us = clock.now();
  for (const Block &block : live) block.free();
  clock.advance_ms(50);
  watch.tick();
  const auto after = pools::counters(pool);
  EXPECT_EQ(8u << 20, after.peak_bytes);
  EXPECT_EQ(seen_us, after.peak_time_us);
}

}  // namespace memdiag_test
