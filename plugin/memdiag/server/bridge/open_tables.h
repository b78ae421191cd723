/*
  Collector: what tables of the table cache are like.

  Locks: LOCK_open, for a look at each definition that is in the cache. Threads:
  sessions.
*/

#ifndef MEMDIAG_OPEN_TABLES_H
#define MEMDIAG_OPEN_TABLES_H

#include <cstdint>

namespace memdiag::open_tables {

/** Open tables that can keep large values: those with BLOB, TEXT, JSON or the
like, and generated columns, defaults that are expressions, constraints or
triggers, and those of ENGINE=CSV. Not the data dictionary's, which have no such
expressions. */
uint64_t with_large_values();

}  // namespace memdiag::open_tables

#endif  // MEMDIAG_OPEN_TABLES_H
