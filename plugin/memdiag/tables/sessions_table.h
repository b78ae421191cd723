/*
  The columns of INFORMATION_SCHEMA.MEMDIAG_SESSIONS.
*/

#ifndef MEMDIAG_SESSIONS_TABLE_H
#define MEMDIAG_SESSIONS_TABLE_H

#include "plugin/memdiag/tables/column.h"
#include "plugin/memdiag/ledger/session_rows.h"

namespace memdiag {

inline constexpr Table sessions_table = [] {
  using Row = sessions::Row;
  return Table{
      "MEMDIAG_SESSIONS",
      "One row for each session and pool with something of it, counted while "
      "memdiag_sessions is ON, from when that was set: bytes of blocks of "
      "MEMDIAG_ROUTES' pools that the session's thread took less those that it "
      "freed. What other threads took for it, and what is malloc()'s (pool "
      "general or connection), is not in it. Empty while memdiag_sessions is "
      "OFF.",
      0x0100,
      std::array{
          text_column<Row, &Row::holder>(
              "HOLDER", 16,
              "session; background: the sum of all threads that have none; "
              "ended: what sessions and threads that are gone took and did not "
              "free."),
          column<Row, &Row::processlist_id>(
              "PROCESSLIST_ID", Unit::none,
              "As CONNECTION_ID() has it; NULL: no session."),
          text_column<Row, &Row::user>("USER", 32,
                                       "Who connected, as SHOW PROCESSLIST "
                                       "has it."),
          text_column<Row, &Row::host>("HOST", 255, "From where."),
          text_column<Row, &Row::program>(
              "PROGRAM", 255,
              "The connection's attribute program_name; NULL: it has none, or "
              "Performance Schema does not tell."),
          text_column<Row, &Row::digest>(
              "DIGEST", 64,
              "Of the statement that runs now, as in Performance Schema's "
              "EVENTS_STATEMENTS_CURRENT; NULL: none, or not known there."),
          text_column<Row, &Row::pool>("POOL", 64, "The pool's name."),
          column<Row, &Row::bytes>(
              "BYTES", Unit::bytes,
              "Taken less freed, rounded up to size classes. Below 0: more was "
              "freed of what others took, or of what was there before, than "
              "was taken. The sum over all rows of a pool is exact, but for "
              "what happens while it is read.")}};
}();

static_assert(fingerprint(sessions_table) == 509541948u,
              "columns changed: raise the table's version, then set this");

}  // namespace memdiag

#endif  // MEMDIAG_SESSIONS_TABLE_H
