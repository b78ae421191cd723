/* The rows of MEMDIAG_SESSIONS. */

#include "plugin/memdiag/ledger/session_rows.h"

#include <gtest/gtest.h>

#include <map>
#include <tuple>

namespace memdiag_test {

using memdiag::Pool;
namespace sessions = memdiag::sessions;
using sessions::Holdings;
using sessions::Nets;
using sessions::Row;
using sessions::Server_session;

Nets nets(int64_t session_bytes, int64_t statement_bytes) {
  Nets made{};
  made[static_cast<size_t>(Pool::session)] = session_bytes;
  made[static_cast<size_t>(Pool::statement)] = statement_bytes;
  return made;
}

Server_session session(pthread_t thread, uint64_t id) {
  return {thread, id, "user", "host", "program", "digest"};
}

using Key = std::tuple<std::string, uint64_t, std::string>;

/** Bytes by holder, processlist id (0: NULL) and pool. */
std::map<Key, int64_t> bytes(const std::vector<Row> &rows) {
  std::map<Key, int64_t> found;
  for (const Row &row : rows) {
    const bool added =
        found
            .insert({Key{row.holder, row.processlist_id.value_or(0), row.pool},
                     row.bytes})
            .second;
    EXPECT_TRUE(added);
  }
  return found;
}

TEST(SessionRows, NoneWhereNobodyHoldsAnything) {
  EXPECT_TRUE(sessions::rows({}, {}).empty());
  const Server_session idle[] = {session(1, 10)};
  EXPECT_TRUE(sessions::rows({{{1, nets(0, 0)}}, {}}, idle).empty());
}

TEST(SessionRows, SessionsBackgroundAndEnded) {
  const Holdings held{
      {{1, nets(100, 0)}, {2, nets(-7, 30)}, {3, nets(5, 1)}, {4, nets(5, -1)}},
      nets(0, 9)};
  const Server_session known[] = {session(2, 20), session(1, 10),
                                  session(5, 50)};
  const auto rows = sessions::rows(held, known);
  const std::map<Key, int64_t> expected{{{"session", 10, "session"}, 100},
                                        {{"session", 20, "session"}, -7},
                                        {{"session", 20, "statement"}, 30},
                                        {{"background", 0, "session"}, 10},
                                        {{"ended", 0, "statement"}, 9}};
  EXPECT_EQ(expected, bytes(rows));
  for (const Row &row : rows) {
    const bool of_session = row.processlist_id.has_value();
    EXPECT_EQ(of_session, row.user == "user");
    EXPECT_EQ(of_session, row.host == "host");
    EXPECT_EQ(of_session, row.program == "program");
    EXPECT_EQ(of_session, row.digest == "digest");
    EXPECT_EQ(of_session, row.user.has_value());
  }
}

TEST(SessionRows, TwoSessionsOnOneThread) {
  const Server_session known[] = {session(1, 12), session(1, 10),
                                  session(1, 11)};
  const std::map<Key, int64_t> expected{{{"session", 10, "session"}, 100}};
  EXPECT_EQ(expected, bytes(sessions::rows({{{1, nets(100, 0)}}, {}}, known)));
}

TEST(SessionRows, WhatIsNotKnownIsNull) {
  const Server_session known[] = {
      {1, 10, "user", "host", std::nullopt, std::nullopt}};
  const auto rows = sessions::rows({{{1, nets(100, 0)}}, {}}, known);
  ASSERT_EQ(1u, rows.size());
  EXPECT_FALSE(rows[0].program.has_value());
  EXPECT_FALSE(rows[0].digest.has_value());
}

}  // namespace memdiag_test
