/*
  The events on which threads wait for latches. The first waiter makes them.

  A mutex has one event and a rw-lock has two. Each page of the buffer pool has
  a mutex and a rw-lock, so at start the events take 30 MiB for each GiB: three
  of 160 bytes for a page. A page's latches keep an event until the buffer pool
  shrinks. Most get one of the three: for the threads that wait until another
  one has read the page.

  Why no wakeup is lost: a thread that waits for a latch (sync0arr.cc) makes the
  event, resets it, then sets the latch's mark of waiters or, for wait_ex_event,
  has already changed lock_word; it tries the latch once more, and only then
  sleeps. A thread that releases a latch changes the latch first, then reads the
  mark or lock_word, then the event. All of these are sequentially consistent.
  So the waiter sees that the latch is free, or the releaser sees the event.
  Where it sees none, no thread sleeps.

  Latches do not share events. The signal of another latch would begin the
  waiter's time anew, and InnoDB ends a server in which one thread waits for ten
  minutes.

  Performance Schema counts the events for the server and not for a thread: the
  one that waits first does not own them.

  Ownership: the latch's, until os_event_destroy(). Threads: any; destroy when
  no other uses the latch. Locks: the allocator's. Errors: without memory for an
  event, latches share the one that begin() made.
*/

#ifndef MEMDIAG_LATCH_EVENTS_H
#define MEMDIAG_LATCH_EVENTS_H

#include <atomic>
#include <cstddef>
#include <new>

// As os0event.h declares them, which includes this file.
struct os_event;
os_event *os_event_create();
void os_event_set(os_event *event);
void os_event_destroy(os_event *&event);

namespace memdiag {

class Latch_event {
 public:
  /** For a thread that waits: makes the event if there is none. */
  operator os_event *() {
    os_event *const made = m_event.load();
    return made != nullptr ? made : make();
  }

  bool operator==(std::nullptr_t) const { return m_event.load() == nullptr; }

  /** Forgets the event. */
  Latch_event &operator=(std::nullptr_t) {
    m_event.store(nullptr);
    return *this;
  }

  friend void os_event_set(Latch_event &event) {
    if (os_event *const made = event.m_event.load()) ::os_event_set(made);
  }

  friend void os_event_destroy(Latch_event &event) {
    if (os_event *made = event.m_event.exchange(nullptr);
        made != s_spare.load())
      ::os_event_destroy(made);
  }

  /** Makes the spare event, before the first latch is used. */
  static void begin() { publish(s_spare, os_event_create()); }

  /** Ends it. No latch is used any more. */
  static void end() {
    if (os_event *spare = s_spare.exchange(nullptr)) ::os_event_destroy(spare);
  }

 private:
  /** Stores a new event unless another thread was faster. Returns what is
  there. */
  static os_event *publish(std::atomic<os_event *> &place, os_event *mine) {
    os_event *other = nullptr;
    if (place.compare_exchange_strong(other, mine)) return mine;
    if (mine != s_spare.load()) ::os_event_destroy(mine);
    return other;
  }

  os_event *make() {
    os_event *mine;
    try {
      mine = os_event_create();
    } catch (const std::bad_alloc &) {
      mine = s_spare.load();
    }
    return publish(m_event, mine);
  }

  static inline std::atomic<os_event *> s_spare{nullptr};

  std::atomic<os_event *> m_event{nullptr};
};

}  // namespace memdiag

#endif  // MEMDIAG_LATCH_EVENTS_H
