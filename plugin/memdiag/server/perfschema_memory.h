/*
  Reads Performance Schema's counts of memory instruments: without a lock, as
  its own tables do, and all of them in one pass over the threads.
*/

#ifndef MEMDIAG_PERFSCHEMA_MEMORY_H
#define MEMDIAG_PERFSCHEMA_MEMORY_H

#include <span>
#include <vector>

#include "plugin/memdiag/ledger/instruments.h"

namespace memdiag::perfschema {

using instruments::Counted;

/** @param only  names of instruments; empty: all instruments
@return empty: Performance Schema is off
@throws std::bad_alloc */
std::vector<Counted> counted(std::span<const char *const> only = {});

}  // namespace memdiag::perfschema

#endif  // MEMDIAG_PERFSCHEMA_MEMORY_H
