/*
  The columns of INFORMATION_SCHEMA.MEMDIAG_LARGE.
*/

#ifndef MEMDIAG_LARGE_TABLE_H
#define MEMDIAG_LARGE_TABLE_H

#include "plugin/memdiag/tables/column.h"
#include "plugin/memdiag/tables/shared_columns.h"
#include "plugin/memdiag/allocator/size_classes.h"

namespace memdiag {

inline constexpr Table large_table = [] {
  using Row = Large_row;
  return Table{
      "MEMDIAG_LARGE",
      "One row for each size class of large blocks, which have pages of their "
      "own, in each arena; classes that an arena never had a block of are left "
      "out.",
      0x0100,
      join(
          arena_columns<Row>(),
          std::array{
              column<Row, &Row::min_size>("MIN_SIZE", Unit::bytes,
                                          "What a block of the class takes at "
                                          "least: blocks are rounded up "
                                          "to pages."),
              column<Row, &Row::max_size>("MAX_SIZE", Unit::bytes,
                                          "What a block of it takes at most."),
              column<Row, &Row::live_blocks>(
                  "LIVE_BLOCKS", Unit::count,
                  "Handed out and not yet freed, those that wait in caches "
                  "included."),
              column<Row, &Row::live_bytes>(
                  "LIVE_BYTES", Unit::bytes,
                  "What they take, at least LIVE_BLOCKS times MIN_SIZE and at "
                  "most "
                  "times MAX_SIZE. Between the two it is shared out: the "
                  "allocator "
                  "counts the bytes of an arena's large blocks together only, "
                  "and "
                  "that sum is exact."),
              column<Row, &Row::allocations>(
                  "ALLOCATIONS", Unit::count,
                  "Blocks taken from the arena since the server started."),
              column<Row, &Row::frees>("FREES", Unit::count,
                                       "Blocks given back to the arena."),
              column<Row, &Row::requests>(
                  "REQUESTS", Unit::count,
                  "Blocks that were asked for. Those that a cache served count "
                  "from when it is emptied next.")})};
}();

static_assert(fingerprint(large_table) == 1056171996u,
              "columns changed: raise the table's version, then set this");

}  // namespace memdiag

#endif  // MEMDIAG_LARGE_TABLE_H
