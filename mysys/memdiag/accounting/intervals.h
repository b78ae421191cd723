/*
  Bytes that the calling thread takes in an interval of its statement:
  mysys/memdiag/upstream/interval_hooks.h, whose contract these have. They count
  in the statement's own figures (thread_bytes.h).

  Threads: an interval is its thread's. No lock but for a thread's first one;
  nothing is allocated. Units: bytes of size classes. Errors: the interval of a
  thread that cannot count is not counted.
*/

#ifndef MEMDIAG_INTERVALS_H
#define MEMDIAG_INTERVALS_H

#include "mysys/memdiag/upstream/interval_hooks.h"

namespace memdiag::sessions {

void interval_begins(Interval *interval) noexcept;
bool interval_so_far(const Interval &interval,
                     Interval_memory *memory) noexcept;
void interval_ends(const Interval &interval) noexcept;

}  // namespace memdiag::sessions

#endif  // MEMDIAG_INTERVALS_H
