/*
  The columns of INFORMATION_SCHEMA.MEMDIAG_REGIONS.
*/

#ifndef MEMDIAG_REGIONS_TABLE_H
#define MEMDIAG_REGIONS_TABLE_H

#include "mysys/memdiag/pages/regions.h"
#include "plugin/memdiag/tables/column.h"

namespace memdiag {

inline constexpr Table regions_table = [] {
  using Row = regions::Row;
  return Table{
      "MEMDIAG_REGIONS",
      "One row for each kind of memory that the server gets from the OS "
      "without the allocator. No pool has it. The resident bytes of stacks and "
      "of the buffer pool are those of MEMDIAG_LEDGER.",
      0x0100,
      std::array{
          text_column<Row, &Row::name>("REGION", 64, "The kind's name."),
          text_column<Row, &Row::purpose>("PURPOSE", 256,
                                          "The use of the memory."),
          column<Row, &Row::count>("REGIONS", Unit::count,
                                   "Regions of this kind now."),
          column<Row, &Row::mapped_bytes>("MAPPED_BYTES", Unit::bytes,
                                          "Their address space."),
          column<Row, &Row::resident_bytes>(
              "RESIDENT_BYTES", Unit::bytes,
              "Their physical memory. Swapped pages do not count."),
          column<Row, &Row::untracked>(
              "UNTRACKED", Unit::count,
              "Regions since the server started that found no room in the "
              "server's list. The other columns do not include them.")}};
}();

static_assert(fingerprint(regions_table) == 2235276719u,
              "columns changed: raise the table's version, then set this");

}  // namespace memdiag

#endif  // MEMDIAG_REGIONS_TABLE_H
