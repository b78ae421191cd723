/*
  The events on which threads wait for latches. Latches share them.

  A mutex has one event and a rw-lock has two, of 144 bytes each. Each page of
  the buffer pool has a mutex and a rw-lock: 29 MB of events for each GB. Hardly
  any of them has ever a waiter. So there is a fixed number of events, and a
  latch has its events in common with others.

  Why that is correct: a thread that waits for a latch (sync0arr.cc) resets the
  event and keeps the number of signals, tries the latch once more, and sleeps
  only while that number stays. When it wakes, it tries the latch again. The
  signal of another latch wakes it too early at most, and no reset by the waiter
  of another latch can hide a signal, because the number never goes back. Events
  that are not a latch's stay alone, because their users ask if they are set.

  Cost: with W latches that have waiters, a release wakes the waiters of W /
  number_of_latch_events other latches on average.

  Ownership: the events are static. Threads: any. No lock, except to make them.
  Errors: none; no memory is allocated.
*/

#ifndef MEMDIAG_LATCH_EVENTS_H
#define MEMDIAG_LATCH_EVENTS_H

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>

struct os_event;

namespace memdiag {

/** 256 KB. */
inline constexpr size_t number_of_latch_events = 2048;

/** Events that many users share. A static object: it is never destructed. */
template <typename Event, size_t count>
class Shared_events {
 public:
  /** The events one after the other, again and again. The first call makes all
  of them. */
  Event *next() {
    if (!m_made.load(std::memory_order_acquire)) [[unlikely]]
      make();
    return event(m_next.fetch_add(1, std::memory_order_relaxed) % count);
  }

  /** True for an event of next(). */
  bool has(const Event *event) const {
    const auto *at = reinterpret_cast<const std::byte *>(event);
    return at >= m_places && at < m_places + sizeof(m_places);
  }

  /** Ends the events. Nobody uses them any more, and no call of next() is under
  way. A later one makes them again. */
  void end() {
    const std::lock_guard guard(m_making);
    if (!m_made.exchange(false)) return;
    for (size_t i = 0; i < count; ++i) std::destroy_at(event(i));
  }

 private:
  static constexpr size_t cache_line = 64;
  static constexpr size_t stride =
      (sizeof(Event) + cache_line - 1) / cache_line * cache_line;

  Event *event(size_t i) {
    return reinterpret_cast<Event *>(m_places + i * stride);
  }

  void make() {
    const std::lock_guard guard(m_making);
    if (m_made.load(std::memory_order_relaxed)) return;
    for (size_t i = 0; i < count; ++i) std::construct_at(event(i));
    m_made.store(true, std::memory_order_release);
  }

  std::atomic<bool> m_made{false};
  std::atomic<size_t> m_next{0};
  std::mutex m_making;
  alignas(cache_line) std::byte m_places[count * stride]{};
};

template <typename Event>
inline constinit Shared_events<Event, number_of_latch_events> latch_events;

// os0event.cc instantiates these two, because only it has the type os_event.
template <typename Event>
Event *next_latch_event() {
  return latch_events<Event>.next();
}
extern template os_event *next_latch_event<os_event>();

/** The event of a new mutex. */
inline os_event *latch_event() { return next_latch_event<os_event>(); }

/** The two events of a new rw-lock. */
inline void take_latch_events(os_event *&event, os_event *&wait_ex_event) {
  event = latch_event();
  wait_ex_event = latch_event();
}

}  // namespace memdiag

#endif  // MEMDIAG_LATCH_EVENTS_H
