/* The events that latches share. */

#include "storage/innobase/memdiag_latch_events.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <set>
#include <thread>
#include <vector>

namespace memdiag_test {

std::atomic<int> alive{0};

struct Event {
  Event() { ++alive; }
  ~Event() { --alive; }
  char bytes[112];
};

constexpr size_t count = 8;
using Events = memdiag::Shared_events<Event, count>;

TEST(LatchEvents, AreGivenInTurn) {
  const auto events = std::make_unique<Events>();
  std::vector<Event *> first;
  for (size_t i = 0; i < count; ++i) first.push_back(events->next());
  EXPECT_EQ(count, std::set(first.begin(), first.end()).size());
  EXPECT_EQ(static_cast<int>(count), alive);
  for (Event *event : first) EXPECT_EQ(event, events->next());
  EXPECT_EQ(static_cast<int>(count), alive);
  events->end();
}

TEST(LatchEvents, AreToldFromOthers) {
  const auto events = std::make_unique<Events>();
  for (size_t i = 0; i < count; ++i) EXPECT_TRUE(events->has(events->next()));
  const auto other = std::make_unique<Event>();
  EXPECT_FALSE(events->has(other.get()));
  EXPECT_FALSE(events->has(nullptr));
  events->end();
}

TEST(LatchEvents, HaveCacheLinesOfTheirOwn) {
  const auto events = std::make_unique<Events>();
  for (size_t i = 0; i < count; ++i)
    EXPECT_EQ(0u, reinterpret_cast<size_t>(events->next()) % 64);
  events->end();
}

TEST(LatchEvents, EndAndAreMadeAgain) {
  const auto events = std::make_unique<Events>();
  events->end();  // there are none yet
  EXPECT_EQ(0, alive);
  events->next();
  events->end();
  EXPECT_EQ(0, alive);
  events->next();
  EXPECT_EQ(static_cast<int>(count), alive);
  events->end();
  EXPECT_EQ(0, alive);
}

TEST(LatchEvents, AreMadeOnce) {
  const auto events = std::make_unique<Events>();
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&events] {
      for (int n = 0; n < 1000; ++n) EXPECT_TRUE(events->has(events->next()));
    });
  threads.clear();
  EXPECT_EQ(static_cast<int>(count), alive);
  events->end();
}

}  // namespace memdiag_test
