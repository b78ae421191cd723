/* From samples to rows, and where they are going. */

#include "plugin/memdiag/unittest/collect_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "plugin/memdiag/history/trend.h"
#include "plugin/memdiag/tables/history_tables.h"

namespace memdiag {
namespace {

using black_box::Sample;
using black_box::unknown;

constexpr uint64_t second = 1000000;
constexpr uint64_t noon = 1800000000 * second;
constexpr size_t session = static_cast<size_t>(Pool::session);
constexpr size_t innodb = static_cast<size_t>(Pool::innodb);

Sample sample_at(uint64_t time_us, uint64_t rss_bytes = 1000) {
  Sample sample{};
  sample.time_us = time_us;
  sample.rss_bytes = rss_bytes;
  sample.room_bytes = unknown;
  return sample;
}

Sample sample_of_run(uint64_t run_us, uint64_t time_us, bool ended = false) {
  Sample sample = sample_at(time_us);
  sample.run_us = run_us;
  sample.process = 77;
  sample.version = 90704;
  sample.ended = ended ? 1 : 0;
  return sample;
}

TEST(HistoryRows, Copied) {
  Sample sample = sample_at(noon, 5);
  sample.swap_bytes = 6;
  sample.rss_peak_bytes = 7;
  sample.rss_peak_us = noon - second;
  sample.allocated_bytes = 8;
  sample.active_bytes = 9;
  sample.resident_bytes = 10;
  sample.dirty_bytes = 11;
  sample.metadata_bytes = 12;
  sample.buffer_pool_bytes = 13;
  sample.purges = 14;
  sample.purged_bytes = 15;
  const auto rows = history_rows({&sample, 1});
  ASSERT_EQ(1u, rows.size());
  EXPECT_EQ(noon, rows[0].time_us);
  EXPECT_EQ(5u, rows[0].rss_bytes);
  EXPECT_EQ(6u, rows[0].swap_bytes);
  EXPECT_EQ(7u, rows[0].rss_peak_bytes);
  EXPECT_EQ(noon - second, rows[0].rss_peak_time->us);
  EXPECT_EQ(8u, rows[0].allocated_bytes);
  EXPECT_EQ(9u, rows[0].active_bytes);
  EXPECT_EQ(10u, rows[0].resident_bytes);
  EXPECT_EQ(11u, rows[0].dirty_bytes);
  EXPECT_EQ(12u, rows[0].metadata_bytes);
  EXPECT_EQ(13u, rows[0].buffer_pool_bytes);
  EXPECT_EQ(14u, rows[0].purges);
  EXPECT_EQ(15u, rows[0].purged_bytes);
  // There is nothing to compare with, and nothing lives.
  EXPECT_FALSE(rows[0].rss_bytes_per_second);
  EXPECT_FALSE(rows[0].largest_pool);
  EXPECT_FALSE(rows[0].largest_pool_bytes);
  EXPECT_FALSE(rows[0].grown_pool);
}

TEST(HistoryRows, WhatIsUnknownIsEmpty) {
  Sample sample;
  black_box::Saved_sample &saved = sample;
  memset(&saved, 0xff, sizeof saved);
  const Sample samples[] = {sample_at(noon), sample};
  Sample known = samples[1];
  known.time_us = noon + second;
  const Sample both[] = {samples[0], known};
  const Run_history_row row = history_rows({}, both)[1];
  size_t empty = 0;
  for (const auto &column : history_table.columns)
    empty += std::holds_alternative<std::monostate>(column.value(row));
  // All but RUN, STARTED, PROCESS, VERSION, TIME, PURGES and PURGED_BYTES.
  EXPECT_EQ(history_table.size - 7, empty);
}

TEST(HistoryRows, RateOverTheMinuteBefore) {
  std::vector<Sample> run;
  // Nothing for two minutes, then 1,000 bytes a second.
  for (uint64_t s = 0; s <= 300; ++s)
    run.push_back(
        sample_at(noon + s * second, 50000 + (s < 120 ? 0 : s - 120) * 1000));
  const auto rows = history_rows(run);
  EXPECT_FALSE(rows[0].rss_bytes_per_second);
  EXPECT_EQ(0, rows[1].rss_bytes_per_second);
  EXPECT_EQ(0, rows[120].rss_bytes_per_second);
  EXPECT_DOUBLE_EQ(500, *rows[150].rss_bytes_per_second);
  EXPECT_DOUBLE_EQ(1000, *rows[180].rss_bytes_per_second);
  EXPECT_DOUBLE_EQ(1000, *rows[300].rss_bytes_per_second);
  for (Sample &sample : run) sample.rss_bytes = 90000 - sample.rss_bytes / 5;
  EXPECT_DOUBLE_EQ(-200, *history_rows(run)[300].rss_bytes_per_second);
}

TEST(HistoryRows, SeldomSamplesHaveNoMinuteBefore) {
  const Sample run[] = {sample_at(noon), sample_at(noon + 61 * second)};
  EXPECT_FALSE(history_rows(run)[1].rss_bytes_per_second);
}

TEST(HistoryRows, AClockThatIsSetBack) {
  std::vector<Sample> run;
  for (uint64_t s = 0; s < 100; ++s)
    run.push_back(sample_at(noon + s * second, s * 10));
  for (uint64_t s = 100; s < 200; ++s)
    run.push_back(sample_at(noon - 3600 * second + s * second, s * 10));
  const auto rows = history_rows(run);
  EXPECT_DOUBLE_EQ(10, *rows[99].rss_bytes_per_second);
  EXPECT_FALSE(rows[100].rss_bytes_per_second);
  EXPECT_DOUBLE_EQ(10, *rows[101].rss_bytes_per_second);
  EXPECT_DOUBLE_EQ(10, *rows[199].rss_bytes_per_second);
}

TEST(HistoryRows, LargestAndMostGrownPool) {
  std::vector<Sample> run{sample_at(noon), sample_at(noon + second)};
  run[0].pools[innodb].live_bytes = run[1].pools[innodb].live_bytes = 5000;
  run[0].pools[session].live_bytes = 10;
  run[1].pools[session].live_bytes = 400;
  run[1].pools[0].live_bytes = unknown;
  auto rows = history_rows(run);
  EXPECT_STREQ("innodb", *rows[1].largest_pool);
  EXPECT_EQ(5000u, rows[1].largest_pool_bytes);
  EXPECT_STREQ("session", *rows[1].grown_pool);
  EXPECT_EQ(390u, rows[1].grown_pool_bytes);
  std::swap(run[0].pools, run[1].pools);
  EXPECT_FALSE(history_rows(run)[1].grown_pool);
}

TEST(HistoryRows, RunsAreCountedBackwards) {
  const std::vector<Sample> former{sample_of_run(noon, noon + 1, false),
                                   sample_of_run(noon, noon + 2, true),
                                   sample_of_run(noon + 10, noon + 11, false),
                                   sample_of_run(noon + 20, noon + 21, false),
                                   sample_of_run(noon + 20, noon + 22, false),
                                   sample_of_run(noon + 20, noon + 23, false)};
  const std::vector<Sample> now{sample_of_run(noon + 30, noon + 31)};
  const auto rows = history_rows(former, now);
  ASSERT_EQ(7u, rows.size());
  const uint64_t runs[] = {3, 3, 2, 1, 1, 1, 0};
  for (size_t i = 0; i < rows.size(); ++i) {
    const Sample &sample = i < 6 ? former[i] : now[0];
    EXPECT_EQ(runs[i], rows[i].run);
    EXPECT_EQ(sample.time_us, rows[i].time_us);
    EXPECT_EQ(sample.run_us, rows[i].started_us);
    EXPECT_EQ(77u, rows[i].process);
    EXPECT_EQ("9.7.4", rows[i].version);
    EXPECT_EQ(runs[i] == 0 ? std::nullopt : std::optional{runs[i] == 3},
              rows[i].shut_down);
    // No rate from one run to another.
    EXPECT_EQ(i == 1 || i == 4 || i == 5,
              rows[i].rss_bytes_per_second.has_value());
  }
  const auto of_pools = history_pool_rows(former, now);
  ASSERT_EQ(7 * pool_count, of_pools.size());
  for (size_t i = 0; i < of_pools.size(); ++i) {
    EXPECT_EQ(runs[i / pool_count], of_pools[i].run);
    EXPECT_STREQ(pool_specs[i % pool_count].name, of_pools[i].pool);
  }
  constexpr std::span<const Sample> none;
  EXPECT_TRUE(history_rows(none, none).empty());
  EXPECT_TRUE(history_rows(none).empty());
  EXPECT_TRUE(history_pool_rows({}, {}).empty());
}

TEST(HistoryRows, WhoHadMostAtThePeak) {
  Sample run[] = {sample_at(noon), sample_at(noon + second)};
  for (Sample &sample : run)
    sample.rss_peak_processlist_id = sample.rss_peak_session_bytes = unknown;
  run[1].rss_peak_processlist_id = 7;
  run[1].rss_peak_session_bytes = 99;
  run[1].rss_peak_digest.fill(0xab);
  const auto rows = history_rows(run);
  EXPECT_FALSE(rows[0].rss_peak_session);
  EXPECT_FALSE(rows[0].rss_peak_session_bytes);
  EXPECT_FALSE(rows[0].rss_peak_digest);
  EXPECT_EQ(7u, rows[1].rss_peak_session);
  EXPECT_EQ(99u, rows[1].rss_peak_session_bytes);
  EXPECT_EQ(64u, rows[1].rss_peak_digest->size());
  EXPECT_EQ(0u, rows[1].rss_peak_digest->find("abab"));
}

TEST(HistoryRows, TrendIsThatOfTheQuarterOfAnHourBefore) {
  std::mt19937 random(3);
  std::vector<Sample> run;
  for (uint64_t s = 0; s < 4000; ++s) {
    // Nothing, then a leak, then nothing again, with noise; some not known.
    const uint64_t leaked = std::clamp<uint64_t>(s, 1000, 2500) * 100000;
    Sample sample = sample_at(
        noon + s * second, s % 50 == 7 ? unknown : leaked + random() % 50000);
    sample.limit_bytes = 300'000'000;
    run.push_back(sample);
  }
  const auto rows = history_rows(run);
  for (size_t i : {2, 900, 901, 1500, 2400, 2600, 3999}) {
    const size_t from = i <= 900 ? 0 : i - 900;
    const auto expected =
        trend(std::span{run}.subspan(from, i + 1 - from), &Sample::rss_bytes);
    ASSERT_TRUE(expected && rows[i].trend_bytes_per_second) << i;
    EXPECT_NEAR(expected->bytes_per_second, *rows[i].trend_bytes_per_second,
                1e-6)
        << i;
    EXPECT_NEAR(expected->r2, *rows[i].trend_r2, 1e-9) << i;
  }
  EXPECT_FALSE(rows[0].trend_bytes_per_second);
  EXPECT_FALSE(rows[7].trend_bytes_per_second) << "not known";
  // 240 MB of 300, and 100 KB a second.
  EXPECT_NEAR(600, static_cast<double>(*rows[2400].seconds_until_limit), 5);
  EXPECT_EQ(300'000'000u, rows[2400].limit_bytes);
  Sample last = run.back();
  last.limit_bytes = unknown;
  run.push_back(last);
  EXPECT_FALSE(history_rows(run).back().seconds_until_limit);
}

/** Another process has most of the machine's memory. */
TEST(HistoryRows, GrowthEndsWhereTheRoomDoes) {
  std::vector<Sample> run;
  for (uint64_t s = 0; s <= 900; ++s) {
    Sample sample = sample_at(noon + s * second, s * 100'000);
    sample.limit_bytes = 300'000'000;
    sample.room_bytes = 300'000'000 - s * 100'000 - 180'000'000;
    run.push_back(sample);
  }
  const auto seconds_until_limit = [&run] {
    return static_cast<double>(*history_rows(run).back().seconds_until_limit);
  };
  EXPECT_NEAR(300, seconds_until_limit(), 5);
  run.back().limit_bytes = unknown;
  EXPECT_NEAR(300, seconds_until_limit(), 5);
  run.back().limit_bytes = 100'000'000;
  EXPECT_NEAR(100, seconds_until_limit(), 5);
}

// ------------------------------------------------------------------- trends

TEST(Trend, OfALine) {
  std::vector<Sample> samples;
  for (uint64_t s = 0; s <= 600; s += 5)
    samples.push_back(sample_at(noon + s * second, (1 << 30) + s * 4096));
  const auto line = trend(samples, &Sample::rss_bytes);
  ASSERT_TRUE(line);
  EXPECT_NEAR(4096, line->bytes_per_second, 1e-6);
  EXPECT_NEAR(1, line->r2, 1e-9);
  EXPECT_NEAR((1 << 30) + 600 * 4096, line->last_bytes, 1e-3);
  EXPECT_EQ(600, line->seconds);
  const auto left = seconds_until(*line, (1 << 30) + 700 * 4096);
  EXPECT_NEAR(100, *left, 1e-3);
  EXPECT_EQ(0, seconds_until(*line, 1 << 30));
}

TEST(Trend, OfAFunctionOfASample) {
  std::vector<Sample> samples(10);
  for (uint64_t s = 0; s < 10; ++s) {
    samples[s].time_us = noon + s * second;
    samples[s].pools[session].live_bytes = 900 - 100 * s;
  }
  const auto line = trend(samples, [](const Sample &sample) {
    return sample.pools[session].live_bytes;
  });
  EXPECT_NEAR(-100, line->bytes_per_second, 1e-9);
  EXPECT_FALSE(seconds_until(*line, 1000));
}

TEST(Trend, NoiseGoesNowhere) {
  std::mt19937 random(7);
  std::vector<Sample> samples;
  for (uint64_t s = 0; s < 3600; ++s)
    samples.push_back(sample_at(noon + s * second, 1000000 + random() % 1000));
  EXPECT_LT(trend(samples, &Sample::rss_bytes)->r2, 0.01);
  // A leak below it is found nevertheless.
  for (uint64_t s = 0; s < 3600; ++s) samples[s].rss_bytes += s;
  const auto leak = trend(samples, &Sample::rss_bytes);
  EXPECT_GT(leak->r2, 0.9);
  EXPECT_NEAR(1, leak->bytes_per_second, 0.05);
}

TEST(Trend, UnknownSamplesDoNotCount) {
  std::vector<Sample> samples;
  for (uint64_t s = 0; s < 10; ++s)
    samples.push_back(
        sample_at(noon + s * second, s % 3 == 0 ? unknown : s * 10));
  const auto line = trend(samples, &Sample::rss_bytes);
  EXPECT_NEAR(10, line->bytes_per_second, 1e-9);
  EXPECT_NEAR(7, line->seconds, 1e-9);
}

TEST(Trend, TooLittleToTell) {
  EXPECT_FALSE(trend({}, &Sample::rss_bytes));
  const Sample two[] = {sample_at(noon), sample_at(noon + second)};
  EXPECT_FALSE(trend(two, &Sample::rss_bytes));
  const std::vector<Sample> moment(5, sample_at(noon));
  EXPECT_FALSE(trend(moment, &Sample::rss_bytes));
}

TEST(Trend, OfWhatNeverChanges) {
  std::vector<Sample> samples;
  for (uint64_t s = 0; s < 5; ++s)
    samples.push_back(sample_at(noon + s * second));
  const auto line = trend(samples, &Sample::rss_bytes);
  EXPECT_EQ(0, line->bytes_per_second);
  EXPECT_EQ(1, line->r2);
  EXPECT_FALSE(seconds_until(*line, 2000));
  EXPECT_EQ(0, seconds_until(*line, 1000));
}

}  // namespace
TEST(HistoryRows, NoMoreThanWanted) {
  std::vector<Sample> run(100);
  for (size_t i = 0; i < run.size(); ++i) run[i].time_us = (i + 1) * 1000000;
  for (size_t i = 50; i < run.size(); ++i) run[i].run_us = 1;
  size_t taken = 0;
  const auto take_three = [&taken](const auto &) { return ++taken < 3; };
  memdiag::history_rows(run, take_three);
  EXPECT_EQ(taken, 3u);
  taken = 0;
  memdiag::history_rows(run, run, take_three);
  EXPECT_EQ(taken, 3u);
  taken = 0;
  memdiag::history_pool_rows(run, run, take_three);
  EXPECT_EQ(taken, 3u);
}

}  // namespace memdiag
