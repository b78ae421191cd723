/* The last value that was found: how long it serves, and who finds the next. */

#include "plugin/memdiag/ledger/recent.h"

#include <gtest/gtest.h>

namespace memdiag::ledger {
namespace {

constexpr auto fits = [](int) { return true; };
constexpr auto misfits = [](int) { return false; };
constexpr uint64_t second_us = 1'000'000;

class Recent_test : public testing::Test {
 protected:
  /** Finding the value 7 takes 0.1 s, from second 100 on: it rests for 10. */
  void keep() { recent.keep(7, 100 * second_us, 100 * second_us + 100'000); }

  Recent<int> recent;
};

TEST_F(Recent_test, NothingIsThereAtFirst) {
  EXPECT_FALSE(recent.peek(0, fits));
  EXPECT_FALSE(recent.take(0, fits));
}

TEST_F(Recent_test, ForAHundredTimesItsCostItServesWhateverIsThere) {
  keep();
  EXPECT_EQ(7, recent.take(110 * second_us - 1, misfits));
  EXPECT_FALSE(recent.take(110 * second_us, misfits));
}

TEST_F(Recent_test, ForAMinuteItServesWhileItFits) {
  keep();
  EXPECT_EQ(7, recent.take(160 * second_us - 1, fits));
  EXPECT_FALSE(recent.take(160 * second_us, fits));
}

TEST_F(Recent_test, WhatTakesSecondsServesLongerThanAMinute) {
  recent.keep(7, 100 * second_us, 102 * second_us);
  EXPECT_EQ(7, recent.take(300 * second_us - 1, fits));
  EXPECT_FALSE(recent.take(300 * second_us, fits));
}

TEST_F(Recent_test, OneCallerFindsAndTheOthersMakeDo) {
  keep();
  EXPECT_FALSE(recent.take(120 * second_us, misfits));
  EXPECT_EQ(7, recent.take(121 * second_us, misfits));
  recent.keep(8, 120 * second_us, 120 * second_us);
  EXPECT_EQ(8, recent.take(122 * second_us, fits));
}

TEST_F(Recent_test, AFinderThatNeverReturnsIsReplacedAfterAMinute) {
  keep();
  EXPECT_FALSE(recent.take(120 * second_us, misfits));
  EXPECT_EQ(7, recent.take(180 * second_us - 1, misfits));
  EXPECT_FALSE(recent.take(180 * second_us, misfits));
}

TEST_F(Recent_test, APeekIsNoDuty) {
  keep();
  EXPECT_FALSE(recent.peek(120 * second_us, misfits));
  EXPECT_FALSE(recent.take(120 * second_us, misfits));
}

TEST_F(Recent_test, AFailureForgets) {
  keep();
  recent.forget();
  EXPECT_FALSE(recent.take(101 * second_us, fits));
}

}  // namespace
}  // namespace memdiag::ledger
