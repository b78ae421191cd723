/*
  The columns of INFORMATION_SCHEMA.MEMDIAG_CEILING.
*/

#ifndef MEMDIAG_CEILING_TABLE_H
#define MEMDIAG_CEILING_TABLE_H

#include "plugin/memdiag/ceiling/ceiling_log.h"
#include "plugin/memdiag/tables/column.h"

namespace memdiag {

inline constexpr Table ceiling_table = [] {
  using Row = ceiling::Row;
  return Table{
      "MEMDIAG_CEILING",
      "The last 1,024 actions of the ceiling (memdiag_memory_target): what was "
      "given back, who waited, which statement ended.",
      0x0101,
      std::array{
          moment_column<Row, &Row::time_us>(
              "TIME",
              "When it began. Steps of one kind that follow each other "
              "within a second are one row."),
          text_column<Row, &Row::action>(
              "ACTION", 16,
              "purge: unused pages of pools went back. park: frames of the "
              "buffer pool did. return: the buffer pool has frames again. "
              "caches: full-text caches were written and unused tables closed. "
              "wait: a statement waited before it began. end: a statement was "
              "told to end. refuse: a statement did not begin. went_on: a "
              "running statement waited as long as it may and went on without "
              "room. spill: a statement began with less memory for temporary "
              "tables and hash joins, so that it writes them to disk."),
          column<Row, &Row::acted>(
              "ACTED", Unit::none,
              "NO: memdiag_memory_target is WATCH, and nothing was done."),
          column<Row, &Row::processlist_id>(
              "PROCESSLIST_ID", Unit::none,
              "The statement's session. NULL: the giver's own step."),
          text_column<Row, &Row::digest>(
              "DIGEST", 64, "The statement's digest, as in MEMDIAG_DIGESTS."),
          column<Row, &Row::bytes>(
              "BYTES", Unit::bytes,
              "What went back. For a statement: what it was to take, or had "
              "grown by."),
          column<Row, &Row::duration_us>("DURATION_MICROSECONDS",
                                         Unit::microseconds,
                                         "How long it took, or waited."),
          column<Row, &Row::left_before_bytes>(
              "LEFT_BEFORE_BYTES", Unit::bytes,
              "Left below the target before it. Negative: above the target."),
          column<Row, &Row::left_after_bytes>("LEFT_AFTER_BYTES", Unit::bytes,
                                              "The same after it."),
          text_column<Row, &Row::level>(
              "LEVEL", 8,
              "The level before it. GREEN: statements begin. YELLOW: they "
              "wait, "
              "and running ones go on. RED: running ones wait for a large "
              "block. UNKNOWN: the kernel's figures cannot be read.")}};
}();

static_assert(fingerprint(ceiling_table) == 3560221306u,
              "columns changed: raise the table's version, then set this");

}  // namespace memdiag

#endif  // MEMDIAG_CEILING_TABLE_H
