/*
  Collector: what tables of the table cache are like.

  Locks: LOCK_open, for a look at each definition that is in the cache. Threads:
  sessions. Units: counts of open tables, of which one definition may have many.
  Errors: none; while there is no cache, at a start or a shutdown, both are 0.
*/

#ifndef MEMDIAG_OPEN_TABLES_H
#define MEMDIAG_OPEN_TABLES_H

#include <cstdint>

namespace memdiag::open_tables {

struct Counts {
  /** Those that can keep large values of expressions: they have BLOB, TEXT,
  JSON or the like, and generated columns, defaults that are expressions,
  constraints or triggers. The data dictionary's have no such expressions. */
  uint64_t of_values;
  /** ENGINE=CSV: they keep the row that was read or written last. */
  uint64_t csv;
};

Counts counts();

}  // namespace memdiag::open_tables

#endif  // MEMDIAG_OPEN_TABLES_H
