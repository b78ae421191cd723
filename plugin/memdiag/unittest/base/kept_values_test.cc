// kept_values.h: how long statements' common values are kept.

#include "plugin/memdiag/base/kept_values.h"

#include <gtest/gtest.h>

namespace memdiag_test {

using Values = memdiag::Kept_values<int>;

constexpr uint64_t keep_us = 100;
constexpr auto ended = [](uint64_t, uint64_t) { return true; };
constexpr auto running = [](uint64_t, uint64_t) { return false; };

TEST(KeptValuesTest, ASessionHasOneValue) {
  Values values;
  *values.of(1, 10, 0) = 5;
  EXPECT_EQ(*values.of(1, 11, 0), 5);
  EXPECT_EQ(*values.of(2, 12, 0), 0);
  EXPECT_EQ(values.find(1), values.of(1, 13, 0));
  EXPECT_EQ(values.find(3), nullptr);
}

TEST(KeptValuesTest, AnOldValueOfAnEndedStatementIsDropped) {
  Values values;
  *values.of(1, 10, 1000) = 5;
  // Another statement has used it since this one looked at the clock.
  EXPECT_EQ(values.drop(keep_us, 999, ended), 1u);
  EXPECT_EQ(values.drop(keep_us, 1099, ended), 1u);
  EXPECT_EQ(values.drop(keep_us, 1100, ended), 0u);
  EXPECT_EQ(*values.of(1, 11, 1101), 0);
}

TEST(KeptValuesTest, ARunningStatementKeepsItsValue) {
  Values values;
  *values.of(1, 10, 1000) = 5;
  EXPECT_EQ(values.drop(keep_us, 5000, running), 1u);
  EXPECT_EQ(*values.of(1, 10, 5000), 5);
}

TEST(KeptValuesTest, ItIsTheLastStatementThatCounts) {
  Values values;
  (void)values.of(1, 10, 1000);
  (void)values.of(1, 11, 1000);
  const auto runs_11 = [](uint64_t session, uint64_t query) {
    return session != 1 || query != 11;
  };
  EXPECT_EQ(values.drop(keep_us, 5000, runs_11), 1u);
}

TEST(KeptValuesTest, AValueInUseIsNotDropped) {
  Values values;
  auto used = values.of(1, 10, 1000);
  EXPECT_EQ(values.drop(keep_us, 5000, ended), 1u);
  used.reset();
  EXPECT_EQ(values.drop(keep_us, 5000, ended), 0u);
}

TEST(KeptValuesTest, UseProlongsTheTime) {
  Values values;
  (void)values.of(1, 10, 1000);
  (void)values.of(1, 11, 1090);
  EXPECT_EQ(values.drop(keep_us, 1100, ended), 1u);
}

}  // namespace memdiag_test
