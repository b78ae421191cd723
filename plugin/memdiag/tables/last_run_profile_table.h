/*
  The columns of INFORMATION_SCHEMA.MEMDIAG_LAST_RUN_PROFILE.
*/

#ifndef MEMDIAG_LAST_RUN_PROFILE_TABLE_H
#define MEMDIAG_LAST_RUN_PROFILE_TABLE_H

#include "plugin/memdiag/profile_file/record_rows.h"
#include "plugin/memdiag/tables/column.h"
#include "plugin/memdiag/tables/shared_columns.h"

namespace memdiag {

inline constexpr Table last_run_profile_table = [] {
  using Row = profile::Last_run_profile_row;
  return Table{
      "MEMDIAG_LAST_RUN_PROFILE",
      "The code whose memory grew before the end of the last run with "
      "memdiag_profile = RECORD. One row for each stack and statement has its "
      "live bytes at the highest RSS that was recorded, and before memory "
      "began to grow. The largest growth comes first. A run that was killed "
      "while "
      "it grew stays until one that was up for 10 minutes, or has a higher "
      "peak, was recorded.",
      0x0100,
      std::array{
          text_column<Row, &Row::pool>("POOL", 64,
                                       "Pool of the blocks. NULL: the sum of "
                                       "stacks that found no room."),
          text_column<Row, &Row::route>("ROUTE", 128,
                                        "Route of the blocks, or malloc."),
          text_column<Row, &Row::digest>(
              "DIGEST", 64,
              "Digest of the statement that allocated them. NULL: none, or "
              "not known."),
          column<Row, &Row::growth_bytes>(
              "GROWTH_BYTES", Unit::bytes,
              "PEAK_BYTES less BEFORE_BYTES. NULL: nothing was recorded from "
              "before memory grew."),
          column<Row, &Row::peak_bytes>("PEAK_BYTES", Unit::bytes,
                                        "Live bytes at the peak."),
          column<Row, &Row::before_bytes>("BEFORE_BYTES", Unit::bytes,
                                          "Live bytes before memory grew."),
          column<Row, &Row::error_bytes>(
              "ERROR_BYTES", Unit::bytes,
              "Standard error of GROWTH_BYTES, or of PEAK_BYTES if that is "
              "NULL."),
          column<Row, &Row::peak>("PEAK_TIME", Unit::none,
                                  "When the peak was recorded."),
          column<Row, &Row::before>("BEFORE_TIME", Unit::none,
                                    "When BEFORE_BYTES was recorded."),
          column<Row, &Row::peak_rss_bytes>("PEAK_RSS_BYTES", Unit::bytes,
                                            "RSS of the process at the peak."),
          text_column<Row, &Row::frames>(
              "FRAMES", frames_length,
              "As in MEMDIAG_PROFILE. They are addresses if the server's "
              "executable was replaced since, and the debug package of that "
              "build is not installed."),
          text_column<Row, &Row::folded>(
              "FOLDED", folded_length,
              "All functions, the outermost first, separated by "
              "semicolons.")}};
}();

static_assert(fingerprint(last_run_profile_table) == 2982785396u,
              "columns changed: raise the table's version, then set this");

}  // namespace memdiag

#endif  // MEMDIAG_LAST_RUN_PROFILE_TABLE_H
