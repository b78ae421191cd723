/*
  The columns of INFORMATION_SCHEMA.MEMDIAG_ROUTES.
*/

#ifndef MEMDIAG_ROUTES_TABLE_H
#define MEMDIAG_ROUTES_TABLE_H

#include "plugin/memdiag/tables/column.h"
#include "mysys/memdiag/routes/routes.h"

namespace memdiag {

inline constexpr Table routes_table = [] {
  using Row = routes::Row;
  return Table{
      "MEMDIAG_ROUTES",
      "One row for each route: which pool a memory instrument, or a place that "
      "has no instrument of its own, takes its blocks from.",
      0x0101,
      std::array{
          text_column<Row, &Row::name>(
              "ROUTE", 192,
              "The instrument's name as Performance Schema has it, whether "
              "that "
              "is on or off; mem_heap/... are InnoDB's memory heaps by the "
              "source file that creates them."),
          text_column<Row, &Row::pool_name>(
              "POOL", 64,
              "The pool that blocks are taken from now; general: malloc(), "
              "which in threads of connections is the pool connection."),
          column<Row, &Row::larger_than>(
              "LARGER_THAN", Unit::bytes,
              "Only blocks larger than this are taken from the pool, the "
              "others from malloc(); 0: all are."),
          column<Row, &Row::live_bytes>(
              "LIVE_BYTES", Unit::bytes,
              "Taken from pools and not yet freed, rounded up to size classes; "
              "NULL for routes to `general`, which are not counted."),
          column<Row, &Row::live_blocks>("LIVE_BLOCKS", Unit::count,
                                         "Blocks that these bytes are in.")}};
}();

static_assert(fingerprint(routes_table) == 2346674838u,
              "columns changed: raise the table's version, then set this");

}  // namespace memdiag

#endif  // MEMDIAG_ROUTES_TABLE_H
