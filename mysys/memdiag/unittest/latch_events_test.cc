/* Events of latches, which the first waiter makes. */

#include "storage/innobase/memdiag_latch_events.h"

#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <thread>
#include <vector>

// What InnoDB has in os0event.cc.
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
  ~LatchEvents() override {
    out_of_memory = false;
    Latch_event::end();
    EXPECT_EQ(0, alive);
  }
};

TEST_F(LatchEvents, ALatchWithoutWaitersHasNone) {
  Latch_event event;
  EXPECT_TRUE(event == nullptr);
  os_event_set(event);  // nobody sleeps
  os_event_destroy(event);
  EXPECT_EQ(0, alive);
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
        while (!go) {
        }
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
TEST_F(LatchEvents, AReleaserSeesTheEventOrTheWaiterSeesTheRelease) {
  for (int round = 0; round < 2000; ++round) {
    Latch_event event;
    std::atomic<int> lock_word{-1};
    bool sleeps = false;
    os_event *slept_on = nullptr;
    {
      const std::jthread releaser([&] {
        ++lock_word;
        os_event_set(event);
      });
      const std::jthread waiter([&] {
        slept_on = event;
        sleeps = lock_word < 0;
      });
    }
    if (sleeps) {
      EXPECT_EQ(1, slept_on->signals);
    }
    os_event_destroy(event);
  }
}

}  // namespace memdiag_test
