/*
  The columns of INFORMATION_SCHEMA.MEMDIAG_DIGESTS.
*/

#ifndef MEMDIAG_DIGESTS_TABLE_H
#define MEMDIAG_DIGESTS_TABLE_H

#include "plugin/memdiag/profile/profile_rows.h"
#include "plugin/memdiag/tables/column.h"
#include "plugin/memdiag/tables/shared_columns.h"

namespace memdiag {

inline constexpr Table digests_table = [] {
  using Row = profile::Digest_row;
  return Table{
      "MEMDIAG_DIGESTS",
      "One row for each statement digest: the memory that its statements "
      "allocated from pools. It counts statements that ended while "
      "memdiag_sessions was ON, since it was last set. A statement here is "
      "everything that the session's thread does after the statement before; "
      "the work of other threads is not included.",
      0x0101,
      std::array{
          text_column<Row, &Row::digest>(
              "DIGEST", 64,
              "As in Performance Schema's EVENTS_STATEMENTS_SUMMARY_BY_DIGEST. "
              "NULL: the sum of statements without a digest, commands without "
              "text, and digests after the first 1,000."),
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

static_assert(fingerprint(digests_table) == 2950116809u,
              "columns changed: raise the table's version, then set this");

}  // namespace memdiag

#endif  // MEMDIAG_DIGESTS_TABLE_H
