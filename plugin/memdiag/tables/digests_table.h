/*
  The columns of INFORMATION_SCHEMA.MEMDIAG_DIGESTS.
*/

#ifndef MEMDIAG_DIGESTS_TABLE_H
#define MEMDIAG_DIGESTS_TABLE_H

#include "plugin/memdiag/tables/column.h"
#include "mysys/memdiag/accounting/sessions.h"

namespace memdiag {

inline constexpr Table digests_table = [] {
  using Row = sessions::Digest_row;
  return Table{
      "MEMDIAG_DIGESTS",
      "One row for each statement digest of which statements ended while "
      "memdiag_sessions was ON, since that was last set: what they took of "
      "pools. A statement is what its session's thread does from the end of "
      "the one before; what other threads do for it is not in it.",
      0x0100,
      std::array{
          text_column<Row, &Row::digest>(
              "DIGEST", 64,
              "As in Performance Schema's EVENTS_STATEMENTS_SUMMARY_BY_DIGEST. "
              "NULL: the sum of all statements that it computed none for, "
              "commands without text, and digests that came after the first "
              "1,000."),
          column<Row, &Row::statements>("STATEMENTS", Unit::count,
                                        "How many there were."),
          column<Row, &Row::taken_bytes>(
              "ACCUMULATED_BYTES", Unit::bytes,
              "Taken by all of them, rounded up to size classes, whether freed "
              "or not."),
          column<Row, &Row::peak_bytes>(
              "PEAK_BYTES", Unit::bytes,
              "The most that one of them had taken and not freed at a moment. "
              "What it freed that was there before is taken off."),
          moment_column<Row, &Row::last_us>("LAST_SEEN",
                                            "When the last of them ended."),
          column<Row, &Row::overflowed>(
              "OVERFLOWED", Unit::count,
              "Of the row without a digest: statements whose digest found no "
              "room.")}};
}();

static_assert(fingerprint(digests_table) == 191491501u,
              "columns changed: raise the table's version, then set this");

}  // namespace memdiag

#endif  // MEMDIAG_DIGESTS_TABLE_H
