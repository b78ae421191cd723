/*
  The columns of INFORMATION_SCHEMA.MEMDIAG_INSTRUMENTS.
*/

#ifndef MEMDIAG_INSTRUMENTS_TABLE_H
#define MEMDIAG_INSTRUMENTS_TABLE_H

#include "plugin/memdiag/tables/column.h"
#include "plugin/memdiag/ledger/instruments.h"

namespace memdiag {

inline constexpr Table instruments_table = [] {
  using Row = instruments::Row;
  return Table{
      "MEMDIAG_INSTRUMENTS",
      "One row for each memory instrument of Performance Schema, and for each "
      "place that allocates without one: what is counted, what the allocator "
      "has given out for it, and what of that is in physical memory.",
      0x0100,
      std::array{
          text_column<Row, &Row::event_name>(
              "EVENT_NAME", 192,
              "As in memory_summary_global_by_event_name; of a place as ROUTE "
              "in MEMDIAG_ROUTES. Memory heaps of InnoDB are "
              "memory/innodb/memory, blocks of TempTable "
              "memory/temptable/physical_ram."),
          text_column<Row, &Row::pool>(
              "POOL", 64,
              "The pool that its blocks are taken from; NULL: from several, or "
              "see NOTE."),
          column<Row, &Row::counted_bytes>(
              "COUNTED_BYTES", Unit::bytes,
              "What Performance Schema counts now, headers of blocks "
              "included. NULL where it is off or the instrument is."),
          column<Row, &Row::counted_blocks>("COUNTED_BLOCKS", Unit::count,
                                            "Blocks that it counts."),
          column<Row, &Row::live_bytes>(
              "LIVE_BYTES", Unit::bytes,
              "Taken from pools and not yet freed, rounded up to size "
              "classes."),
          column<Row, &Row::live_blocks>("LIVE_BLOCKS", Unit::count,
                                         "Blocks that these bytes are in."),
          column<Row, &Row::overhead_bytes>(
              "OVERHEAD_BYTES", Unit::bytes,
              "LIVE_BYTES less COUNTED_BYTES, where NOTE is exact: rounding, "
              "headers that are not counted, and blocks that came while the "
              "instrument or their thread was not instrumented. Negative for a "
              "moment if much is freed meanwhile."),
          column<Row, &Row::resident_bytes>(
              "RESIDENT_BYTES", Unit::bytes,
              "What of LIVE_BYTES is in physical memory, if it is as much as "
              "of all of the pool's (MEMDIAG_LEDGER)."),
          text_column<Row, &Row::note>(
              "NOTE", 64,
              "exact: both are known. large blocks only: smaller ones are "
              "malloc()'s, so LIVE_BYTES is without them. not pooled: all are "
              "malloc()'s. not counted by Performance Schema. region: from the "
              "system and not from the allocator, see MEMDIAG_REGIONS. with "
              "performance_schema: LIVE_BYTES of all such are in the row "
              "performance_schema.")}};
}();

static_assert(fingerprint(instruments_table) == 28984519u,
              "columns changed: raise the table's version, then set this");

}  // namespace memdiag

#endif  // MEMDIAG_INSTRUMENTS_TABLE_H
