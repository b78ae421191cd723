// interruption.h: long reads of a killed statement end early.

#include "mysys/memdiag/base/interruption.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "mysys/memdiag/pages/presence.h"
#include "plugin/memdiag/allocator/allocator_snapshot.h"
#include "plugin/memdiag/history/trend.h"
#include "plugin/memdiag/unittest/snapshots.h"

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
  (void)box.open("/no folder/box", 100, {}, 0);
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

/** A thread that is in the midst of a snapshot until this is destroyed. */
class Long_snapshot {
 public:
  Long_snapshot() {
    m_thread = std::thread([this] {
      const Interruptible read(stay, this);
      (void)memdiag::take_snapshot();
    });
    m_is_inside.wait(false);
  }
  ~Long_snapshot() {
    {
      const std::lock_guard<std::mutex> guard(m_mutex);
      m_may_end = true;
    }
    m_ends.notify_one();
    m_thread.join();
    EXPECT_FALSE(m_gave_up) << "a thread waited for it";
  }

 private:
  /** Called between two arenas. Where others wait for this thread for ever, the
  test is to fail and not to hang. */
  static bool stay(const void *context) {
    auto *const self = const_cast<Long_snapshot *>(
        static_cast<const Long_snapshot *>(context));
    self->m_is_inside = true;
    self->m_is_inside.notify_one();
    std::unique_lock<std::mutex> lock(self->m_mutex);
    if (!self->m_gave_up)
      self->m_gave_up = !self->m_ends.wait_for(
          lock, std::chrono::seconds(30), [self] { return self->m_may_end; });
    return false;
  }

  std::atomic<bool> m_is_inside{false};
  /** Protects the others. */
  std::mutex m_mutex;
  std::condition_variable m_ends;
  bool m_may_end{false};
  bool m_gave_up{false};
  std::thread m_thread;
};

TEST(InterruptionTest, StatusDoesNotWaitForASnapshotOfOthers) {
  (void)memdiag::take_snapshot();
  const auto last = memdiag::last_snapshot();
  Long_snapshot long_one;
  EXPECT_FALSE(memdiag::try_take_snapshot());
  EXPECT_EQ(memdiag::last_snapshot(), last);
}

TEST(InterruptionTest, AKilledReaderDoesNotWaitForASnapshotOfOthers) {
  Long_snapshot long_one;
  std::atomic<bool> begins{false};
  std::atomic<bool> killed{false};
  memdiag::Snapshot snapshot{};
  std::thread reader([&] {
    const Interruptible read(
        [](const void *context) {
          return static_cast<const std::atomic<bool> *>(context)->load();
        },
        &killed);
    begins = true;
    begins.notify_one();
    snapshot = memdiag::take_snapshot(memdiag::all_details);
  });
  begins.wait(false);
  killed = true;
  reader.join();
  EXPECT_TRUE(snapshot.arenas.empty());
  for (size_t i = 0; i < memdiag::pool_count; ++i) {
    EXPECT_STREQ(memdiag::pool_specs[i].name, snapshot.pools[i].name);
    EXPECT_FALSE(snapshot.pools[i].live_bytes);
  }
}

/** A thread that waits is served when the others have ended. */
TEST(InterruptionTest, SnapshotsAreTakenInTurn) {
  std::vector<std::thread> readers;
  {
    Long_snapshot long_one;
    for (int i = 0; i < 8; ++i)
      readers.emplace_back(
          [] { EXPECT_FALSE(memdiag::take_snapshot().arenas.empty()); });
  }
  for (std::thread &reader : readers) reader.join();
}

}  // namespace memdiag_test
