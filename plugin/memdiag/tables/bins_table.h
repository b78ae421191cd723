/*
  The columns of INFORMATION_SCHEMA.MEMDIAG_BINS.
*/

#ifndef MEMDIAG_BINS_TABLE_H
#define MEMDIAG_BINS_TABLE_H

#include "plugin/memdiag/tables/column.h"
#include "plugin/memdiag/tables/shared_columns.h"
#include "plugin/memdiag/allocator/size_classes.h"

namespace memdiag {

inline constexpr Table bins_table = [] {
  using Row = Bin_row;
  return Table{
      "MEMDIAG_BINS",
      "One row for each size class of small blocks in each arena; classes that "
      "an arena never had a block of are left out. LIVE_BYTES here and in "
      "MEMDIAG_LARGE add up to LIVE_BYTES of MEMDIAG_ARENAS and of "
      "MEMDIAG_POOLS, in one statement exactly.",
      0x0100,
      join(
          arena_columns<Row>(),
          std::array{
              column<Row, &Row::size>("SIZE", Unit::bytes,
                                      "What a block of the class takes; "
                                      "smaller ones are rounded up."),
              column<Row, &Row::slab_bytes>("SLAB_BYTES", Unit::bytes,
                                            "Pages that the class takes at "
                                            "once and divides into blocks."),
              column<Row, &Row::regions_per_slab>("REGIONS_PER_SLAB",
                                                  Unit::count,
                                                  "Blocks that a slab has room "
                                                  "for."),
              column<Row, &Row::slabs>("SLABS", Unit::count,
                                       "How many there are now."),
              column<Row, &Row::nonfull_slabs>(
                  "NONFULL_SLABS", Unit::count,
                  "Slabs that have room and are not those being filled: many "
                  "of "
                  "them are what fragmentation is."),
              column<Row, &Row::live_blocks>(
                  "LIVE_BLOCKS", Unit::count,
                  "Handed out and not yet freed, those that wait in caches "
                  "included."),
              column<Row, &Row::live_bytes>("LIVE_BYTES", Unit::bytes,
                                            "LIVE_BLOCKS times SIZE."),
              column<Row, &Row::capacity_blocks>(
                  "CAPACITY_BLOCKS", Unit::count,
                  "SLABS times REGIONS_PER_SLAB."),
              column<Row, &Row::utilisation>(
                  "UTILISATION", Unit::ratio,
                  "LIVE_BLOCKS divided by CAPACITY_BLOCKS; NULL where there "
                  "are no "
                  "slabs."),
              column<Row, &Row::waste_bytes>(
                  "WASTE_BYTES", Unit::bytes,
                  "Bytes of the slabs less LIVE_BYTES: memory that only blocks "
                  "of "
                  "this class and arena can use."),
              column<Row, &Row::allocations>(
                  "ALLOCATIONS", Unit::count,
                  "Blocks taken from the slabs since the server started; a "
                  "cache "
                  "takes several at once."),
              column<Row, &Row::frees>("FREES", Unit::count,
                                       "Blocks given back to the slabs."),
              column<Row, &Row::requests>(
                  "REQUESTS", Unit::count,
                  "Blocks that were asked for. Those that a cache served count "
                  "from when it is filled or emptied next."),
              column<Row, &Row::fills>("FILLS", Unit::count,
                                       "How often a cache was filled."),
              column<Row, &Row::flushes>(
                  "FLUSHES", Unit::count,
                  "How often a cache was emptied, in whole "
                  "or in part.")})};
}();

static_assert(fingerprint(bins_table) == 1049875284u,
              "columns changed: raise the table's version, then set this");

}  // namespace memdiag

#endif  // MEMDIAG_BINS_TABLE_H
