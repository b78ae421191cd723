/*
  The columns of INFORMATION_SCHEMA.MEMDIAG_LARGE.
*/

#ifndef MEMDIAG_LARGE_TABLE_H
#define MEMDIAG_LARGE_TABLE_H

#include "plugin/memdiag/allocator/size_classes.h"
#include "plugin/memdiag/tables/column.h"
#include "plugin/memdiag/tables/shared_columns.h"

namespace memdiag {

inline constexpr Table large_table = [] {
  using Row = Large_row;
  return Table{
      "MEMDIAG_LARGE",
      "One row for each size class of large blocks in each arena. A large "
      "block has pages of its own. Classes that an arena never used have no "
      "row.",
      0x0100,
      join(arena_columns<Row>(),
           std::array{
               column<Row, &Row::min_size>(
                   "MIN_SIZE", Unit::bytes,
                   "Smallest size of a block; blocks are rounded up to pages."),
               column<Row, &Row::max_size>("MAX_SIZE", Unit::bytes,
                                           "Largest size of a block."),
               column<Row, &Row::live_blocks>(
                   "LIVE_BLOCKS", Unit::count,
                   "Allocated and not yet freed; blocks in caches count too."),
               column<Row, &Row::live_bytes>(
                   "LIVE_BYTES", Unit::bytes,
                   "Between LIVE_BLOCKS times MIN_SIZE and LIVE_BLOCKS times "
                   "MAX_SIZE. The allocator counts the bytes of all large "
                   "blocks of an arena together; this exact sum is divided "
                   "among the classes."),
               column<Row, &Row::allocations>(
                   "ALLOCATIONS", Unit::count,
                   "Blocks taken from the arena since the server started."),
               column<Row, &Row::frees>("FREES", Unit::count,
                                        "Blocks returned to the arena."),
               column<Row, &Row::requests>(
                   "REQUESTS", Unit::count,
                   "Requested blocks. A block from a cache counts when the "
                   "cache is next flushed, of a pool's cache in an arena of "
                   "the pool `general`.")})};
}();

static_assert(fingerprint(large_table) == 1056171996u,
              "columns changed: raise the table's version, then set this");

}  // namespace memdiag

#endif  // MEMDIAG_LARGE_TABLE_H
