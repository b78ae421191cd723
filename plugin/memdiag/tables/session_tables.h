/*
  The tables of sessions and statements, and of what they left behind.
*/

#ifndef MEMDIAG_SESSION_TABLES_H
#define MEMDIAG_SESSION_TABLES_H

#include <array>

#include "mysys/memdiag/accounting/scopes.h"
#include "plugin/memdiag/ledger/session_rows.h"
#include "plugin/memdiag/profile/profile_rows.h"
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
      "included. With a plugin that pools threads (thread_pool) a warning says "
      "that no session's memory is known, and background has it.",
      0x0100, 509541948u,
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

inline constexpr Table digests_table = [] {
  using Row = profile::Digest_row;
  return Table{
      "MEMDIAG_DIGESTS",
      "One row for each statement digest: the memory that its statements "
      "allocated from pools. It counts statements that ended while "
      "memdiag_sessions was ON, since it was last set. A statement here is "
      "everything that the session's thread does after the statement before; "
      "the work of other threads is not included.",
      0x0102, 2906143524u,
      std::array{
          text_column<Row, &Row::digest>(
              "DIGEST", 64,
              "As in Performance Schema's EVENTS_STATEMENTS_SUMMARY_BY_DIGEST. "
              "NULL: the sum of statements without a digest, of commands "
              "without "
              "text, and of digests that found no room among 1,000 or gave way "
              "to a larger one."),
          column<Row, &Row::statements>("STATEMENTS", Unit::count,
                                        "Number of statements."),
          column<Row, &Row::taken_bytes>("ACCUMULATED_BYTES", Unit::bytes,
                                         "Allocated by all of them, rounded up "
                                         "to size classes, freed or not."),
          column<Row, &Row::peak_bytes>(
              "PEAK_BYTES", Unit::bytes,
              "Most that one statement had allocated and not freed at a time. "
              "Memory from before the statement that it freed is subtracted."),
          column<Row, &Row::peak_site>(
              "PEAK_STACK", Unit::none,
              "Number in MEMDIAG_STACKS of the stack that held most at "
              "PEAK_BYTES. NULL: the heap profiler took no sample of it, or "
              "was switched on later."),
          text_column<Row, &Row::peak_frames>(
              "PEAK_FRAMES", frames_length,
              "FRAMES of that stack, as in MEMDIAG_PROFILE."),
          moment_column<Row, &Row::last_us>("LAST_SEEN",
                                            "End of the last of them."),
          column<Row, &Row::overflowed>(
              "OVERFLOWED", Unit::count,
              "In the row without a digest: those of its STATEMENTS whose "
              "digest found no room, or gave way to a larger one.")}};
}();

inline constexpr Table survivors_table = [] {
  using Row = scopes::Row;
  return Table{
      "MEMDIAG_SURVIVORS",
      "One row for each route with survivors: blocks that outlived their "
      "statement, transaction or session, whichever is the LIFETIME of their "
      "pool. Counted while memdiag_scope_survivors is ON.",
      0x0102, 209685631u,
      std::array{
          text_column<Row, &Row::route>("ROUTE", 192,
                                        "The route, as in MEMDIAG_ROUTES."),
          text_column<Row, &Row::pool_name>("POOL", 64, "The blocks' pool."),
          text_column<Row, &Row::scope_name>(
              "SCOPE", 16,
              "The lifetime that they outlived: statement, transaction or "
              "session."),
          column<Row, &Row::bytes>(
              "BYTES", Unit::bytes,
              "Survivors that still live, rounded up to size classes."),
          column<Row, &Row::blocks>("BLOCKS", Unit::count,
                                    "Blocks of these bytes."),
          column<Row, &Row::scopes>(
              "SCOPES", Unit::count,
              "Statements, transactions or sessions that left more than they "
              "found, since the route last had no survivors."),
          moment_column<Row, &Row::since_us>("SINCE",
                                             "End of the first of these."),
          moment_column<Row, &Row::last_us>("LAST",
                                            "End of the last of these."),
          column<Row, &Row::age_s>("AGE_SECONDS", Unit::seconds,
                                   "Time since SINCE: no survivor is older.")}};
}();

}  // namespace memdiag

#endif  // MEMDIAG_SESSION_TABLES_H
