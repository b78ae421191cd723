/*
  The tables of what memory is used for: of the process, by instrument and
  route, of InnoDB, and of regions without the allocator.
*/

#ifndef MEMDIAG_USAGE_TABLES_H
#define MEMDIAG_USAGE_TABLES_H

#include <array>

#include "mysys/memdiag/pages/regions.h"
#include "mysys/memdiag/routes/routes.h"
#include "plugin/memdiag/ledger/instruments.h"
#include "plugin/memdiag/ledger/ledger_rows.h"
#include "plugin/memdiag/tables/column.h"
#include "storage/innobase/memdiag/innodb.h"

namespace memdiag {

/** Rows of the exact form, which is a table of its own. */
struct Exact_ledger_row : ledger::Row {};

template <typename Row>
constexpr Table<Row, 6> make_ledger_table(const char *name,
                                          const char *summary) {
  return {
      name, summary, 0x0100, 3976390394u,
      std::array{
          text_column<Row, &Row::component>(
              "COMPONENT", 32,
              "buffer_pool, pool (of the allocator), anonymous (other memory "
              "without a file), region (memory from the OS without the "
              "allocator), program, libraries, files, heap (of malloc() calls "
              "that bypass the allocator), unexplained."),
          text_column<Row, &Row::name>(
              "NAME", 64,
              "The pool as in MEMDIAG_POOLS, or the region as in "
              "MEMDIAG_REGIONS; otherwise empty."),
          text_column<Row, &Row::state>(
              "STATE", 64,
              "Of a pool: live, fragmentation (free parts of pages in use), "
              "dirty and muzzy (unused pages that were not released yet), "
              "metadata. Of the buffer pool: kinds of pages."),
          column<Row, &Row::resident_bytes>(
              "RESIDENT_BYTES", Unit::bytes,
              "Physical memory. Each byte is in one row, and the sum is the "
              "process's VmRSS. Only the unexplained part can be negative: "
              "memory that was released during the count."),
          column<Row, &Row::percent>("PERCENT", Unit::percent,
                                     "Share of VmRSS, in percent."),
          column<Row, &Row::mapped_bytes>(
              "MAPPED_BYTES", Unit::bytes,
              "Address space of a region. In the row `never touched` of the "
              "buffer pool: the bytes by which its physical memory can still "
              "grow; NULL in huge pages that the system has reserved "
              "(large_pages=ON), which VmRSS does not count.")}};
}

inline constexpr Table ledger_table = make_ledger_table<ledger::Row>(
    "MEMDIAG_LEDGER",
    "Each resident byte of the process once, by its use. It is cheap enough to "
    "read every second: it is made from the last reading of every page, "
    "usually at most a minute old, and from counters since then. The last row "
    "is the part of VmRSS that these do not explain. If it is more than 1%, "
    "the server reads the pages again. No thread is stopped.");

inline constexpr Table ledger_exact_table = make_ledger_table<Exact_ledger_row>(
    "MEMDIAG_LEDGER_EXACT",
    "MEMDIAG_LEDGER, made from a reading of every page of the allocator at "
    "this moment. The reading takes some 10 ms for each 200 MB in small "
    "blocks.");

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
      0x0100, 28984519u,
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

inline constexpr Table routes_table = [] {
  using Row = routes::Row;
  return Table{
      "MEMDIAG_ROUTES",
      "One row for each route: the pool that a memory instrument allocates "
      "from. Places that allocate without an instrument have a route, too.",
      0x0101, 2346674838u,
      std::array{
          text_column<Row, &Row::name>(
              "ROUTE", 192,
              "The instrument's name in Performance Schema; it does not need "
              "to be on. mem_heap/... are InnoDB's memory heaps by the source "
              "file that creates them."),
          text_column<Row, &Row::pool_name>(
              "POOL", 64,
              "The pool that the route allocates from. general: malloc(), "
              "which is the pool connection in threads of connections, and "
              "group_replication in threads of that plugin."),
          column<Row, &Row::larger_than>(
              "LARGER_THAN", Unit::bytes,
              "Only larger blocks come from the pool, the others from "
              "malloc(). 0: all come from the pool."),
          column<Row, &Row::live_bytes>(
              "LIVE_BYTES", Unit::bytes,
              "Allocated from pools and not yet freed, rounded up to size "
              "classes. NULL: routes to `general` are not counted."),
          column<Row, &Row::live_blocks>("LIVE_BLOCKS", Unit::count,
                                         "Blocks of these bytes.")}};
}();

inline constexpr Table innodb_table = [] {
  using Row = innodb::Component;
  return Table{
      "MEMDIAG_INNODB",
      "One row for each part of InnoDB's memory whose size InnoDB knows. A row "
      "with a POOL is in MEMDIAG_POOLS too, a row with a REGION in "
      "MEMDIAG_REGIONS. No rows while InnoDB is not up.",
      0x0100, 3717794363u,
      std::array{
          text_column<Row, &Row::name>("COMPONENT", 64, "The part."),
          column<Row, &Row::bytes>("BYTES", Unit::bytes,
                                   "Its size, resident or not. NULL: not "
                                   "known; NOTE or a warning says why."),
          column<Row, &Row::limit_bytes>("LIMIT_BYTES", Unit::bytes,
                                         "The size to which it may grow. NULL: "
                                         "it has no limit of its own."),
          column<Row, &Row::items>("ITEMS", Unit::count,
                                   "Number of items in it."),
          text_column<Row, &Row::item>("ITEM", 32, "The kind of item."),
          text_column<Row, &Row::route>(
              "ROUTE", 192,
              "The route of its blocks, as in MEMDIAG_ROUTES. Components may "
              "share a route."),
          text_column<Row, &Row::pool>("POOL", 64, "The route's pool."),
          text_column<Row, &Row::region>(
              "REGION", 64, "The kind of region that contains it."),
          text_column<Row, &Row::part_of>(
              "PART_OF", 64,
              "The component that includes these bytes. To add up, use the "
              "rows where this is NULL."),
          text_column<Row, &Row::note>(
              "NOTE", 512, "Remarks on what is counted and what is not.")}};
}();

inline constexpr Table regions_table = [] {
  using Row = regions::Row;
  return Table{
      "MEMDIAG_REGIONS",
      "One row for each kind of memory that the server gets from the OS "
      "without the allocator. No pool has it. The resident bytes of stacks and "
      "of the buffer pool are those of MEMDIAG_LEDGER.",
      0x0100, 2235276719u,
      std::array{
          text_column<Row, &Row::name>("REGION", 64, "The kind's name."),
          text_column<Row, &Row::purpose>("PURPOSE", 256,
                                          "The use of the memory."),
          column<Row, &Row::count>("REGIONS", Unit::count,
                                   "Regions of this kind now."),
          column<Row, &Row::mapped_bytes>("MAPPED_BYTES", Unit::bytes,
                                          "Their address space."),
          column<Row, &Row::resident_bytes>(
              "RESIDENT_BYTES", Unit::bytes,
              "Their physical memory. Swapped pages do not count, nor do huge "
              "pages that the system has reserved (large_pages=ON)."),
          column<Row, &Row::untracked>(
              "UNTRACKED", Unit::count,
              "Regions since the server started that found no room in the "
              "server's list. The other columns do not include them.")}};
}();

}  // namespace memdiag

#endif  // MEMDIAG_USAGE_TABLES_H
