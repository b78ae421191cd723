/*
  Block events: each block of an account that comes to a pool or leaves it is
  announced to the modules that count it, which are scopes (scopes.h) and
  sessions (thread_bytes.h), each while it is switched on.

  While both are off, the pools have no listener, and an allocation pays one
  load and one branch.

  Threads: any; no lock. After set(nullptr) a thread may still call the old
  listener. A listener must not allocate from a pool. Units: bytes of size
  classes. Errors: none.
*/

#ifndef MEMDIAG_BLOCK_EVENTS_H
#define MEMDIAG_BLOCK_EVENTS_H

#include <atomic>
#include <cstddef>

#include "mysys/memdiag/pools/pools.h"

namespace memdiag::block_events {

enum Subscriber : size_t { survivors, sessions, subscriber_count };

namespace detail {
extern std::atomic<pools::Block_listener> listeners[subscriber_count];
}

/** Announce block events to a subscriber's listener; nullptr: no longer. */
void set(Subscriber subscriber, pools::Block_listener listener) noexcept;

inline bool is_on(Subscriber subscriber) {
  return detail::listeners[subscriber].load(std::memory_order_relaxed) !=
         nullptr;
}
inline bool any_is_on() { return is_on(survivors) || is_on(sessions); }

}  // namespace memdiag::block_events

#endif  // MEMDIAG_BLOCK_EVENTS_H
