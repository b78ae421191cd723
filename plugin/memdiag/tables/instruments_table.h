/*
  The columns of INFORMATION_SCHEMA.MEMDIAG_INSTRUMENTS.
*/

#ifndef MEMDIAG_INSTRUMENTS_TABLE_H
#define MEMDIAG_INSTRUMENTS_TABLE_H

#include "plugin/memdiag/ledger/instruments.h"
#include "plugin/memdiag/tables/column.h"

namespace memdiag {

inline constexpr Table instruments_table = [] {
  using Row = instruments::Row;
  return Table{
      "MEMDIAG_INSTRUMENTS",
      "One row for each memory instrument of Performance Schema and each place "
      "that allocates without one: the bytes that are counted, allocated and "
      "resident. Three differences from stock: memory/innodb/memory counts 16 "
      "bytes less for each block, memory/innodb/os0event is counted for the "
      "server and not for threads, and there are fewer mutexes of transactions "
      "in mutex_instances.",
      0x0100,
      std::array{
          text_column<Row, &Row::event_name>(
              "EVENT_NAME", 192,
              "The name in memory_summary_global_by_event_name, or for a place "
              "the ROUTE in MEMDIAG_ROUTES. InnoDB's memory heaps are "
              "memory/innodb/memory; TempTable's blocks are "
              "memory/temptable/physical_ram."),
          text_column<Row, &Row::pool>("POOL", 64,
                                       "The pool that its blocks come from. "
                                       "NULL: several, or see NOTE."),
          column<Row, &Row::counted_bytes>(
              "COUNTED_BYTES", Unit::bytes,
              "Bytes that Performance Schema counts now, with the headers of "
              "blocks. NULL: Performance Schema or the instrument is off, or "
              "the place has no instrument."),
          column<Row, &Row::counted_blocks>("COUNTED_BLOCKS", Unit::count,
                                            "Blocks that it counts."),
          column<Row, &Row::live_bytes>("LIVE_BYTES", Unit::bytes,
                                        "Allocated from pools and not yet "
                                        "freed, rounded up to size classes."),
          column<Row, &Row::live_blocks>("LIVE_BLOCKS", Unit::count,
                                         "Blocks of these bytes."),
          column<Row, &Row::overhead_bytes>(
              "OVERHEAD_BYTES", Unit::bytes,
              "LIVE_BYTES minus COUNTED_BYTES where NOTE is exact: rounding, "
              "headers that are not counted, and blocks allocated while the "
              "instrument was off or their thread was not instrumented. "
              "Negative for a moment if much is freed between the two reads."),
          column<Row, &Row::resident_bytes>(
              "RESIDENT_BYTES", Unit::bytes,
              "Resident part of LIVE_BYTES, estimated by the pool's resident "
              "share in MEMDIAG_LEDGER."),
          text_column<Row, &Row::note>(
              "NOTE", 64,
              "exact: both figures are known. large blocks only: smaller "
              "blocks come from malloc() and are not in LIVE_BYTES. not "
              "pooled: all blocks come from malloc(). not counted by "
              "Performance Schema. region: memory from the OS without the "
              "allocator, see MEMDIAG_REGIONS. with performance_schema: the "
              "row performance_schema has the LIVE_BYTES of all of these.")}};
}();

static_assert(fingerprint(instruments_table) == 28984519u,
              "columns changed: raise the table's version, then set this");

}  // namespace memdiag

#endif  // MEMDIAG_INSTRUMENTS_TABLE_H
