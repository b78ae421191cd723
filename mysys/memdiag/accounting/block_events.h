/*
  Who is told of each block that comes to a pool under a route, or goes: scopes
  (mysys/memdiag/accounting/scopes.h) and sessions (mysys/memdiag/accounting/sessions.h), each while the server's
  variable for it is ON. Here are the variables, side by side, so that an
  allocation tests both with one load.

  Threads: any; no lock.
*/

#ifndef MEMDIAG_NOTES_H
#define MEMDIAG_NOTES_H

#include <cstddef>
#include <cstdint>

#include "mysys/memdiag/pools/pools.h"

namespace memdiag::notes {

enum Listener : size_t { survivors, sessions, listener_count };

union Switches {
  bool each[listener_count];
  uint16_t any;
};
static_assert(sizeof(Switches::each) == sizeof(Switches::any));

/** Written before the server runs, and then through set(). */
extern Switches switches;

inline bool is_on(Listener listener) {
  return __atomic_load_n(&switches.each[listener], __ATOMIC_RELAXED);
}
inline void set(Listener listener, bool on) {
  __atomic_store_n(&switches.each[listener], on, __ATOMIC_RELAXED);
}
inline bool any_is_on() {
  return __atomic_load_n(&switches.any, __ATOMIC_RELAXED) != 0;
}

namespace detail {
void note(Pool pool, pools::Account account, int64_t bytes) noexcept;
}

/** A block came (bytes > 0) or went. */
inline void note(Pool pool, pools::Account account, int64_t bytes) noexcept {
  if (any_is_on()) [[unlikely]]
    detail::note(pool, account, bytes);
}

}  // namespace memdiag::notes

#endif  // MEMDIAG_NOTES_H
