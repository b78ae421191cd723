/*
  Internal temporary tables of a statement that spills to disk: the server makes
  InnoDB's tables of them as soon as they are larger than a limit. That is the
  session's tmp_table_size. It stays as it is, because upstream takes it for
  other limits, too: GROUP_CONCAT(DISTINCT ... ORDER BY) repeats values beyond
  it.

  The plugin includes this header, so it includes none of InnoDB.
  Threads: each has its own limit. Locks: none. Errors: none. Units: bytes.
*/

#ifndef MEMDIAG_SPILLED_TABLES_H
#define MEMDIAG_SPILLED_TABLES_H

#include <cstdint>
#include <limits>

namespace memdiag::spilled_tables {

constexpr uint64_t no_limit = std::numeric_limits<uint64_t>::max();

/** The most that a TempTable table has in memory which the calling thread makes
from now on. A table that InnoDB could refuse keeps tmp_table_size: one with too
many columns, or with a row that may be too long. So do those of the engine
MEMORY, to which the tables of INFORMATION_SCHEMA belong. */
void limit(uint64_t bytes);

}  // namespace memdiag::spilled_tables

#endif  // MEMDIAG_SPILLED_TABLES_H
