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
      "The last 1,024 purges of pools, requested or automatic, and other steps "
      "that the watcher took when memory was short. The allocator's own decay "
      "is not included.",
      0x0102,
      std::array{
          column<Row, &Row::sequence>(
              "SEQUENCE", Unit::none,
              "Number of the row since the server started, from 1. A gap "
              "between two reads of the table: rows in between were "
              "overwritten."),
          moment_column<Row, &Row::time_us>("TIME", "The end of the step."),
          text_column<Row, &Row::pool>("POOL", 64,
                                       "The pool's name. For the buffer pool, "
                                       "which is in no pool: innodb."),
          text_column<Row, &Row::reason>(
              "REASON", 16,
              "asked: memdiag_purge(). quiet: the pool fell quiet "
              "(memdiag_quiet_ms). excess: it is busy, but needed few of its "
              "unused pages lately. dirty_limit: it had too many unused pages "
              "(memdiag_dirty_limit). pressure: memory was short "
              "(memdiag_pressure_watcher, memdiag_admission, or the memory "
              "limit of Group Replication's resource manager)."),
          text_column<Row, &Row::action>(
              "ACTION", 32,
              "purge: unused pages were released. write_full_text: InnoDB was "
              "asked to write full-text caches. close_tables: open tables "
              "without users were closed. shrink_buffer_pool: InnoDB was asked "
              "to shrink its buffer pool. write_full_text and close_tables "
              "leave unused pages in the pool, which a purge then releases."),
          column<Row, &Row::rss_before_bytes>(
              "RSS_BYTES_BEFORE", Unit::bytes,
              "RSS of the process (VmRSS) before a purge. NULL: another "
              "ACTION, or see ERROR."),
          column<Row, &Row::rss_after_bytes>("RSS_BYTES_AFTER", Unit::bytes,
                                             "RSS right after it."),
          column<Row, &Row::released_bytes>(
              "RELEASED_BYTES", Unit::bytes,
              "The difference, and no more than the pool gave back; 0 if more "
              "was allocated meanwhile than released."),
          column<Row, &Row::freed_bytes>(
              "FREED_BYTES", Unit::bytes,
              "Bytes that an ACTION other than purge freed, or asked InnoDB to "
              "free in the background."),
          column<Row, &Row::duration_us>("MICROSECONDS", Unit::microseconds,
                                         "Duration."),
          column<Row, &Row::refaulted_bytes>(
              "REFAULTED_BYTES", Unit::bytes,
              "Part of RELEASED_BYTES that the pool allocated again within a "
              "second, or until its next purge if that came first. NULL: not "
              "known yet. It is never known for malloc()'s pools (`general`, "
              "`connection`, `group_replication`) and for other ACTIONs."),
          column<Row, &Row::error>(
              "ERROR", Unit::none,
              "Error number of the first failure of a purge. For another "
              "ACTION 16 (EBUSY): InnoDB could not be asked, or did not do it. "
              "NULL: no failure.")}};
}();

static_assert(fingerprint(purges_table) == 4227747408u,
              "columns changed: raise the table's version, then set this");

}  // namespace memdiag

#endif  // MEMDIAG_PURGES_TABLE_H
