/*
  The columns of INFORMATION_SCHEMA.MEMDIAG_SESSIONS.
*/

#ifndef MEMDIAG_SESSIONS_TABLE_H
#define MEMDIAG_SESSIONS_TABLE_H

#include "plugin/memdiag/ledger/session_rows.h"
#include "plugin/memdiag/tables/column.h"

namespace memdiag {

inline constexpr Table sessions_table = [] {
  using Row = sessions::Row;
  return Table{
      "MEMDIAG_SESSIONS",
      "One row for each session and pool: bytes that the session's thread "
      "allocated from pools minus those that it freed. Counted while "
      "memdiag_sessions is ON, from the moment it was set; empty while it is "
      "OFF. Memory that other threads allocate for the session, and memory "
      "from malloc() (pools general, connection and group_replication), is not "
      "included.",
      0x0100,
      std::array{
          text_column<Row, &Row::holder>(
              "HOLDER", 16,
              "session. background: the sum of all threads without a session. "
              "ended: memory that sessions and threads allocated and did not "
              "free before they ended."),
          column<Row, &Row::processlist_id>(
              "PROCESSLIST_ID", Unit::none,
              "CONNECTION_ID() of the session. NULL: no session."),
          text_column<Row, &Row::user>(
              "USER", 32, "The session's user, as in SHOW PROCESSLIST."),
          text_column<Row, &Row::host>("HOST", 255, "The client's host."),
          text_column<Row, &Row::program>(
              "PROGRAM", 255,
              "The connection attribute program_name. NULL: there is none, or "
              "Performance Schema does not know it."),
          text_column<Row, &Row::digest>(
              "DIGEST", 64,
              "Digest of the running statement, as in Performance Schema's "
              "EVENTS_STATEMENTS_CURRENT. NULL: none, or not known there."),
          text_column<Row, &Row::pool>("POOL", 64, "The pool's name."),
          column<Row, &Row::bytes>(
              "BYTES", Unit::bytes,
              "Allocated minus freed, rounded up to size classes. Negative: "
              "the thread freed more memory of other threads, or of the time "
              "before counting began, than it allocated. The sum over all rows "
              "of a pool is exact, but for changes during the read.")}};
}();

static_assert(fingerprint(sessions_table) == 509541948u,
              "columns changed: raise the table's version, then set this");

}  // namespace memdiag

#endif  // MEMDIAG_SESSIONS_TABLE_H
