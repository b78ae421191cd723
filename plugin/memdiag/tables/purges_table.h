/*
  The columns of INFORMATION_SCHEMA.MEMDIAG_PURGES.
*/

#ifndef MEMDIAG_PURGES_TABLE_H
#define MEMDIAG_PURGES_TABLE_H

#include "mysys/memdiag/purging/purge_log.h"
#include "plugin/memdiag/tables/column.h"

namespace memdiag {

inline constexpr Table purges_table = [] {
  using Row = purge_log::Row;
  return Table{
      "MEMDIAG_PURGES",
      "The last 1,024 purges of pools, requested or automatic. The allocator's "
      "own decay is not included.",
      0x0103,
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

static_assert(fingerprint(purges_table) == 2676736181u,
              "columns changed: raise the table's version, then set this");

}  // namespace memdiag

#endif  // MEMDIAG_PURGES_TABLE_H
