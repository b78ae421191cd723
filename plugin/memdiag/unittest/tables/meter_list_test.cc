// meter_list.h: names and units by the conventions; no value where a read
// failed.

#include "plugin/memdiag/tables/meter_list.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memdiag_test {

using memdiag::pool_count;
using memdiag::Pool_row;
using memdiag::Reading;
using memdiag::ceiling::Figures;
using memdiag::ceiling::Level;
using memdiag::meters::Attributes;
using memdiag::meters::Kind;
using memdiag::meters::Metric;
using memdiag::meters::metrics;
using memdiag::meters::Readings;

/** Keeps values by their attributes, written as name=value. */
class Kept final : public memdiag::meters::Sink {
 public:
  void add(int64_t value, Attributes attributes) override {
    keep(static_cast<double>(value), attributes);
  }
  void add(double value, Attributes attributes) override {
    keep(value, attributes);
  }

  std::map<std::string, double> values;
  size_t times = 0;

 private:
  void keep(double value, Attributes attributes) {
    std::string key;
    for (const auto &attribute : attributes)
      key += std::string(attribute.name) + "=" + attribute.value + " ";
    values[key] = value;
    ++times;
  }
};

const Metric &metric(const std::string &name) {
  for (const Metric &one : metrics)
    if (one.name == name) return one;
  ADD_FAILURE() << name;
  return metrics[0];
}

Kept measured(const std::string &name, const Readings &readings) {
  Kept kept;
  metric(name).measure(readings, &kept);
  return kept;
}

/** Every pool with the same figures. */
Readings with_pools(Reading bytes) {
  Readings readings;
  auto &pools = readings.pools.emplace();
  for (size_t i = 0; i < pool_count; ++i) {
    pools[i] = {};
    pools[i].name = memdiag::pool_specs[i].name;
    pools[i].active_bytes = pools[i].held_bytes = pools[i].peak_bytes = bytes;
    pools[i].purge_us = 1'500'000;
  }
  return readings;
}

TEST(MeterListTest, NamesAndUnitsFollowTheConventions) {
  const std::set<std::string> units{
      "By",     "s",           "By/s",   "{block}", "{purge}", "{pause}",
      "{wait}", "{statement}", "{read}", "{round}", "{level}"};
  std::set<std::string> names;
  for (const Metric &one : metrics) {
    const std::string_view name = one.name;
    EXPECT_TRUE(name.starts_with("mysql.memdiag.")) << name;
    EXPECT_FALSE(name.ends_with('.')) << name;
    EXPECT_EQ(name.npos, name.find("..")) << name;
    EXPECT_EQ(name.npos, name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_."))
        << name;
    EXPECT_TRUE(units.contains(one.unit)) << one.name << ' ' << one.unit;
    EXPECT_TRUE(names.insert(one.name).second) << one.name << " is there twice";
    // Limits of the server's telemetry.
    EXPECT_LE(std::string(one.name).size(), 63U);
    EXPECT_LE(std::string(one.description).size(), 1023U);
  }
}

TEST(MeterListTest, WhatWasNotReadIsNoMeasurement) {
  const Readings nothing;
  for (const Metric &one : metrics)
    EXPECT_EQ(measured(one.name, nothing).times, 0U) << one.name;
  EXPECT_EQ(measured("mysql.memdiag.pool.active", with_pools({})).times, 0U);
  Readings sample;
  sample.sample.emplace();
  for (const char *name :
       {"mysql.memdiag.process.resident", "mysql.memdiag.process.limit",
        "mysql.memdiag.process.growth", "mysql.memdiag.process.until_limit",
        "mysql.memdiag.host.memory", "mysql.memdiag.host.available",
        "mysql.memdiag.host.limit", "mysql.memdiag.host.room",
        "mysql.memdiag.host.room_limit", "mysql.memdiag.host.safe_limit"})
    EXPECT_EQ(measured(name, sample).times, 0U) << name;
}

TEST(MeterListTest, Limits) {
  Readings readings;
  readings.limits.machine_bytes = 1;
  readings.limits.available_bytes = 2;
  readings.limits.group_limit_bytes = 3;
  readings.limits.group_room_bytes = 4;
  readings.limits.group_room_limit_bytes = 5;
  readings.limits.safe_bytes = 6;
  int64_t expected = 0;
  for (const char *name :
       {"mysql.memdiag.host.memory", "mysql.memdiag.host.available",
        "mysql.memdiag.host.limit", "mysql.memdiag.host.room",
        "mysql.memdiag.host.room_limit", "mysql.memdiag.host.safe_limit"}) {
    const Kept kept = measured(name, readings);
    EXPECT_EQ(kept.times, 1U) << name;
    EXPECT_EQ(kept.values.at(""), ++expected) << name;
  }
}

/** A ceiling that lets statements wait. */
Readings with_ceiling() {
  Readings readings;
  readings.ceiling = Figures{
      .on = true,
      .acts = true,
      .level = Level::yellow,
      .marks = {.target_bytes = 1, .plenty_bytes = 0, .reserve_bytes = 0},
      .kept_bytes = 0,
      .left_bytes = 2,
      .charged_bytes = 3,
      .promised_bytes = 4,
      .parked_bytes = 5,
      .waits = 6,
      .wait_us = 7'500'000,
      .longest_wait_us = 2'500'000,
      .went_on = 8,
      .ended = 9,
      .refused = 10,
      .kernel_reads = 11,
      .rounds = 12};
  return readings;
}

double of_ceiling(const char *name, const Readings &readings) {
  const Kept kept =
      measured(std::string("mysql.memdiag.ceiling.") + name, readings);
  return kept.times == 1 ? kept.values.at("") : -1;
}

TEST(MeterListTest, TheCeiling) {
  const Readings all = with_ceiling();
  EXPECT_EQ(of_ceiling("level", all), 2);
  const char *const amounts[] = {"target",   "left",   "charged",
                                 "promised", "parked", "waits"};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(of_ceiling(amounts[i], all), i + 1);
  EXPECT_EQ(of_ceiling("wait.time", all), 7.5);
  EXPECT_EQ(of_ceiling("longest_wait", all), 2.5);
  const char *const counts[] = {"went_on", "ended", "refused", "kernel_reads",
                                "rounds"};
  for (int i = 0; i < 5; ++i) EXPECT_EQ(of_ceiling(counts[i], all), i + 8);
}

TEST(MeterListTest, AboveTheTargetNothingIsLeft) {
  Readings all = with_ceiling();
  all.ceiling->left_bytes = -7;
  EXPECT_EQ(of_ceiling("left", all), 0);
}

/** Level 0 says that a ceiling which is wanted does nothing. */
TEST(MeterListTest, ACeilingThatIsOffHasNoLevel) {
  Readings all = with_ceiling();
  all.ceiling->level = Level::unknown;
  EXPECT_EQ(of_ceiling("level", all), 0);
  for (const char *name : {"target", "left", "charged", "promised"})
    EXPECT_EQ(of_ceiling(name, all), -1) << name;
  EXPECT_EQ(of_ceiling("ended", all), 9);
  all.ceiling->on = false;
  for (const char *name : {"level", "target", "left", "charged", "promised"})
    EXPECT_EQ(of_ceiling(name, all), -1) << name;
  EXPECT_EQ(of_ceiling("parked", all), 5);
  EXPECT_EQ(of_ceiling("ended", all), 9);
}

/** Behind a target an alert is silent about a limit that is nearly reached. */
TEST(MeterListTest, ACeilingThatWatchesKeepsNoTarget) {
  Readings all = with_ceiling();
  all.ceiling->acts = false;
  EXPECT_EQ(of_ceiling("target", all), -1);
  EXPECT_EQ(of_ceiling("left", all), 2);
}

TEST(MeterListTest, ZeroIsAMeasurement) {
  const Kept kept = measured("mysql.memdiag.pool.active", with_pools(0));
  EXPECT_EQ(kept.values.size(), pool_count);
  EXPECT_EQ(kept.values.begin()->second, 0);
}

TEST(MeterListTest, EachPoolHasASeries) {
  const Kept kept = measured("mysql.memdiag.pool.live", with_pools(4096));
  EXPECT_EQ(kept.values.size(), pool_count);
  EXPECT_EQ(kept.values.at("pool=fts_query "), 4096);
  EXPECT_EQ(measured("mysql.memdiag.pool.purge.time", with_pools({}))
                .values.at("pool=general "),
            1.5);
}

TEST(MeterListTest, AFigureAboveTheTypeIsItsMost) {
  const Kept kept =
      measured("mysql.memdiag.pool.peak", with_pools(UINT64_MAX - 1));
  EXPECT_EQ(kept.values.at("pool=general "), static_cast<double>(INT64_MAX));
}

TEST(MeterListTest, TheLedgerKeepsItsSigns) {
  Readings readings;
  readings.ledger = {
      {"pool", "session", "live", 100, {}, {}},
      {"pool", "session", "dirty", std::nullopt, {}, {}},
      {"unexplained", "", "", -7, {}, {}},
  };
  const Kept kept = measured("mysql.memdiag.ledger.resident", readings);
  EXPECT_EQ(kept.times, 2U);
  EXPECT_EQ(kept.values.at("component=pool name=session state=live "), 100);
  EXPECT_EQ(kept.values.at("component=unexplained name= state= "), -7);
}

/** memdiag_history_interval_ms = 0 leaves the last sample as it is for ever. */
TEST(MeterListTest, AnOldSampleIsNotOfNow) {
  using memdiag::meters::is_of_now;
  using memdiag::meters::max_age_us;
  constexpr uint64_t now_us = 1'700'000'000'000'000;
  EXPECT_TRUE(is_of_now(now_us, now_us));
  EXPECT_TRUE(is_of_now(now_us - max_age_us, now_us));
  EXPECT_FALSE(is_of_now(now_us - max_age_us - 1, now_us));
  EXPECT_FALSE(is_of_now(now_us + 1, now_us)) << "the clock was set back";
}

}  // namespace memdiag_test
