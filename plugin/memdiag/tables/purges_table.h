/*
  The columns of INFORMATION_SCHEMA.MEMDIAG_PURGES.
*/

#ifndef MEMDIAG_PURGES_TABLE_H
#define MEMDIAG_PURGES_TABLE_H

#include "plugin/memdiag/tables/column.h"
#include "mysys/memdiag/purging/purge_log.h"

namespace memdiag {

inline constexpr Table purges_table = [] {
  using Row = purge_log::Row;
  return Table{
      "MEMDIAG_PURGES",
      "One row for each purge of a pool, and for each other step that the "
      "watcher took when memory was short, of the last 1,024: those asked for "
      "and those that the server made by itself. What the allocator's own "
      "decay gives back is not in it.",
      0x0101,
      std::array{
          column<Row, &Row::sequence>(
              "SEQUENCE", Unit::count,
              "Counts all rows since the server started, from 1: a gap to what "
              "was read before are rows that have given way."),
          moment_column<Row, &Row::time_us>("TIME", "When it ended."),
          text_column<Row, &Row::pool>("POOL", 64,
                                       "The pool's name; of the buffer pool, "
                                       "which is in none, innodb."),
          text_column<Row, &Row::reason>(
              "REASON", 16,
              "asked: by memdiag_purge(); quiet: the pool fell quiet "
              "(memdiag_quiet_ms); dirty_limit: it had too many unused pages "
              "(memdiag_dirty_limit); pressure: memory was short "
              "(memdiag_pressure_watcher)."),
          text_column<Row, &Row::action>(
              "ACTION", 32,
              "purge: unused pages were given back; write_full_text: InnoDB "
              "was asked to write full-text caches; close_tables: open tables "
              "that nobody used were closed; shrink_buffer_pool: InnoDB was "
              "asked to make its buffer pool smaller. What the last three free "
              "are unused pages of the pool, which a purge then gives back, "
              "but for the buffer pool's."),
          column<Row, &Row::resident_before_bytes>(
              "RESIDENT_BYTES_BEFORE", Unit::bytes,
              "RESIDENT_BYTES of the pool before a purge; NULL where ERROR is "
              "not."),
          column<Row, &Row::resident_after_bytes>(
              "RESIDENT_BYTES_AFTER", Unit::bytes, "The same right after."),
          column<Row, &Row::released_bytes>(
              "RELEASED_BYTES", Unit::bytes,
              "The difference; 0 if more was allocated meanwhile than given "
              "back."),
          column<Row, &Row::freed_bytes>(
              "FREED_BYTES", Unit::bytes,
              "What another action than a purge freed, or asked InnoDB to "
              "free, which does so in the background."),
          column<Row, &Row::duration_us>("MICROSECONDS", Unit::microseconds,
                                         "How long it took."),
          column<Row, &Row::refaulted_bytes>(
              "REFAULTED_BYTES", Unit::bytes,
              "What of RELEASED_BYTES the pool allocated again within a "
              "second, "
              "or until its next purge if that came before. NULL: not known "
              "yet, or never, as of `general` and `connection`, whose "
              "allocations are not "
              "counted, and of other actions."),
          column<Row, &Row::error>(
              "ERROR", Unit::none,
              "The system's error number of the first step that failed; of "
              "another action than a purge 16 (EBUSY), InnoDB could not be "
              "asked. NULL: none did.")}};
}();

static_assert(fingerprint(purges_table) == 1982158930u,
              "columns changed: raise the table's version, then set this");

}  // namespace memdiag

#endif  // MEMDIAG_PURGES_TABLE_H
