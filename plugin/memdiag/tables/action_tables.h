/*
  The tables of what the server did by itself.
*/

#ifndef MEMDIAG_ACTION_TABLES_H
#define MEMDIAG_ACTION_TABLES_H

#include <array>

#include "mysys/memdiag/purging/purge_log.h"
#include "plugin/memdiag/ceiling/ceiling_log.h"
#include "plugin/memdiag/tables/column.h"

namespace memdiag {

inline constexpr Table purges_table = [] {
  using Row = purge_log::Row;
  return Table{
      "MEMDIAG_PURGES",
      "The last 1,024 purges of pools, requested or automatic. The allocator's "
      "own decay is not included.",
      0x0104, 2555369568u,
      std::array{
          column<Row, &Row::sequence>(
              "SEQUENCE", Unit::none,
              "Number of the row since the server started, from 1. A gap "
              "between two reads of the table: rows in between were "
              "overwritten."),
          moment_column<Row, &Row::time_us>("TIME", "The end of the purge."),
          text_column<Row, &Row::pool>("POOL", 64, "The pool's name."),
          text_column<Row, &Row::reason>(
              "REASON", 16,
              "asked: memdiag_purge(). quiet: the pool fell quiet "
              "(memdiag_quiet_ms). excess: it is busy, but needed few of its "
              "unused pages lately. dirty_limit: it had too many unused pages "
              "(memdiag_dirty_limit). pressure: memory was short "
              "(memdiag_memory_target, or the memory limit of Group "
              "Replication's resource manager)."),
          column<Row, &Row::rss_before_bytes>(
              "RSS_BYTES_BEFORE", Unit::bytes,
              "RSS of the process (VmRSS) before it. NULL: see ERROR."),
          column<Row, &Row::rss_after_bytes>("RSS_BYTES_AFTER", Unit::bytes,
                                             "RSS right after it."),
          column<Row, &Row::released_bytes>(
              "RELEASED_BYTES", Unit::bytes,
              "The difference, and no more than the pool gave back; 0 if more "
              "was allocated meanwhile than released."),
          column<Row, &Row::duration_us>("MICROSECONDS", Unit::microseconds,
                                         "Duration."),
          column<Row, &Row::refaulted_bytes>(
              "REFAULTED_BYTES", Unit::bytes,
              "Part of RELEASED_BYTES that the pool allocated again within a "
              "second, or until its next purge if that came first. NULL: not "
              "known yet. It is never known for malloc()'s pools (`general`, "
              "`connection`, `group_replication`)."),
          column<Row, &Row::error>(
              "ERROR", Unit::none,
              "Error number of the first failure. NULL: none.")}};
}();

inline constexpr Table ceiling_table = [] {
  using Row = ceiling::Row;
  return Table{
      "MEMDIAG_CEILING",
      "The last actions of the ceiling (memdiag_memory_target): 256 of end, "
      "refuse and went_on, and 768 others. What was given back, who waited, "
      "which statement ended.",
      0x0102, 1564813373u,
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
              "The level before it; of steps in one row, the highest. GREEN: "
              "statements begin. YELLOW: they wait, and running ones go on. "
              "RED: running ones wait before they take more. UNKNOWN: the "
              "kernel's figures cannot be read.")}};
}();

}  // namespace memdiag

#endif  // MEMDIAG_ACTION_TABLES_H
