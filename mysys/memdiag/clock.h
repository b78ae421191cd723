/*
  Clocks. No state, any thread; 0 where the system does not tell.
*/

#ifndef MEMDIAG_CLOCK_H
#define MEMDIAG_CLOCK_H

#include <time.h>

#include <cstdint>

namespace memdiag {

/** Microseconds: since the epoch with CLOCK_REALTIME. */
inline uint64_t clock_us(clockid_t clock) {
  timespec now;
  if (clock_gettime(clock, &now) != 0) return 0;
  return static_cast<uint64_t>(now.tv_sec) * 1000000 + now.tv_nsec / 1000;
}

}  // namespace memdiag

#endif  // MEMDIAG_CLOCK_H
