/*
  What Performance Schema counts of memory instruments. Reads its counters
  without a lock, as its own tables do, and all of them in one pass over the
  threads.
*/

#ifndef MEMDIAG_PERFSCHEMA_MEMORY_H
#define MEMDIAG_PERFSCHEMA_MEMORY_H

#include <span>
#include <vector>

#include "plugin/memdiag/ledger/instrument_counters.h"

namespace memdiag::perfschema {

/** @param only  names of instruments; none: all there are
@return none if Performance Schema is off
@throws std::bad_alloc */
std::vector<Counted> counted(std::span<const char *const> only = {});

}  // namespace memdiag::perfschema

#endif  // MEMDIAG_PERFSCHEMA_MEMORY_H
