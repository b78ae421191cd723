/*
  The columns of INFORMATION_SCHEMA.MEMDIAG_REGIONS.
*/

#ifndef MEMDIAG_REGIONS_TABLE_H
#define MEMDIAG_REGIONS_TABLE_H

#include "plugin/memdiag/tables/column.h"
#include "mysys/memdiag/pages/regions.h"

namespace memdiag {

inline constexpr Table regions_table = [] {
  using Row = regions::Row;
  return Table{
      "MEMDIAG_REGIONS",
      "One row for each kind of memory that the server has from the operating "
      "system without the allocator in between. It is in no pool. Of stacks "
      "and the buffer pool, what is in physical memory is as MEMDIAG_LEDGER "
      "has it.",
      0x0100,
      std::array{
          text_column<Row, &Row::name>("REGION", 64, "The kind's name."),
          text_column<Row, &Row::purpose>("PURPOSE", 256,
                                          "What the memory is used for."),
          column<Row, &Row::count>("REGIONS", Unit::count,
                                   "How many there are now."),
          column<Row, &Row::mapped_bytes>("MAPPED_BYTES", Unit::bytes,
                                          "Address space that they take."),
          column<Row, &Row::resident_bytes>(
              "RESIDENT_BYTES", Unit::bytes,
              "What of it is in physical memory; pages that are swapped out "
              "are not."),
          column<Row, &Row::untracked>(
              "UNTRACKED", Unit::count,
              "Regions that found no room in the layer's table since the "
              "server started; they are not in the other columns.")}};
}();

static_assert(fingerprint(regions_table) == 2235276719u,
              "columns changed: raise the table's version, then set this");

}  // namespace memdiag

#endif  // MEMDIAG_REGIONS_TABLE_H
