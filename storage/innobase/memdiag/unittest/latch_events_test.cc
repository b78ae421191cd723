/* Events of latches, which the first waiter makes. */

#include "storage/innobase/memdiag/latch_events.h"

#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <thread>
#include <vector>

// InnoDB has these in os0event.cc.
struct os_event {
  std::atomic<int> signals{0};
};

namespace memdiag_test {

std::atomic<int> alive{0};
std::atomic<bool> out_of_memory{false};

}  // namespace memdiag_test

os_event *os_event_create() {
  if (memdiag_test::out_of_memory) throw std::bad_alloc();
  ++memdiag_test::alive;
  return new os_event;
}

void os_event_set(os_event *event) { ++event->signals; }

void os_event_destroy(os_event *&event) {
  if (event == nullptr) return;
  delete event;
  event = nullptr;
  --memdiag_test::alive;
}

namespace memdiag_test {

using memdiag::Latch_event;

class LatchEvents : public ::testing::Test {
 protected:
  LatchEvents() { Latch_event::begin(); }

  ~LatchEvents() override {
    out_of_memory = false;
    Latch_event::end();
    EXPECT_EQ(0, alive);
  }
};

TEST_F(LatchEvents, ALatchWithoutWaitersHasNone) {
  Latch_event event;
  EXPECT_TRUE(event == nullptr);
  os_event_set(event);  // no thread sleeps
  os_event_destroy(event);
  EXPECT_EQ(1, alive);  // the spare one
}

TEST_F(LatchEvents, TheFirstWaiterMakesIt) {
  Latch_event event;
  os_event *const made = event;
  EXPECT_FALSE(event == nullptr);
  EXPECT_EQ(2, alive);  // and the spare one
  EXPECT_EQ(made, static_cast<os_event *>(event));
  os_event_set(event);
  EXPECT_EQ(1, made->signals);
  os_event_destroy(event);
  EXPECT_TRUE(event == nullptr);
  EXPECT_EQ(1, alive);
}

TEST_F(LatchEvents, LatchesDoNotShareThem) {
  Latch_event one, other;
  EXPECT_NE(static_cast<os_event *>(one), static_cast<os_event *>(other));
  os_event_destroy(one);
  os_event_destroy(other);
}

TEST_F(LatchEvents, WithoutMemoryTheSpareOneServes) {
  Latch_event before, one, other;
  os_event *const made = before;
  out_of_memory = true;
  os_event *const spare = one;
  EXPECT_NE(made, spare);
  EXPECT_EQ(spare, static_cast<os_event *>(other));
  os_event_set(other);
  EXPECT_EQ(1, spare->signals);
  os_event_destroy(one);
  os_event_destroy(other);
  EXPECT_EQ(2, alive);  // the spare one is still there
  os_event_destroy(before);
}

TEST_F(LatchEvents, ManyWaitersMakeOne) {
  for (int round = 0; round < 200; ++round) {
    Latch_event event;
    std::atomic<bool> go{false};
    std::vector<os_event *> seen(4);
    std::vector<std::jthread> threads;
    for (os_event *&mine : seen)
      threads.emplace_back([&event, &go, &mine] {
        while (!go) std::this_thread::yield();
        mine = event;
      });
    go = true;
    threads.clear();
    for (os_event *mine : seen) EXPECT_EQ(seen[0], mine);
    EXPECT_EQ(2, alive);
    os_event_destroy(event);
  }
}

// As a latch uses it: changed and looked at in this order, no wakeup is lost.
// `slept`: of the rounds, those in which the waiter did not see the release.
template <typename Release, typename Wait>
void race(Release release, Wait wait) {
  int slept = 0;
  for (int round = 0; round < 2000; ++round) {
    Latch_event event;
    std::atomic<int> ready{0};
    os_event *slept_on = nullptr;
    const auto together = [&ready] {
      ++ready;
      while (ready < 2) std::this_thread::yield();
    };
    {
      const std::jthread releaser([&] {
        together();
        // So that the release meets each step of the waiter in some round.
        for (std::atomic<int> i{0}; i < round % 100; ++i) {
        }
        release(event, round);
      });
      const std::jthread waiter([&] {
        together();
        os_event *const made = event;
        if (wait(round)) slept_on = made;
      });
    }
    if (slept_on != nullptr) {
      ++slept;
      EXPECT_EQ(1, slept_on->signals);
    }
    os_event_destroy(event);
  }
  EXPECT_GT(slept, 0);
}

TEST_F(LatchEvents, AWriterThatWaitsForReadersMissesNoRelease) {
  std::atomic<int> readers{0};
  race(
      [&](Latch_event &event, int) {
        ++readers;
        os_event_set(event);
      },
      [&](int round) { return readers <= round; });
}

TEST_F(LatchEvents, AWaiterWithAMarkMissesNoRelease) {
  std::atomic<int> released{0};
  std::atomic<bool> waiters{false};
  race(
      [&](Latch_event &event, int) {
        ++released;
        if (waiters.exchange(false)) os_event_set(event);
      },
      [&](int round) {
        waiters = true;
        return released <= round;
      });
}

}  // namespace memdiag_test
