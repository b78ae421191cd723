/*
  The columns of INFORMATION_SCHEMA.MEMDIAG_ROUTES.
*/

#ifndef MEMDIAG_ROUTES_TABLE_H
#define MEMDIAG_ROUTES_TABLE_H

#include "mysys/memdiag/routes/routes.h"
#include "plugin/memdiag/tables/column.h"

namespace memdiag {

inline constexpr Table routes_table = [] {
  using Row = routes::Row;
  return Table{
      "MEMDIAG_ROUTES",
      "One row for each route: the pool that a memory instrument allocates "
      "from. Places that allocate without an instrument have a route, too.",
      0x0101,
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

static_assert(fingerprint(routes_table) == 2346674838u,
              "columns changed: raise the table's version, then set this");

}  // namespace memdiag

#endif  // MEMDIAG_ROUTES_TABLE_H
