/*
  The columns of INFORMATION_SCHEMA.MEMDIAG_BINS.
*/

#ifndef MEMDIAG_BINS_TABLE_H
#define MEMDIAG_BINS_TABLE_H

#include "plugin/memdiag/allocator/size_classes.h"
#include "plugin/memdiag/tables/column.h"
#include "plugin/memdiag/tables/shared_columns.h"

namespace memdiag {

inline constexpr Table bins_table = [] {
  using Row = Bin_row;
  return Table{
      "MEMDIAG_BINS",
      "One row for each size class of small blocks in each arena. Classes that "
      "an arena never used have no row. LIVE_BYTES here and in MEMDIAG_LARGE "
      "add up to LIVE_BYTES of MEMDIAG_ARENAS, exactly within one statement.",
      0x0100,
      join(arena_columns<Row>(),
           std::array{
               column<Row, &Row::size>(
                   "SIZE", Unit::bytes,
                   "Size of a block. Smaller requests are rounded up."),
               column<Row, &Row::slab_bytes>("SLAB_BYTES", Unit::bytes,
                                             "Pages that the class takes at "
                                             "once and divides into blocks."),
               column<Row, &Row::regions_per_slab>(
                   "REGIONS_PER_SLAB", Unit::count, "Blocks in a slab."),
               column<Row, &Row::slabs>("SLABS", Unit::count, "Slabs now."),
               column<Row, &Row::nonfull_slabs>(
                   "NONFULL_SLABS", Unit::count,
                   "Slabs with free blocks, without those being filled. Many "
                   "of them mean fragmentation."),
               column<Row, &Row::live_blocks>(
                   "LIVE_BLOCKS", Unit::count,
                   "Allocated and not yet freed; blocks in caches count too."),
               column<Row, &Row::live_bytes>("LIVE_BYTES", Unit::bytes,
                                             "LIVE_BLOCKS times SIZE."),
               column<Row, &Row::capacity_blocks>(
                   "CAPACITY_BLOCKS", Unit::count,
                   "SLABS times REGIONS_PER_SLAB."),
               column<Row, &Row::utilisation>(
                   "UTILISATION", Unit::ratio,
                   "LIVE_BLOCKS divided by CAPACITY_BLOCKS. NULL: there are no "
                   "slabs."),
               column<Row, &Row::waste_bytes>(
                   "WASTE_BYTES", Unit::bytes,
                   "Bytes of the slabs minus LIVE_BYTES. Only blocks of this "
                   "class and arena can use them."),
               column<Row, &Row::allocations>(
                   "ALLOCATIONS", Unit::count,
                   "Blocks taken from the slabs since the server started. A "
                   "cache takes several at once. A small block that the heap "
                   "profiler samples lies in no slab but on pages of its own. "
                   "jemalloc counts it here and in FREES, in the class of its "
                   "size rounded up to whole pages, and not in LIVE_BLOCKS."),
               column<Row, &Row::frees>("FREES", Unit::count,
                                        "Blocks returned to the slabs."),
               column<Row, &Row::requests>(
                   "REQUESTS", Unit::count,
                   "Requested blocks. A block from a cache counts when the "
                   "cache is next filled or flushed. Flushes of a pool's cache "
                   "count in an arena of the pool `general`."),
               column<Row, &Row::fills>("FILLS", Unit::count,
                                        "Times that a cache was filled."),
               column<Row, &Row::flushes>(
                   "FLUSHES", Unit::count,
                   "Times that a cache was emptied, completely or in part; of "
                   "a pool's cache in an arena of the pool `general`.")})};
}();

static_assert(fingerprint(bins_table) == 1049875284u,
              "columns changed: raise the table's version, then set this");

}  // namespace memdiag

#endif  // MEMDIAG_BINS_TABLE_H
