// interruption.h: long reads of a killed statement end early.

#include "mysys/memdiag/interruption.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <vector>

#include "mysys/memdiag/pages/presence.h"
#include "plugin/memdiag/allocator/allocator_snapshot.h"
#include "plugin/memdiag/history/trend.h"

namespace memdiag_test {

using memdiag::Interruptible;
using memdiag::is_interrupted;

bool always(const void *) { return true; }
bool never(const void *) { return false; }

TEST(InterruptionTest, OnlyInsideAnInterruptible) {
  EXPECT_FALSE(is_interrupted());
  {
    const Interruptible outer(always, nullptr);
    EXPECT_TRUE(is_interrupted());
    {
      const Interruptible inner(never, nullptr);
      EXPECT_FALSE(is_interrupted());
    }
    EXPECT_TRUE(is_interrupted());
  }
  EXPECT_FALSE(is_interrupted());
}

TEST(InterruptionTest, ThePredicateGetsItsContext) {
  bool killed = false;
  const Interruptible read(
      [](const void *context) { return *static_cast<const bool *>(context); },
      &killed);
  EXPECT_FALSE(is_interrupted());
  killed = true;
  EXPECT_TRUE(is_interrupted());
}

TEST(InterruptionTest, LookingAtPagesEnds) {
  const std::vector<char> pages(1 << 20, 'x');
  const auto begin = reinterpret_cast<uintptr_t>(pages.data()) /
                     memdiag::page_size() * memdiag::page_size();
  const memdiag::Address_range range{begin, begin + (1 << 20)};
  EXPECT_TRUE(memdiag::Presence(range).bytes(range));
  const Interruptible read(always, nullptr);
  EXPECT_FALSE(memdiag::Presence(range).bytes(range));
  EXPECT_EQ(errno, EINTR);
}

TEST(InterruptionTest, ASnapshotEnds) {
  EXPECT_FALSE(memdiag::take_snapshot().arenas.empty());
  const Interruptible read(always, nullptr);
  EXPECT_TRUE(memdiag::take_snapshot().arenas.empty());
}

TEST(InterruptionTest, AnInterruptedSnapshotIsNotTheLast) {
  (void)memdiag::take_snapshot();
  const auto last = memdiag::last_snapshot();
  ASSERT_NE(last, nullptr);
  const Interruptible read(always, nullptr);
  (void)memdiag::take_snapshot();
  EXPECT_EQ(memdiag::last_snapshot(), last);
}

TEST(InterruptionTest, AHistoryAndItsTrendEnd) {
  memdiag::black_box::Box box;
  (void)box.open("/no folder/box", 100, {});
  for (uint64_t i = 1; i <= 100; ++i) {
    memdiag::black_box::Sample sample{};
    sample.time_us = 1'000'000 * i;
    sample.rss_bytes = i;
    (void)box.append(sample);
  }
  const auto samples = box.this_run(0);
  ASSERT_EQ(100u, samples.size());
  const auto rss = &memdiag::black_box::Sample::rss_bytes;
  EXPECT_TRUE(memdiag::trend(samples, rss));
  const Interruptible read(always, nullptr);
  EXPECT_TRUE(box.this_run(0).empty());
  EXPECT_FALSE(memdiag::trend(samples, rss));
}

TEST(InterruptionTest, AFreeSnapshotIsNotWaitedFor) {
  EXPECT_TRUE(memdiag::try_take_snapshot());
}

}  // namespace memdiag_test
