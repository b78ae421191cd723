/*
  The functions that the patched vio/viosocket.cc calls when a connection's
  thread waits for its client. They are weak, as in
  mysys/memdiag/upstream/hooks.h.

  A thread that has waited for five seconds gives back what it holds only for
  the next statement: the unused part of its stack, and its cache of malloc()'s
  blocks. 10,000 idle connections would hold 1 GB with it.
*/

#ifndef MEMDIAG_IDLE_HOOKS_H
#define MEMDIAG_IDLE_HOOKS_H

#include <time.h>

extern "C" {
/** The calling thread has waited for its client for idle_seconds and
goes on waiting. Both functions keep errno. */
[[gnu::weak]] void memdiag_client_is_idle();
/** That wait is over. */
[[gnu::weak]] void memdiag_client_is_back();
}

namespace memdiag {

/** Giving back and taking again costs the thread up to 0.1 ms
(mysys/memdiag/README.md). If 10,000 clients send something whenever this time
is over, that is a fifth of a processor. */
constexpr time_t idle_seconds = 5;

/** One wait for a client, cut in two: idle_seconds, and the rest. A wait that
is not twice as long is not cut. */
class Client_wait {
 public:
  /** @param reads    it waits for something to read
      @param timeout  of the whole wait; null: none. It must outlive this, which
                      takes idle_seconds from it. */
  Client_wait(bool reads, timespec *timeout)
      : m_timeout(timeout),
        m_first(reads && memdiag_client_is_idle != nullptr &&
                (timeout == nullptr || timeout->tv_sec >= 2 * idle_seconds)) {}
  ~Client_wait() {
    if (m_idle) memdiag_client_is_back();
  }
  Client_wait(const Client_wait &) = delete;
  Client_wait &operator=(const Client_wait &) = delete;

  /** The time to wait now. */
  const timespec *timeout() const { return m_first ? &m_part : m_timeout; }

  /** @param result  what ppoll() returned
      @return that was the first part: wait again */
  bool goes_on(int result) {
    if (!m_first || result != 0) return false;
    m_first = false;
    m_idle = true;
    if (m_timeout != nullptr) m_timeout->tv_sec -= idle_seconds;
    memdiag_client_is_idle();
    return true;
  }

 private:
  const timespec m_part{idle_seconds, 0};
  timespec *const m_timeout;
  bool m_first;
  bool m_idle = false;
};

}  // namespace memdiag

#endif  // MEMDIAG_IDLE_HOOKS_H
