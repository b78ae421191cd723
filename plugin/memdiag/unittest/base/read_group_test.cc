// read_group.h: the statements that see the same figures.

#include "plugin/memdiag/base/read_group.h"

#include <gtest/gtest.h>

namespace memdiag_test {

using memdiag::Read_group;

class ReadGroupTest : public testing::Test {
 protected:
  void SetUp() override { EXPECT_FALSE(group.continues_with(statement)); }

  /** The next statement of the same client, for other tables. */
  Read_group::Statement next(uint64_t tables = 2) {
    Read_group::Statement other = statement;
    ++other.query;
    ++*other.number;
    other.tables = tables;
    other.time_us += 1000;
    return other;
  }

  Read_group group;
  Read_group::Statement statement{7, 100, 20, 1, 5'000'000};
};

TEST_F(ReadGroupTest, AStatementIsInItsOwnGroup) {
  EXPECT_TRUE(group.continues_with(statement));
  statement.time_us += 10 * Read_group::max_age_us;
  EXPECT_TRUE(group.continues_with(statement));
}

TEST_F(ReadGroupTest, OneTableAfterTheOther) {
  for (uint64_t tables = 2; tables != 0; tables *= 2) {
    statement = next(tables);
    EXPECT_TRUE(group.continues_with(statement)) << tables;
    statement.time_us = 5'000'000;
  }
}

TEST_F(ReadGroupTest, ATableThatWasReadBeginsAGroup) {
  EXPECT_FALSE(group.continues_with(next(3)));
}

TEST_F(ReadGroupTest, ANewGroupForgetsTheTablesOfTheLast) {
  statement = next(1);
  EXPECT_FALSE(group.continues_with(statement));
  EXPECT_TRUE(group.continues_with(next(2))) << "read in the group before only";
}

TEST_F(ReadGroupTest, AnotherStatementInBetween) {
  Read_group::Statement other = next();
  ++*other.number;
  EXPECT_FALSE(group.continues_with(other));
}

TEST_F(ReadGroupTest, AnotherSession) {
  Read_group::Statement other = next();
  ++other.session;
  EXPECT_FALSE(group.continues_with(other));
}

TEST_F(ReadGroupTest, WithoutANumberItIsAGroupOfItsOwn) {
  statement = next();
  statement.number.reset();
  EXPECT_FALSE(group.continues_with(statement));
  Read_group::Statement other = statement;
  ++other.query;
  other.tables = 4;
  EXPECT_FALSE(group.continues_with(other));
}

TEST_F(ReadGroupTest, AfterAPurgeOnlyItsOwnStatementGoesOn) {
  group.end();
  EXPECT_TRUE(group.continues_with(statement));
  const Read_group::Statement first = next(2);
  EXPECT_FALSE(group.continues_with(first));
  statement = first;
  EXPECT_TRUE(group.continues_with(next(4)));
}

TEST_F(ReadGroupTest, AnOldGroupEnds) {
  Read_group::Statement other = next();
  other.time_us = statement.time_us + Read_group::max_age_us;
  EXPECT_FALSE(group.continues_with(other));
}

TEST_F(ReadGroupTest, AGroupIsAsOldAsItsFirstStatement) {
  statement = next(2);
  statement.time_us = 5'000'000 + Read_group::max_age_us - 1;
  EXPECT_TRUE(group.continues_with(statement));
  statement = next(4);
  EXPECT_FALSE(group.continues_with(statement));
}

}  // namespace memdiag_test
