/*
  The columns of INFORMATION_SCHEMA.MEMDIAG_PINNED.
*/

#ifndef MEMDIAG_PINNED_TABLE_H
#define MEMDIAG_PINNED_TABLE_H

#include "plugin/memdiag/profile/profile_rows.h"
#include "plugin/memdiag/tables/column.h"
#include "plugin/memdiag/tables/shared_columns.h"

namespace memdiag {

inline constexpr Table pinned_table = [] {
  using Row = profile::Pinned_row;
  return Table{
      "MEMDIAG_PINNED",
      "Stacks whose old blocks keep nearly empty slabs alive. A size class of "
      "a pool has rows if less than half of its blocks is in use: up to three "
      "stacks with most blocks that are older than a minute. The class with "
      "most unused bytes comes first. Figures of stacks are estimates from "
      "samples: a stack with few samples may be missing. Empty while "
      "memdiag_profile is OFF.",
      0x0100,
      std::array{
          text_column<Row, &Row::pool>("POOL", 64, "Pool of the slabs."),
          column<Row, &Row::size>("SIZE", Unit::bytes,
                                  "Size class of the blocks."),
          column<Row, &Row::slabs>("SLABS", Unit::count,
                                   "Slabs of the class, in all arenas."),
          column<Row, &Row::utilisation>("UTILISATION", Unit::ratio,
                                         "Part of their blocks that lives."),
          column<Row, &Row::waste_bytes>(
              "WASTE_BYTES", Unit::bytes,
              "Free blocks of the slabs. Their pages cannot be given back."),
          column<Row, &Row::stack>(
              "STACK", Unit::none,
              "Number of a stack in MEMDIAG_STACKS that holds old blocks."),
          column<Row, &Row::samples>("SAMPLES", Unit::count,
                                     "Old samples of this stack and class."),
          column<Row, &Row::objects>("OBJECTS", Unit::count,
                                     "Old blocks that they stand for."),
          column<Row, &Row::objects_error>("OBJECTS_ERROR", Unit::count,
                                           "Standard error of OBJECTS."),
          column<Row, &Row::share>(
              "SHARE", Unit::ratio,
              "OBJECTS as a part of the live blocks of the class."),
          column<Row, &Row::median_s>("MEDIAN_SECONDS", Unit::seconds,
                                      "Median age of the old samples."),
          text_column<Row, &Row::digest>("DIGEST", 64,
                                         "Digest of most of the samples."),
          frames_column<Row>()}};
}();

static_assert(fingerprint(pinned_table) == 705299792u,
              "columns changed: raise the table's version, then set this");

}  // namespace memdiag

#endif  // MEMDIAG_PINNED_TABLE_H
