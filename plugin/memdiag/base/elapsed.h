/*
  Time that has passed by a clock that may be set. Units: those of the caller.
*/

#ifndef MEMDIAG_ELAPSED_H
#define MEMDIAG_ELAPSED_H

#include <cstdint>

namespace memdiag {

/** So much has passed since a start, or it is not known: the clock was set back
if the start is still to come. */
inline bool may_have_passed(uint64_t time, uint64_t start, uint64_t now) {
  return start > now || now - start >= time;
}

}  // namespace memdiag

#endif  // MEMDIAG_ELAPSED_H
