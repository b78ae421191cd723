/*
  Relief under pressure, on sequences of figures: when a round begins, its order
  of steps, its end, and the pauses between.
*/

#include "plugin/memdiag/pressure/relief.h"

#include <gtest/gtest.h>

#include <array>
#include <iterator>
#include <limits>
#include <random>
#include <utility>
#include <vector>

namespace memdiag::relief {
namespace {

constexpr uint64_t mb = 1 << 20;
constexpr uint64_t second = 1000000;
constexpr uint64_t tick = second / 5;

constexpr Settings usual{.limit_percent = 90, .stall_percent = 10};
constexpr pressure::Figures calm{
    .used_bytes = 50, .limit_bytes = 100, .stall_percent = 0};
constexpr pressure::Figures full{
    .used_bytes = 95, .limit_bytes = 100, .stall_percent = 0};
constexpr pressure::Figures stalled{
    .used_bytes = 50, .limit_bytes = 100, .stall_percent = 12.5};

Stock stock_of(uint64_t session, uint64_t general = 0, uint64_t full_text = 0,
               uint64_t tables = 0) {
  Stock stock;
  stock.dirty_bytes[static_cast<size_t>(Pool::session)] = session;
  stock.dirty_bytes[static_cast<size_t>(Pool::general)] = general;
  stock.full_text_bytes = full_text;
  stock.table_cache_bytes = tables;
  return stock;
}

Event first(const Settings &settings, const pressure::Figures &figures) {
  State state;
  return next_event(settings, figures, 0, 0, &state);
}

TEST(Relief, WhatPressureIs) {
  EXPECT_EQ(Event::none, first(usual, calm));
  EXPECT_EQ(Event::due, first(usual, full));
  EXPECT_EQ(Event::due, first(usual, stalled));
  EXPECT_EQ(Event::none,
            first({.limit_percent = 96, .stall_percent = 13}, full));
  EXPECT_EQ(Event::none,
            first({.limit_percent = 96, .stall_percent = 13}, stalled));
  // Thresholds of 0, and unknown figures.
  EXPECT_EQ(Event::none,
            first({.limit_percent = 0, .stall_percent = 10}, full));
  EXPECT_EQ(Event::none,
            first({.limit_percent = 90, .stall_percent = 0}, stalled));
  EXPECT_EQ(Event::none, first(usual, {}));
  EXPECT_EQ(Event::none, first(usual, {.used_bytes = 95}));
  EXPECT_EQ(Event::none, first(usual, {.limit_bytes = 95}));
  EXPECT_EQ(Event::due, first(usual, {.stall_percent = 10}));
}

TEST(Relief, StepsInOrderOfCost) {
  State state;
  ASSERT_EQ(Event::due, next_event(usual, full, 0, 0, &state));
  const Stock stock = stock_of(64 * mb, 65 * mb, 8 * mb, 9 * mb);
  std::vector<std::pair<Step::Kind, Pool>> steps;
  for (;;) {
    const Step step = next_step(stock, 0, &state);
    steps.push_back({step.kind, step.pool});
    if (step.kind == Step::none) break;
  }
  // The stock is given as if nothing helped, and still each is done only once;
  // but no page of a cache's pool was unused before the cache was shrunk.
  const std::vector<std::pair<Step::Kind, Pool>> expected{
      {Step::purge, Pool::general},
      {Step::purge, Pool::session},
      {Step::write_full_text_caches, Pool::fts_cache},
      {Step::close_unused_tables, Pool::table_cache},
      {Step::none, Pool::general}};
  EXPECT_EQ(expected, steps);
  EXPECT_FALSE(state.in_round);
}

TEST(Relief, WhatACacheFreedIsPurged) {
  State state;
  ASSERT_EQ(Event::due, next_event(usual, full, 0, 0, &state));
  Stock stock = stock_of(0, 0, 0, 64 * mb);
  uint64_t &unused = stock.dirty_bytes[static_cast<size_t>(Pool::table_cache)];
  unused = 2 * mb;
  EXPECT_EQ(Step::purge, next_step(stock, 0, &state).kind);
  EXPECT_EQ(Step::close_unused_tables, next_step(stock, 0, &state).kind);
  unused = 50 * mb;
  const Step step = next_step(stock, 0, &state);
  EXPECT_EQ(Step::purge, step.kind);
  EXPECT_EQ(Pool::table_cache, step.pool);
  EXPECT_EQ(50 * mb, step.bytes);
  EXPECT_EQ(Step::none, next_step(stock, 0, &state).kind);
}

TEST(Relief, TheBufferPoolIsLast) {
  State state;
  ASSERT_EQ(Event::due, next_event(usual, full, 0, 0, &state));
  Stock stock = stock_of(0, 0, 0, 9 * mb);
  stock.buffer_pool_bytes = 1;
  EXPECT_EQ(Step::close_unused_tables, next_step(stock, 0, &state).kind);
  const Step step = next_step(stock, 0, &state);
  EXPECT_EQ(Step::shrink_buffer_pool, step.kind);
  EXPECT_EQ(1u, step.bytes);
  EXPECT_EQ(Step::none, next_step(stock, 0, &state).kind) << "once in a round";
}

TEST(Relief, StepsOfTheBufferPool) {
  EXPECT_EQ(2 * mb, buffer_pool_step(16 * mb, mb, mb)) << "an eighth";
  EXPECT_EQ(mb, buffer_pool_step(15 * mb, mb, mb)) << "whole units";
  EXPECT_EQ(4 * mb, buffer_pool_step(16 * mb, 4 * mb, mb)) << "one at least";
  EXPECT_EQ(mb, buffer_pool_step(16 * mb, mb, 15 * mb)) << "no less than that";
  EXPECT_EQ(0u, buffer_pool_step(16 * mb, 4 * mb, 13 * mb));
  EXPECT_EQ(0u, buffer_pool_step(16 * mb, mb, 16 * mb));
  EXPECT_EQ(0u, buffer_pool_step(16 * mb, mb, UINT64_MAX));
  EXPECT_EQ(0u, buffer_pool_step(16 * mb, 0, 0));
  // Step by step down to what it may be.
  uint64_t size = 2048 * mb;
  while (const uint64_t step = buffer_pool_step(size, 128 * mb, 1000 * mb))
    size -= step;
  EXPECT_EQ(1024 * mb, size);
}

TEST(Relief, WhatIsNotWorthIt) {
  State state;
  ASSERT_EQ(Event::due, next_event(usual, full, 0, 0, &state));
  EXPECT_EQ(
      Step::none,
      next_step(stock_of(worth_purging_bytes - 1, worth_purging_bytes - 1,
                         worth_shrinking_bytes - 1, worth_shrinking_bytes - 1),
                0, &state)
          .kind);
}

TEST(Relief, TheRoundStopsWhenThePressureDoes) {
  State state;
  uint64_t now = 0;
  ASSERT_EQ(Event::due, next_event(usual, full, 0, now, &state));
  EXPECT_EQ(Step::purge,
            next_step(stock_of(64 * mb, 2 * mb), now, &state).kind);
  for (; now < second; now += tick)
    EXPECT_EQ(Event::none,
              next_event(usual, calm, 64 * mb, now + tick, &state));
  EXPECT_EQ(Event::ended, next_event(usual, calm, 64 * mb, now + tick, &state));
  EXPECT_FALSE(state.in_round);
  EXPECT_EQ(Event::none,
            next_event(usual, calm, 64 * mb, now + 2 * tick, &state));
}

TEST(Relief, APressureThatIsGoneForAMomentHasNotEnded) {
  State state;
  ASSERT_EQ(Event::due, next_event(usual, full, 0, 0, &state));
  (void)next_step(stock_of(64 * mb, 2 * mb), 0, &state);
  EXPECT_EQ(Event::none, next_event(usual, calm, 0, tick, &state));
  EXPECT_EQ(Event::due, next_event(usual, stalled, 0, 2 * tick, &state));
  const Step step = next_step(stock_of(64 * mb, 2 * mb), 2 * tick, &state);
  EXPECT_EQ(Pool::general, step.pool) << "the round goes on";
  EXPECT_EQ(Event::none, next_event(usual, calm, 0, 3 * tick, &state));
  EXPECT_EQ(Event::none, next_event(usual, calm, 0, 7 * tick, &state));
  EXPECT_EQ(Event::ended, next_event(usual, calm, 0, 8 * tick, &state));
}

/** Seconds between the rounds of a pressure that lasts. */
std::vector<uint64_t> pauses(uint64_t kept_bytes, size_t count) {
  State state;
  std::vector<uint64_t> seconds;
  uint64_t last = 0;
  for (uint64_t now = 0; seconds.size() < count; now += tick) {
    if (next_event(usual, full, now == 0 ? 0 : kept_bytes, now, &state) !=
        Event::due)
      continue;
    if (now != 0) seconds.push_back((now - last) / second);
    last = now;
    while (next_step(stock_of(0), now, &state).kind != Step::none) {
    }
  }
  return seconds;
}

TEST(Relief, PausesDoubleWhileItIsOfLittleUse) {
  EXPECT_EQ((std::vector<uint64_t>{2, 4, 8, 16, 32, 60, 60, 60}),
            pauses(little_bytes - 1, 8));
  EXPECT_EQ((std::vector<uint64_t>{1, 1, 1}), pauses(little_bytes, 3));
}

TEST(Relief, WhatIsKept) {
  std::array<Purged, pool_count> purged{};
  std::array<uint64_t, pool_count> allocated{};
  EXPECT_EQ(0u, kept_bytes(purged, allocated));
  constexpr auto session = static_cast<size_t>(Pool::session);
  constexpr auto ddl = static_cast<size_t>(Pool::ddl);
  purged[session] = {.given_back_bytes = 30 * mb, .allocated_bytes = 7 * mb};
  purged[ddl] = {.given_back_bytes = 5 * mb, .allocated_bytes = 1};
  allocated[session] = 7 * mb;
  allocated[ddl] = 1;
  EXPECT_EQ(35 * mb, kept_bytes(purged, allocated));
  allocated[session] += 10 * mb;
  EXPECT_EQ(25 * mb, kept_bytes(purged, allocated)) << "10 were taken again";
  allocated[session] += 90 * mb;
  EXPECT_EQ(5 * mb, kept_bytes(purged, allocated)) << "others' are not";
}

TEST(Relief, WhatIsNotCountedIsNotKept) {
  constexpr auto general = static_cast<size_t>(Pool::general);
  std::array<Purged, pool_count> purged{};
  purged[general].given_back_bytes = 100 * mb;
  // The layer does not see what malloc() hands out.
  void *const block = pools::allocate(Pool::general, 100);
  ASSERT_NE(nullptr, block);
  ASSERT_EQ(0u, pools::allocated_bytes(Pool::general));
  pools::free(Pool::general, block, 100);
  EXPECT_EQ(0u, kept_bytes(purged, {}));
}

TEST(Relief, APressureThatComesAndGoesIsNoLoop) {
  State state;
  unsigned rounds = 0;
  // Each purge ends it, each time its pages are taken again.
  for (uint64_t now = 0; now < 300 * second; now += tick) {
    const bool pressed = now / tick % 10 == 0;
    if (next_event(usual, pressed ? full : calm, 0, now, &state) != Event::due)
      continue;
    ++rounds;
    EXPECT_EQ(Step::purge, next_step(stock_of(64 * mb), now, &state).kind);
  }
  EXPECT_LE(rounds, 12u);
  EXPECT_GE(rounds, 5u);
}

TEST(Relief, AnotherPressureBeginsAnew) {
  State state;
  ASSERT_EQ(Event::due, next_event(usual, full, 0, 0, &state));
  (void)next_step(stock_of(0), 0, &state);
  state.pause_us = max_pause_us;
  EXPECT_EQ(Event::due, next_event(usual, full, 0, 121 * second, &state));
  EXPECT_EQ(min_pause_us, state.pause_us);
}

TEST(Relief, OnlyWatchingAsksOnceAMinute) {
  State state;
  std::vector<uint64_t> seconds;
  for (uint64_t now = 0; now < 200 * second; now += tick)
    if (next_event(usual, full, 0, now, &state) == Event::due) {
      seconds.push_back(now / second);
      while (next_step(stock_of(0), now, &state).kind != Step::none) {
      }
      rest_long(&state);
    }
  EXPECT_EQ((std::vector<uint64_t>{0, 60, 120, 180}), seconds);
}

TEST(Relief, AnyFigures) {
  std::mt19937_64 random(1);
  const auto bytes = [&random] {
    constexpr uint64_t ends[] = {0, 1, mb, 90, 100, UINT64_MAX};
    return ends[random() % std::size(ends)];
  };
  State state;
  uint64_t now = 0;
  for (int i = 0; i < 100000; ++i) {
    now += random() % (100 * second);
    pressure::Figures figures;
    if (random() % 4 != 0) figures.used_bytes = bytes();
    if (random() % 4 != 0) figures.limit_bytes = bytes();
    constexpr double stalls[] = {0, 9.99, 10, 1e308,
                                 std::numeric_limits<double>::quiet_NaN()};
    if (random() % 4 != 0)
      figures.stall_percent = stalls[random() % std::size(stalls)];
    const Settings settings{static_cast<unsigned>(random() % 101),
                            static_cast<unsigned>(random() % 101)};
    if (next_event(settings, figures, bytes(), now, &state) != Event::due)
      continue;
    Stock stock = stock_of(bytes(), bytes(), bytes(), bytes());
    stock.dirty_bytes[static_cast<size_t>(Pool::fts_cache)] = bytes();
    stock.buffer_pool_bytes = bytes();
    size_t steps = 0;
    while (next_step(stock, now, &state).kind != Step::none) ++steps;
    EXPECT_LE(steps, pool_count + 5);
    EXPECT_LE(state.pause_us, max_pause_us);
    EXPECT_GE(state.pause_us, min_pause_us);
  }
}

}  // namespace
}  // namespace memdiag::relief
