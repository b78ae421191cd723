/*
  When the flight recorder records: on literal figures, on both sides of each
  threshold.
*/

#include "plugin/memdiag/profile_file/record_policy.h"

#include <gtest/gtest.h>

#include <random>

namespace memdiag::profile {
namespace {

constexpr uint64_t second = 1'000'000;
constexpr uint64_t minute = 60 * second;
constexpr uint64_t mb = 1 << 20;

/** Time passes as the test says. */
struct Recorder {
  Record_policy policy;
  uint64_t now{1000 * second};

  Record_decision after(uint64_t us, uint64_t rss) {
    return policy.tick(now += us, rss);
  }
  Record_reason reason(uint64_t us, uint64_t rss) {
    return after(us, rss).reason;
  }
};

using enum Record_reason;

TEST(Record_policy, OnceInAPeriod) {
  Recorder recorder;
  EXPECT_EQ(period, recorder.reason(0, 1000 * mb));
  EXPECT_EQ(none, recorder.reason(minute - 1, 1000 * mb));
  EXPECT_EQ(period, recorder.reason(1, 1000 * mb));
  EXPECT_EQ(none, recorder.reason(minute - 1, 1000 * mb));
  EXPECT_EQ(period, recorder.reason(10 * minute, 1000 * mb));
}

TEST(Record_policy, ARampBeginsAboveTheLowest) {
  Recorder recorder;
  recorder.after(0, 1200 * mb);
  EXPECT_EQ(none, recorder.reason(second, 1000 * mb));
  EXPECT_EQ(none, recorder.reason(second, 1100 * mb - 1));
  const Record_decision begin = recorder.after(second, 1100 * mb);
  EXPECT_EQ(new_high, begin.reason);
  EXPECT_EQ(1u, begin.ramp);
  EXPECT_FALSE(begin.is_low);
  // A record of a high is a record of the period too.
  EXPECT_EQ(none, recorder.reason(minute - 1, 1100 * mb));
  EXPECT_EQ(period, recorder.reason(1, 1100 * mb));
}

TEST(Record_policy, AStepAndACoolDown) {
  Recorder recorder;
  recorder.after(0, 1000 * mb);
  EXPECT_EQ(new_high, recorder.reason(second, 2000 * mb));
  EXPECT_EQ(none, recorder.reason(2 * second, 2100 * mb - 1));
  EXPECT_EQ(new_high, recorder.reason(0, 2100 * mb));
  EXPECT_EQ(none, recorder.reason(2 * second - 1, 4000 * mb));
  const Record_decision next = recorder.after(1, 4000 * mb);
  EXPECT_EQ(new_high, next.reason);
  EXPECT_EQ(1u, next.ramp);
}

TEST(Record_policy, SmallServersNeedALargerStep) {
  Recorder recorder;
  recorder.after(0, 100 * mb);
  EXPECT_EQ(none, recorder.reason(second, 116 * mb - 1));
  EXPECT_EQ(new_high, recorder.reason(second, 116 * mb));
  EXPECT_EQ(none, recorder.reason(2 * second, 132 * mb - 1));
  EXPECT_EQ(new_high, recorder.reason(2 * second, 132 * mb));
}

TEST(Record_policy, AFallEndsARamp) {
  Recorder recorder;
  recorder.after(0, 1000 * mb);
  EXPECT_EQ(1u, recorder.after(second, 2000 * mb).ramp);
  EXPECT_EQ(none, recorder.reason(2 * second, 1600 * mb + 1));
  EXPECT_EQ(none, recorder.reason(2 * second, 1760 * mb)) << "no new low";
  EXPECT_EQ(none, recorder.reason(2 * second, 1600 * mb)) << "it ends";
  EXPECT_EQ(2u, recorder.after(2 * second, 1760 * mb).ramp);
  // A lower ramp than the last one.
  EXPECT_EQ(2u, recorder.after(2 * second, 1850 * mb).ramp);
}

TEST(Record_policy, QuietEndsARamp) {
  Recorder recorder;
  recorder.after(0, 1000 * mb);
  EXPECT_EQ(1u, recorder.after(second, 2000 * mb).ramp);
  for (int i = 0; i < 59; ++i)
    EXPECT_FALSE(recorder.after(minute, 2050 * mb).is_low);
  EXPECT_EQ(1u, recorder.after(minute - 1, 2100 * mb).ramp);
  for (int i = 0; i < 59; ++i)
    EXPECT_FALSE(recorder.after(minute, 2150 * mb).is_low);
  const Record_decision end = recorder.after(minute, 2150 * mb);
  EXPECT_EQ(period, end.reason);
  EXPECT_TRUE(end.is_low);
  EXPECT_EQ(0u, recorder.after(minute, 2364 * mb).ramp);
  EXPECT_EQ(2u, recorder.after(minute, 2365 * mb).ramp);
}

TEST(Record_policy, LowRecords) {
  Recorder recorder;
  EXPECT_TRUE(recorder.after(0, 1000 * mb).is_low);
  EXPECT_TRUE(recorder.after(minute, 1020 * mb).is_low);
  EXPECT_FALSE(recorder.after(minute, 1020 * mb + 1).is_low);
  EXPECT_TRUE(recorder.after(minute, 900 * mb).is_low);
  EXPECT_FALSE(recorder.after(minute, 980 * mb).is_low);
  EXPECT_EQ(new_high, recorder.reason(minute, 990 * mb));
  EXPECT_FALSE(recorder.after(minute, 900 * mb).is_low) << "in a ramp";
}

TEST(Record_policy, WhatFailedIsAskedForAgain) {
  Recorder recorder;
  EXPECT_EQ(period, recorder.reason(0, 1000 * mb));
  recorder.policy.failed();
  EXPECT_EQ(period, recorder.reason(second, 1000 * mb));
  EXPECT_EQ(1u, recorder.after(second, 2000 * mb).ramp);
  recorder.policy.failed();
  EXPECT_EQ(1u, recorder.after(second, 2000 * mb).ramp);
  EXPECT_EQ(none, recorder.reason(second, 2000 * mb));
}

TEST(Record_policy, ARampToTheEndIsFewRecords) {
  // From 1 GB to 64 GB in five minutes, asked five times a second.
  Recorder recorder;
  recorder.after(0, 1000 * mb);
  unsigned highs = 0;
  for (uint64_t i = 1; i <= 1500; ++i)
    highs += recorder.reason(second / 5, (1000 + 42 * i) * mb) == new_high;
  EXPECT_LT(50u, highs);
  EXPECT_GT(100u, highs);
}

TEST(Record_policy, AnyFigures) {
  std::mt19937_64 random(20261122);
  for (int i = 0; i < 100; ++i) {
    Recorder recorder;
    uint32_t ramp = 0;
    for (int j = 0; j < 1000; ++j) {
      const uint64_t rss = random() >> (random() % 64);
      recorder.now = random() % 4 ? recorder.now : random();
      const Record_decision decision =
          recorder.after(random() >> (20 + random() % 44), rss);
      EXPECT_EQ(decision.reason == new_high, decision.ramp != 0);
      if (decision.ramp == 0) continue;
      EXPECT_LE(ramp, decision.ramp);
      EXPECT_GE(ramp + 1, decision.ramp);
      ramp = decision.ramp;
    }
  }
}

}  // namespace
}  // namespace memdiag::profile
