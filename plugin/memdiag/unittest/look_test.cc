// look.h: which statements see the same figures.

#include "plugin/memdiag/server/look.h"

#include <gtest/gtest.h>

namespace memdiag_test {

using memdiag::Look;

class LookTest : public testing::Test {
 protected:
  void SetUp() override { EXPECT_FALSE(look.goes_on_with(statement)); }

  /** The next statement of the same client, for other tables. */
  Look::Statement next(uint64_t tables = 2) {
    Look::Statement other = statement;
    ++other.query;
    ++*other.number;
    other.tables = tables;
    other.time_us += 1000;
    return other;
  }

  Look look;
  Look::Statement statement{7, 100, 20, 1, 5'000'000};
};

TEST_F(LookTest, AStatementGoesOnWithItself) {
  EXPECT_TRUE(look.goes_on_with(statement));
  statement.time_us += 10 * Look::most_us;
  EXPECT_TRUE(look.goes_on_with(statement));
}

TEST_F(LookTest, OneTableAfterTheOther) {
  for (uint64_t tables = 2; tables != 0; tables *= 2) {
    statement = next(tables);
    EXPECT_TRUE(look.goes_on_with(statement)) << tables;
    statement.time_us = 5'000'000;
  }
}

TEST_F(LookTest, ATableThatWasReadIsReadAnew) {
  EXPECT_FALSE(look.goes_on_with(next(3)));
}

TEST_F(LookTest, WhatABeginningForgets) {
  statement = next(1);
  EXPECT_FALSE(look.goes_on_with(statement));
  EXPECT_TRUE(look.goes_on_with(next(2))) << "read before that beginning only";
}

TEST_F(LookTest, AnotherStatementInBetween) {
  Look::Statement other = next();
  ++*other.number;
  EXPECT_FALSE(look.goes_on_with(other));
}

TEST_F(LookTest, AnotherSession) {
  Look::Statement other = next();
  ++other.session;
  EXPECT_FALSE(look.goes_on_with(other));
}

TEST_F(LookTest, WithoutANumberItIsAlone) {
  statement = next();
  statement.number.reset();
  EXPECT_FALSE(look.goes_on_with(statement));
  Look::Statement other = statement;
  ++other.query;
  other.tables = 4;
  EXPECT_FALSE(look.goes_on_with(other));
}

TEST_F(LookTest, Later) {
  Look::Statement other = next();
  other.time_us = statement.time_us + Look::most_us;
  EXPECT_FALSE(look.goes_on_with(other));
}

TEST_F(LookTest, ALookIsAsOldAsItsBeginning) {
  statement = next(2);
  statement.time_us = 5'000'000 + Look::most_us - 1;
  EXPECT_TRUE(look.goes_on_with(statement));
  statement = next(4);
  EXPECT_FALSE(look.goes_on_with(statement));
}

}  // namespace memdiag_test
