/*
  The columns of INFORMATION_SCHEMA.MEMDIAG_SIZE_CLASSES.
*/

#ifndef MEMDIAG_SIZE_CLASSES_TABLE_H
#define MEMDIAG_SIZE_CLASSES_TABLE_H

#include <array>

#include "plugin/memdiag/allocator/size_class_rows.h"
#include "plugin/memdiag/tables/column.h"
#include "plugin/memdiag/tables/shared_columns.h"

namespace memdiag {

inline constexpr Table size_classes_table = [] {
  using Row = Size_class_row;
  return Table{
      "MEMDIAG_SIZE_CLASSES",
      "One row for each size class of blocks, and of unused extents (runs of "
      "pages), in each arena. Classes that an arena never used, and those "
      "without extents of the kind, have no row. BYTES of small and large add "
      "up to LIVE_BYTES of MEMDIAG_ARENAS, exactly within one statement; those "
      "of extents to DIRTY_BYTES, MUZZY_BYTES and RETAINED_BYTES, but for "
      "extents that were made or freed while the allocator was counting.",
      0x0100,
      join(
          arena_columns<Row>(),
          std::array{
              text_column<Row, &Row::kind>(
                  "KIND", 8,
                  "small: blocks in slabs. large: blocks with pages of their "
                  "own. dirty: extents that were not given back. muzzy: "
                  "extents that the kernel may take when it needs them. "
                  "retained: extents of address space without memory."),
              column<Row, &Row::min_size>(
                  "MIN_SIZE", Unit::bytes,
                  "Smallest size of a block or an extent. Blocks are rounded "
                  "up: small ones to MAX_SIZE, large ones to pages."),
              column<Row, &Row::max_size>("MAX_SIZE", Unit::bytes,
                                          "Largest size of one."),
              column<Row, &Row::blocks>(
                  "BLOCKS", Unit::count,
                  "Blocks that were allocated and not yet freed, those in "
                  "caches too; or extents."),
              column<Row, &Row::bytes>(
                  "BYTES", Unit::bytes,
                  "Their size, between BLOCKS times MIN_SIZE and BLOCKS times "
                  "MAX_SIZE. large: the allocator counts the bytes of all "
                  "large blocks of an arena together; this exact sum is "
                  "divided among the classes."),
              column<Row, &Row::allocations>(
                  "ALLOCATIONS", Unit::count,
                  "Blocks taken from the arena since the server started. A "
                  "cache takes several small ones at once. A small block that "
                  "the heap profiler samples lies in no slab but on pages of "
                  "its own. jemalloc counts it here and in FREES, in the small "
                  "class of its size rounded up to whole pages, and not in "
                  "BLOCKS. NULL here and in all columns below: extents."),
              column<Row, &Row::frees>("FREES", Unit::count,
                                       "Blocks returned to the arena."),
              column<Row, &Row::requests>(
                  "REQUESTS", Unit::count,
                  "Requested blocks. A block from a cache counts when the "
                  "cache is next flushed, a small one also when it is filled. "
                  "Flushes of a pool's cache count in an arena of the pool "
                  "`general`."),
              column<Row, &Row::slab_bytes>(
                  "SLAB_BYTES", Unit::bytes,
                  "Pages that the class takes at once and divides into blocks. "
                  "NULL here and in all columns below: not small."),
              column<Row, &Row::blocks_per_slab>("BLOCKS_PER_SLAB", Unit::count,
                                                 "Blocks in a slab."),
              column<Row, &Row::slabs>("SLABS", Unit::count, "Slabs now."),
              column<Row, &Row::nonfull_slabs>(
                  "NONFULL_SLABS", Unit::count,
                  "Slabs with free blocks, without those being filled. Many of "
                  "them mean fragmentation."),
              column<Row, &Row::capacity_blocks>(
                  "CAPACITY_BLOCKS", Unit::count,
                  "SLABS times BLOCKS_PER_SLAB."),
              column<Row, &Row::utilisation>(
                  "UTILISATION", Unit::ratio,
                  "BLOCKS divided by CAPACITY_BLOCKS. NULL: there are no "
                  "slabs."),
              column<Row, &Row::waste_bytes>(
                  "WASTE_BYTES", Unit::bytes,
                  "Bytes of the slabs minus BYTES. Only blocks of this class "
                  "and arena can use them."),
              column<Row, &Row::fills>("FILLS", Unit::count,
                                       "Times that a cache was filled."),
              column<Row, &Row::flushes>(
                  "FLUSHES", Unit::count,
                  "Times that a cache was emptied, completely or in part; of a "
                  "pool's cache in an arena of the pool `general`.")})};
}();

static_assert(fingerprint(size_classes_table) == 3046776471u,
              "columns changed: raise the table's version, then set this");

}  // namespace memdiag

#endif  // MEMDIAG_SIZE_CLASSES_TABLE_H
