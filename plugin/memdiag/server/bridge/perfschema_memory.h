/*
  Reads Performance Schema's counts of memory instruments: without a lock, as
  its own tables do, and all of them in one pass over the threads.

  Threads: any. Errors: empty where Performance Schema is off. Units: bytes.
*/

#ifndef MEMDIAG_PERFSCHEMA_MEMORY_H
#define MEMDIAG_PERFSCHEMA_MEMORY_H

#include <span>
#include <vector>

#include "plugin/memdiag/ledger/instruments.h"

struct PSI_thread;

namespace memdiag::perfschema {

using instruments::Counted;
using instruments::Held;

/** False: instruments of sessions count nothing, with performance_schema=OFF.
 */
bool is_on();

/** @param only  names of instruments; empty: all instruments
@return empty: Performance Schema is not up
@throws std::bad_alloc */
std::vector<Counted> counted(std::span<const char *const> only = {});

/** The most that a thread can still hold, by instrument. Performance Schema
does not subtract from a thread what another one freed. But no thread holds more
of an instrument than there is of it. The thread must not go away during the
call.
@param all  as counted() has all of them
@return empty, too, if thread is nullptr
@throws std::bad_alloc */
std::vector<Held> held_at_most(PSI_thread *thread,
                               std::span<const Counted> all);

}  // namespace memdiag::perfschema

#endif  // MEMDIAG_PERFSCHEMA_MEMORY_H
