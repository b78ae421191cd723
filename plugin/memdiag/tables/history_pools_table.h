/*
  The columns of INFORMATION_SCHEMA.MEMDIAG_HISTORY_POOLS.
*/

#ifndef MEMDIAG_HISTORY_POOLS_TABLE_H
#define MEMDIAG_HISTORY_POOLS_TABLE_H

#include <array>

#include "plugin/memdiag/history/history_rows.h"
#include "plugin/memdiag/tables/column.h"

namespace memdiag {

inline constexpr Table history_pools_table = [] {
  using Row = History_pool_row;
  return Table{
      "MEMDIAG_HISTORY_POOLS",
      "One row for each pool and each sample of MEMDIAG_HISTORY.", 0x0100,
      std::array{
          column<Row, &Row::run>("RUN", Unit::none, "As in MEMDIAG_HISTORY."),
          moment_column<Row, &Row::time_us>("TIME",
                                            "When the sample was taken."),
          text_column<Row, &Row::pool>("POOL", 64, "The pool's name."),
          column<Row, &Row::live_bytes>(
              "LIVE_BYTES", Unit::bytes,
              "LIVE_BYTES and CACHED_BYTES of MEMDIAG_POOLS together."),
          column<Row, &Row::dirty_bytes>(
              "DIRTY_BYTES", Unit::bytes,
              "As in MEMDIAG_POOLS: pages that were never written count as "
              "well.")}};
}();

static_assert(fingerprint(history_pools_table) == 1551590150u,
              "columns changed: raise the table's version, then set this");

}  // namespace memdiag

#endif  // MEMDIAG_HISTORY_POOLS_TABLE_H
