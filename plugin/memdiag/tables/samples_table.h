/*
  The columns of INFORMATION_SCHEMA.MEMDIAG_SAMPLES.
*/

#ifndef MEMDIAG_SAMPLES_TABLE_H
#define MEMDIAG_SAMPLES_TABLE_H

#include "plugin/memdiag/profile/profile_rows.h"
#include "plugin/memdiag/tables/column.h"

namespace memdiag {

inline constexpr Table samples_table = [] {
  using Row = profile::Sample_row;
  return Table{
      "MEMDIAG_SAMPLES",
      "One row for each sampled block that lives. Empty while memdiag_profile "
      "is OFF.",
      0x0100,
      std::array{
          column<Row, &Row::bytes>("BYTES", Unit::bytes,
                                   "Size of the block, rounded up to its size "
                                   "class."),
          column<Row, &Row::age_s>("AGE_SECONDS", Unit::seconds,
                                   "Time since it was allocated."),
          column<Row, &Row::stack>(
              "STACK", Unit::none,
              "Number of its stack in MEMDIAG_STACKS. NULL: there was no room "
              "for the stack."),
          column<Row, &Row::session>(
              "PROCESSLIST_ID", Unit::none,
              "Session that allocated it, which may have ended. NULL: a thread "
              "without a session."),
          text_column<Row, &Row::digest>(
              "DIGEST", 64,
              "Digest of the statement that allocated it. NULL: none, or not "
              "known."),
          text_column<Row, &Row::pool>("POOL", 64, "Pool of the block."),
          text_column<Row, &Row::route>("ROUTE", 128,
                                        "Its route, or malloc.")}};
}();

static_assert(fingerprint(samples_table) == 2553585748u,
              "columns changed: raise the table's version, then set this");

}  // namespace memdiag

#endif  // MEMDIAG_SAMPLES_TABLE_H
