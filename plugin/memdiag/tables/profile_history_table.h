/*
  The columns of INFORMATION_SCHEMA.MEMDIAG_PROFILE_HISTORY.
*/

#ifndef MEMDIAG_PROFILE_HISTORY_TABLE_H
#define MEMDIAG_PROFILE_HISTORY_TABLE_H

#include "plugin/memdiag/profile_file/record_rows.h"
#include "plugin/memdiag/tables/column.h"
#include "plugin/memdiag/tables/shared_columns.h"

namespace memdiag {

inline constexpr Table profile_history_table = [] {
  using Row = profile::Profile_history_row;
  return Table{
      "MEMDIAG_PROFILE_HISTORY",
      "Live bytes of the largest stacks over time. While memdiag_profile is "
      "RECORD, the server writes them each minute and at new highs of RSS. "
      "Rows are of this run and of the last one that recorded.",
      0x0100,
      std::array{
          column<Row, &Row::run>("RUN", Unit::none,
                                 "0: this run. 1: the last one."),
          moment_column<Row, &Row::time_us>("TIME",
                                            "When the snapshot was taken."),
          text_column<Row, &Row::reason>(
              "REASON", 16,
              "period: a minute has passed. new_high: RSS was higher than "
              "before. before_ramp: the last snapshot before RSS grew."),
          column<Row, &Row::rss_bytes>("RSS_BYTES", Unit::bytes,
                                       "RSS of the process."),
          column<Row, &Row::live_bytes>(
              "LIVE_BYTES", Unit::bytes,
              "Live bytes of all stacks, also of those without a row."),
          text_column<Row, &Row::pool>("POOL", 64, "Pool of the stack."),
          text_column<Row, &Row::digest>("DIGEST", 64,
                                         "Digest of the statement."),
          column<Row, &Row::stack_bytes>("STACK_BYTES", Unit::bytes,
                                         "Live bytes of the stack for the "
                                         "statement."),
          column<Row, &Row::stack_bytes_error>("STACK_BYTES_ERROR", Unit::bytes,
                                               "Its standard error."),
          frames_column<Row>()}};
}();

static_assert(fingerprint(profile_history_table) == 108860412u,
              "columns changed: raise the table's version, then set this");

}  // namespace memdiag

#endif  // MEMDIAG_PROFILE_HISTORY_TABLE_H
