/*
  The columns of INFORMATION_SCHEMA.MEMDIAG_EXTENTS.
*/

#ifndef MEMDIAG_EXTENTS_TABLE_H
#define MEMDIAG_EXTENTS_TABLE_H

#include "plugin/memdiag/allocator/size_classes.h"
#include "plugin/memdiag/tables/column.h"
#include "plugin/memdiag/tables/shared_columns.h"

namespace memdiag {

inline constexpr Table extents_table = [] {
  using Row = Extents_row;
  return Table{
      "MEMDIAG_EXTENTS",
      "One row for each size class of unused extents (runs of pages) in each "
      "arena. Classes without extents have no row. The columns of bytes add up "
      "to those of MEMDIAG_POOLS, but for extents that were made or freed "
      "while the "
      "allocator was counting.",
      0x0100,
      join(arena_columns<Row>(),
           std::array{
               column<Row, &Row::min_size>("MIN_SIZE", Unit::bytes,
                                           "Smallest extent of the class."),
               column<Row, &Row::max_size>("MAX_SIZE", Unit::bytes,
                                           "Largest extent of the class."),
               column<Row, &Row::dirty_extents>(
                   "DIRTY_EXTENTS", Unit::count,
                   "Extents that were not given back."),
               column<Row, &Row::dirty_bytes>("DIRTY_BYTES", Unit::bytes,
                                              "Their size."),
               column<Row, &Row::muzzy_extents>(
                   "MUZZY_EXTENTS", Unit::count,
                   "Extents that the kernel may take when it needs them."),
               column<Row, &Row::muzzy_bytes>("MUZZY_BYTES", Unit::bytes,
                                              "Their size."),
               column<Row, &Row::retained_extents>(
                   "RETAINED_EXTENTS", Unit::count,
                   "Extents of address space without memory."),
               column<Row, &Row::retained_bytes>("RETAINED_BYTES", Unit::bytes,
                                                 "Their size.")})};
}();

static_assert(fingerprint(extents_table) == 4032778734u,
              "columns changed: raise the table's version, then set this");

}  // namespace memdiag

#endif  // MEMDIAG_EXTENTS_TABLE_H
