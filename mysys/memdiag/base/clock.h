/*
  Clocks and pauses, and the one place where tests replace them.

  Threads: any. Units: microseconds.
  Errors: a time of 0 where the system cannot tell it; a signal may end a pause
  early.
*/

#ifndef MEMDIAG_CLOCK_H
#define MEMDIAG_CLOCK_H

#include <time.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

namespace memdiag {

/** Reads a clock of the system: microseconds since the epoch for
CLOCK_REALTIME, since boot for CLOCK_MONOTONIC. */
using Clock = uint64_t (*)(clockid_t);

inline uint64_t system_clock_us(clockid_t clock) {
  timespec now;
  if (clock_gettime(clock, &now) != 0) return 0;
  return static_cast<uint64_t>(now.tv_sec) * 1000000 + now.tv_nsec / 1000;
}

/** Lets the calling thread sleep. */
using Pause = void (*)(unsigned us);

inline void system_pause_us(unsigned us) {
  const timespec time{us / 1000000, static_cast<long>(us % 1000000) * 1000};
  nanosleep(&time, nullptr);
}

namespace detail {
inline constinit std::atomic<Clock> clock_in_use{system_clock_us};
inline constinit std::atomic<Pause> pause_in_use{system_pause_us};
}  // namespace detail

/** The time, as the clock in use tells it. */
inline uint64_t clock_us(clockid_t clock) {
  return detail::clock_in_use.load(std::memory_order_relaxed)(clock);
}

/** A time of CLOCK_MONOTONIC plus this is a time since the epoch. The two
clocks are compared now. */
inline uint64_t epoch_of_monotonic_us() {
  const uint64_t real = clock_us(CLOCK_REALTIME);
  return real - clock_us(CLOCK_MONOTONIC);
}

/** Every later clock_us() asks `clock`; nullptr: the system's again. */
inline void set_clock_for_test(Clock clock) {
  detail::clock_in_use.store(clock != nullptr ? clock : system_clock_us,
                             std::memory_order_relaxed);
}

/** A pause of the calling thread. errno stays. */
inline void pause_us(unsigned us) {
  const int error = errno;
  detail::pause_in_use.load(std::memory_order_relaxed)(us);
  errno = error;
}

/** Every later pause_us() calls `pause`; nullptr: the system's again. */
inline void set_pause_for_test(Pause pause) {
  detail::pause_in_use.store(pause != nullptr ? pause : system_pause_us,
                             std::memory_order_relaxed);
}

}  // namespace memdiag

#endif  // MEMDIAG_CLOCK_H
