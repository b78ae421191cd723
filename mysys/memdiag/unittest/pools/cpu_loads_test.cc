/* Loads on many CPUs, simulated by one thread: what is purged of a pool's
arenas, and what stays. */

#include <cstring>
#include <random>
#include <vector>

#include "mysys/memdiag/unittest/pools/cpu_of_thread.h"
#include "mysys/memdiag/unittest/purging/lone_purger.h"
#include "mysys/memdiag/unittest/test.h"

namespace memdiag_test {

/** Blocks of that size come and go on a CPU, `all_bytes` at once. */
void blocks_on(unsigned cpu, Pool each, size_t size, size_t all_bytes,
               bool written = false) {
  cpu_of_thread = static_cast<int>(cpu);
  std::vector<void *> blocks;
  for (size_t bytes = 0; bytes < all_bytes; bytes += size) {
    blocks.push_back(pools::allocate(each, size));
    if (written) memset(blocks.back(), 1, size);
  }
  for (void *const block : blocks) pools::free(each, block, size);
}

/** A statement on a CPU: blocks of that size, 2 MB in all, come and go. */
void statement_on(unsigned cpu, Pool each, size_t size) {
  blocks_on(cpu, each, size, 2 << 20, true);
}

uint64_t dirty_bytes_of(Pool each) {
  return purging::dirty_bytes(each).value_or(0);
}

/** It has so many CPUs, and pages go back by purges alone. */
struct Machine {
  explicit Machine(unsigned cpus) : allowed(first_cpus(cpus)) {}
  const Allowed_cpus allowed;
  Lone_purger watch;
};

/** The pool's arenas are more than the statements at a moment: all together
have many unused pages, and each needs its own for its next statement. */
FRESH_TEST(Cpus, ASteadyLoadOfFewStatementsIsNotPurged) {
  constexpr unsigned cpus = 16;
  constexpr Pool each = Pool::session;
  const Allowed_cpus allowed(first_cpus(cpus));
  memdiag::purger::Watch watch;
  for (int tick = 0; tick < 150; ++tick) {
    for (unsigned cpu = 0; cpu < cpus; ++cpu)
      statement_on(cpu, each, 256 << 10);
    watch.tick();
  }
  EXPECT_EQ(0u, purging::counters(each).purges);
  EXPECT_GE(dirty_bytes_of(each), uint64_t{cpus} << 20);
}

/** One session that wanders over the CPUs, 33 statements in a second. Purges
stop once it is seen that each CPU's pages are wanted again. */
FRESH_TEST(Cpus, AWanderingSessionKeepsItsPages) {
  constexpr unsigned cpus = 32;
  constexpr Pool each = Pool::fts_query;
  const Allowed_cpus allowed(first_cpus(cpus));
  memdiag::purger::Watch watch;
  unsigned cpu = 0;
  const auto load = [&](int ticks) {
    for (int tick = 0; tick < ticks; ++tick) {
      for (int n = 0; n < (tick % 10 == 0 ? 6 : 3); ++n)
        statement_on(cpu++ % cpus, each, 64 << 10);
      watch.tick();
    }
  };
  load(50);
  const auto before = purging::counters(each);
  EXPECT_LE(before.purges, 3u);
  EXPECT_LE(before.purged_bytes - before.refaulted_bytes, 16u << 20)
      << "what is wanted again is known";
  load(100);
  EXPECT_EQ(before.purges, purging::counters(each).purges);
}

/** Sessions that wander over the CPUs, 60 statements in a second: each arena is
left alone for half a second now and then, and wanted again soon. */
FRESH_TEST(Cpus, ALoadThatWandersKeepsItsPages) {
  constexpr unsigned cpus = 32;
  constexpr Pool each = Pool::fts_query;
  Machine machine(cpus);
  std::minstd_rand dice(1);
  unsigned busy = cpus;
  const auto load = [&](unsigned seconds) {
    for (unsigned tick = 0; tick < 1000 * seconds / memdiag::purger::tick_ms;
         ++tick) {
      for (int n = 0; n < 6; ++n)
        blocks_on(dice() % busy, each, 64 << 10, 1 << 20);
      machine.watch.tick();
    }
  };
  // It is tried when it begins, as more and more arenas have pages.
  load(320);
  const auto tried = purging::counters(each);
  EXPECT_LE(tried.purges, 8u);
  load(600);
  EXPECT_EQ(tried.purges, purging::counters(each).purges);
  const uint64_t kept_bytes = dirty_bytes_of(each);
  EXPECT_GE(kept_bytes, uint64_t{24} << 20);

  // The pages that a burst leaves still go back.
  for (unsigned cpu = 0; cpu < cpus; ++cpu)
    blocks_on(cpu, each, 64 << 10, 8 << 20);
  EXPECT_GE(dirty_bytes_of(each), uint64_t{200} << 20);
  load(2);
  EXPECT_LE(dirty_bytes_of(each), kept_bytes + (uint64_t{8} << 20));
  EXPECT_EQ(1u, purging::backoff(each));

  // A load that became smaller keeps less, once what it left has decayed. Each
  // arena remembers for a minute what it took.
  (void)purging::purge(each);
  busy = 8;
  load(62);
  for (unsigned cpu = 0; cpu < cpus; ++cpu)
    blocks_on(cpu, each, 64 << 10, 1 << 20);
  load(2);
  EXPECT_LE(dirty_bytes_of(each), uint64_t{14} << 20);
}

/** After a burst on all CPUs, a steady load on a few goes on. */
FRESH_TEST(Cpus, OnlyArenasThatRestArePurged) {
  constexpr unsigned cpus = 16;
  constexpr unsigned busy = 4;
  constexpr Pool each = Pool::session;
  Machine machine(cpus);
  for (unsigned cpu = 0; cpu < cpus; ++cpu) statement_on(cpu, each, 256 << 10);
  for (int tick = 0; tick < 20; ++tick) {
    for (unsigned cpu = 0; cpu < busy; ++cpu)
      statement_on(cpu, each, 256 << 10);
    machine.watch.tick();
  }
  const auto purged = purging::counters(each);
  EXPECT_EQ(1u, purged.purges);
  EXPECT_GE(purged.purged_bytes, uint64_t{cpus - busy} * 2 << 20);
  EXPECT_EQ(0u, purged.refaulted_bytes);
  EXPECT_EQ(1u, purging::backoff(each));
  // The busy ones have kept theirs.
  EXPECT_GE(dirty_bytes_of(each), uint64_t{busy} * 2 << 20);
}

/** Each arena needs more than half of what it has after the burst. */
FRESH_TEST(Cpus, ABurstBesideALoadOfAllArenasGoesBack) {
  constexpr unsigned cpus = 16;
  constexpr Pool each = Pool::session;
  Machine machine(cpus);
  const auto load = [&](unsigned ms) {
    for (unsigned tick = 0; tick < ms / memdiag::purger::tick_ms; ++tick) {
      for (unsigned cpu = 0; cpu < cpus; ++cpu)
        blocks_on(cpu, each, 256 << 10, 2 << 20);
      machine.watch.tick();
    }
  };
  load(5000);
  const uint64_t before = dirty_bytes_of(each);
  for (unsigned round = 1; round <= 3; ++round) {
    for (unsigned cpu = 0; cpu < cpus; ++cpu)
      blocks_on(cpu, each, 256 << 10, 3584 << 10);
    const uint64_t left_bytes = dirty_bytes_of(each) - before;
    EXPECT_GE(left_bytes, uint64_t{20} << 20);
    load(2000);
    EXPECT_LE(dirty_bytes_of(each), before + left_bytes / 10);
    load(3000);
    EXPECT_EQ(round, purging::counters(each).purges);
  }
}

/** A purge of the arenas that rest leaves what another one needs. */
FRESH_TEST(Cpus, WhatAPurgeOfOthersLeftGoesBackOnceThePoolIsQuiet) {
  constexpr Pool each = Pool::session;
  Machine machine(4);
  blocks_on(0, each, 256 << 10, 16 << 20);
  for (int tick = 0; purging::counters(each).purges == 0; ++tick) {
    ASSERT_LT(tick, 20);
    if (tick == 6) blocks_on(1, each, 256 << 10, 16 << 20);
    blocks_on(2, each, 256 << 10, 256 << 10);
    machine.watch.tick();
  }
  ASSERT_GE(dirty_bytes_of(each), uint64_t{16} << 20);
  for (int tick = 0; tick < 10; ++tick) machine.watch.tick();
  EXPECT_EQ(0u, dirty_bytes_of(each));
}

/** Sessions that stay on a CPU for ten seconds: the pages that one left wait
for the next, or decay. */
FRESH_TEST(Cpus, PagesThatWanderersLeaveAreNotPurged) {
  constexpr unsigned cpus = 16;
  constexpr Pool each = Pool::session;
  Machine machine(cpus);
  std::minstd_rand dice(1);
  unsigned cpu_of[cpus];
  for (unsigned i = 0; i < cpus; ++i) cpu_of[i] = i;
  for (int tick = 0; tick < 600; ++tick) {
    if (tick % 6 == 0) cpu_of[dice() % cpus] = dice() % cpus;
    for (const unsigned cpu : cpu_of) blocks_on(cpu, each, 256 << 10, 2 << 20);
    machine.watch.tick();
  }
  EXPECT_EQ(0u, purging::counters(each).purges);
}

/** One statement in a tick, on 64 CPUs: of what a purge gives back, less than
half is taken again within a second, and all of it later. */
FRESH_TEST(Cpus, AFewStatementsThatWanderArePurgedAFewTimes) {
  constexpr unsigned cpus = 64;
  constexpr Pool each = Pool::fts_query;
  Machine machine(cpus);
  std::minstd_rand dice(1);
  const auto purges_in = [&](unsigned ticks) {
    const uint64_t before = purging::counters(each).purges;
    for (unsigned tick = 0; tick < ticks; ++tick) {
      blocks_on(dice() % cpus, each, 64 << 10, 2 << 20);
      machine.watch.tick();
    }
    return purging::counters(each).purges - before;
  };
  EXPECT_LE(purges_in(600), 24u);
  EXPECT_LE(purges_in(600), 4u);
}

/** Little comes and goes, on another CPU each time, and the pool is always
quiet. It takes again what a purge gave back, but not within a second. */
FRESH_TEST(Cpus, ATrickleThatWandersIsPurgedLessAndLessOften) {
  constexpr unsigned cpus = 32;
  constexpr Pool each = Pool::fts_query;
  Machine machine(cpus);
  for (unsigned tick = 0; tick < 1200; ++tick) {
    blocks_on(tick % cpus, each, 20 << 10, 20 << 10);
    machine.watch.tick();
  }
  EXPECT_LE(purging::counters(each).purges, 8u);
}

}  // namespace memdiag_test
