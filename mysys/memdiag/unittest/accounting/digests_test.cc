/* Memory of pools by digest of statements. */

#include "mysys/memdiag/accounting/digests.h"

#include <map>
#include <optional>
#include <string>

#include "mysys/memdiag/unittest/a_session.h"
#include "mysys/memdiag/unittest/accounting/counted.h"

namespace memdiag_test {

TEST_F(Sessions, AccumulatedAndPeakOfAStatement) {
  const Test_clock clock;
  memdiag::session_began();
  void *first = take(Pool::statement);
  void *second = take(Pool::session);
  give_back(Pool::statement, first);
  void *third = take(Pool::statement);
  give_back(Pool::session, second);
  give_back(Pool::statement, third);
  end_statement(digest_of(1));
  auto row = row_of(digest_of(1));
  ASSERT_TRUE(row.has_value());
  EXPECT_EQ(1u, row->statements);
  EXPECT_EQ(3 * block_size, static_cast<int64_t>(row->taken_bytes));
  EXPECT_EQ(2 * block_size, static_cast<int64_t>(row->peak_bytes));
  EXPECT_EQ(0u, row->overflowed);
  EXPECT_EQ(clock.now(), row->last_us);

  // A smaller one adds up and leaves the peak.
  clock.advance_ms(2);
  give_back(Pool::statement, take(Pool::statement));
  end_statement(digest_of(1));
  row = row_of(digest_of(1));
  EXPECT_EQ(2u, row->statements);
  EXPECT_EQ(4 * block_size, static_cast<int64_t>(row->taken_bytes));
  EXPECT_EQ(2 * block_size, static_cast<int64_t>(row->peak_bytes));
  EXPECT_EQ(clock.now(), row->last_us);
  EXPECT_FALSE(row_of(digest_of(2)).has_value());
}

TEST_F(Sessions, ConnectingIsNoStatement) {
  void *block = take(Pool::session);
  memdiag::session_began();
  end_statement(digest_of(1));
  EXPECT_EQ(0u, row_of(digest_of(1))->taken_bytes);
  EXPECT_EQ(block_size, nets_of(pthread_self())[of_session]);
  give_back(Pool::session, block);
}

TEST_F(Sessions, WhatIsFreedOfBeforeLessensThePeak) {
  void *kept = take(Pool::session);
  end_statement(digest_of(1));
  give_back(Pool::session, kept);
  give_back(Pool::session, take(Pool::session));
  end_statement(digest_of(2));
  EXPECT_EQ(block_size,
            static_cast<int64_t>(row_of(digest_of(2))->taken_bytes));
  EXPECT_EQ(0u, row_of(digest_of(2))->peak_bytes);
}

TEST_F(Sessions, APacketOfSeveralStatements) {
  memdiag::session_began();
  void *first = take(Pool::statement);
  Digest digest = digest_of(1);
  memdiag::part_ended(digest.data());
  EXPECT_EQ(Digest{}, digest);
  void *second = take(Pool::statement);
  give_back(Pool::statement, first);
  give_back(Pool::statement, second);
  end_statement(digest_of(2));
  for (const int number : {1, 2}) {
    EXPECT_EQ(1u, row_of(digest_of(number))->statements);
    EXPECT_EQ(block_size,
              static_cast<int64_t>(row_of(digest_of(number))->peak_bytes));
  }
}

TEST_F(Sessions, AStatementWithinAnotherIsAPartOfIt) {
  memdiag::session_began();
  A_session outer(digest_of(1).data());
  A_session inner(digest_of(2).data());
  {
    const memdiag::Statement statement(&outer);
    void *kept = take(Pool::statement);
    {
      const memdiag::Statement nested(&inner);
      give_back(Pool::statement, take(Pool::statement));
      memdiag::part_ended(&inner);
    }
    give_back(Pool::statement, kept);
  }
  EXPECT_FALSE(row_of(digest_of(2)));
  EXPECT_EQ(2 * block_size,
            static_cast<int64_t>(row_of(digest_of(1))->peak_bytes));
  EXPECT_EQ(0, inner.m_digest_state.m_digest_storage.m_hash[0])
      << "a command without a digest would have it";
  inner.set_digest(digest_of(2).data());
  const memdiag::Statement next(&inner);
  memdiag::part_ended(&inner);
  EXPECT_EQ(1u, row_of(digest_of(2))->statements);
}

TEST_F(Sessions, WithoutADigest) {
  // The first makes its digest 0; a command that has none leaves it so.
  Digest digest = digest_of(1);
  memdiag::statement_ended(false, digest.data());
  memdiag::statement_ended(false, digest.data());
  EXPECT_EQ(1u, row_of(digest_of(1))->statements);
  ASSERT_TRUE(row_of({}).has_value());
  EXPECT_EQ(1u, row_of({})->statements);
  EXPECT_EQ(0u, row_of({})->overflowed);
}

TEST(Digests, AreWrittenAsPerformanceSchemaDoes) {
  Digest digest{};
  EXPECT_FALSE(sessions::text_of(digest).has_value());
  digest[0] = 0x0a;
  digest[31] = 0xf1;
  EXPECT_EQ("0a" + std::string(60, '0') + "f1", sessions::text_of(digest));
}

TEST_F(Sessions, DigestsOverflow) {
  constexpr uint64_t more = 50;
  for (uint64_t i = 0; i < sessions::max_digests + more; ++i) {
    give_back(Pool::statement, take(Pool::statement));
    end_statement(digest_of(i));
  }
  EXPECT_EQ(sessions::max_digests + 1, sessions::digests().size());
  // Those that are in go on.
  end_statement(digest_of(sessions::max_digests - 1));
  EXPECT_EQ(2u, row_of(digest_of(sessions::max_digests - 1))->statements);
  EXPECT_FALSE(row_of(digest_of(sessions::max_digests)).has_value());
  end_statement({});
  const auto rest = row_of({});
  ASSERT_TRUE(rest.has_value());
  EXPECT_EQ(more + 1, rest->statements);
  EXPECT_EQ(more, rest->overflowed);
  EXPECT_EQ(more * block_size, rest->taken_bytes);
  sessions::track(true);
  EXPECT_TRUE(sessions::digests().empty());
}

/** A statement that had so much at its peak. */
void run_statement(const Digest &digest, int64_t peak_bytes) {
  sessions::note(Pool::statement, 1, peak_bytes);
  sessions::note(Pool::statement, 1, -peak_bytes);
  end_statement(digest);
}

TEST_F(Sessions, ALargeDigestFindsRoomInAFullTable) {
  constexpr int64_t large = int64_t{1} << 30;
  for (uint64_t i = 0; i < sessions::max_digests + 10; ++i)
    run_statement(digest_of(i), 1000);
  const Digest late = digest_of(5000);
  for (int i = 0; i < 20; ++i) run_statement(late, large);
  ASSERT_TRUE(row_of(late).has_value());
  EXPECT_EQ(20u, row_of(late)->statements);
  EXPECT_EQ(uint64_t{large}, row_of(late)->peak_bytes);
  EXPECT_EQ(sessions::max_digests + 1, sessions::digests().size());
  // One small digest gave way to it.
  EXPECT_EQ(11u, row_of({})->statements);
  EXPECT_EQ(11u, row_of({})->overflowed);
  // Small ones that come later do not drive it out.
  for (uint64_t i = 6000; i < 9000; ++i) run_statement(digest_of(i), 1000);
  ASSERT_TRUE(row_of(late).has_value());
  EXPECT_EQ(20u, row_of(late)->statements);
}

/** It is statements that overflow, not digests. */
TEST_F(Sessions, AllStatementsOfADigestThatGivesWayAreCounted) {
  for (uint64_t i = 0; i < sessions::max_digests; ++i)
    for (int n = 0; n < 3; ++n) run_statement(digest_of(i), 1000);
  run_statement(digest_of(5000), 1000);  // finds no room
  run_statement(digest_of(5000), 1000);
  for (uint64_t i = 6000; i < 6004; ++i)  // each takes the place of one
    run_statement(digest_of(i), int64_t{1} << 30);
  ASSERT_TRUE(row_of({}).has_value());
  EXPECT_EQ(2u + 4 * 3, row_of({})->statements);
  EXPECT_EQ(2u + 4 * 3, row_of({})->overflowed);
}

TEST_F(Sessions, TheSmallestOfLargeDigestsGivesWay) {
  const auto bytes_of = [](uint64_t i) {
    return static_cast<int64_t>((1 << 20) + i * 4096);
  };
  constexpr uint64_t count = 3 * sessions::max_digests;
  uint64_t statements = 0;
  for (uint64_t i = 0; i < count; ++i) {
    // Those of the first third are the largest.
    run_statement(digest_of(i), bytes_of(i < sessions::max_digests
                                             ? count + i
                                             : i - sessions::max_digests));
    ++statements;
  }
  uint64_t counted = 0;
  std::map<std::optional<std::string>, uint64_t> statements_of;
  for (const auto &row : sessions::digests()) {
    statements_of[row.digest] = row.statements;
    counted += row.statements;
  }
  const auto text = [](uint64_t i) { return sessions::text_of(digest_of(i)); };
  // Each later one took the place of the one before.
  for (uint64_t i = 1; i < sessions::max_digests; ++i)
    EXPECT_EQ(1u, statements_of[text(i)]) << i;
  EXPECT_EQ(1u, statements_of[text(count - 1)]);
  EXPECT_FALSE(statements_of.contains(text(0)));
  EXPECT_FALSE(statements_of.contains(text(count - 2)));
  EXPECT_EQ(statements, counted) << "none is lost";
}

TEST_F(Sessions, DigestsThatAskForTheSameEntry) {
  // Only bytes differ that are no part of the hash.
  for (unsigned char i = 0; i < 200; ++i) {
    Digest digest{1};
    digest[20] = i;
    end_statement(digest);
    end_statement(digest);
  }
  const auto rows = sessions::digests();
  EXPECT_EQ(200u, rows.size());
  for (const auto &row : rows) EXPECT_EQ(2u, row.statements);
}

}  // namespace memdiag_test
