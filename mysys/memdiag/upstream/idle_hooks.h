/*
  The functions that the patched vio/viosocket.cc calls when a connection's
  thread waits for its client. They are weak, as in
  mysys/memdiag/upstream/hooks.h.

  A thread that has waited for five seconds gives back what it holds only for
  the next statement: the unused part of its stack, its cache of malloc()'s
  blocks, and the pages of its session's buffers. 10,000 idle connections would
  hold 1 GB with it. It can be called to give back more when memory becomes
  short later.
*/

#ifndef MEMDIAG_IDLE_HOOKS_H
#define MEMDIAG_IDLE_HOOKS_H

#include <poll.h>
#include <time.h>

#include <algorithm>
#include <utility>

extern "C" {
/** The calling thread has waited for its client for idle_seconds and
goes on waiting. Both functions keep errno.
@return a file descriptor that can be read when the thread should call this
        again; -1: it need not */
[[gnu::weak]] int memdiag_client_is_idle();
/** That wait is over. */
[[gnu::weak]] void memdiag_client_is_back();
/** The calling thread's session gives back pages that only its next statement
needs: sql/memdiag/idle_buffers.cc. It keeps errno. */
[[gnu::weak]] void memdiag_give_back_buffers();
}

namespace memdiag {

/** Giving back and taking again costs the thread up to 0.1 ms
(mysys/memdiag/README.md). If 10,000 clients send something whenever this time
is over, that is a fifth of a processor. */
constexpr time_t idle_seconds = 5;

/** Calls the hooks for the calling thread, in pairs. The hooks must exist. */
class Idle {
 public:
  Idle() = default;
  ~Idle() { is_back(); }
  Idle(const Idle &) = delete;
  Idle &operator=(const Idle &) = delete;

  explicit operator bool() const { return m_is_idle; }
  /** The descriptor that memdiag_client_is_idle() returned. After call_again()
  it is -1. */
  int bell() const { return m_bell; }
  void begin() {
    m_is_idle = true;
    m_bell = memdiag_client_is_idle();
  }
  /** The bell was rung. */
  void call_again() {
    m_bell = -1;
    memdiag_client_is_back();
    (void)memdiag_client_is_idle();
  }
  void is_back() {
    if (std::exchange(m_is_idle, false)) memdiag_client_is_back();
  }

 private:
  bool m_is_idle{false};
  int m_bell{-1};
};

/** One wait for a client, cut in two: idle_seconds, and the rest, which a call
cuts once more. A wait that is not twice as long is not cut. */
class Client_wait {
 public:
  /** @param reads    it waits for something to read
      @param timeout  of the whole wait; null: none. It must outlive this, which
                      takes idle_seconds from it. */
  Client_wait(bool reads, timespec *timeout)
      : m_timeout(timeout),
        m_first(reads && memdiag_client_is_idle != nullptr &&
                (timeout == nullptr || timeout->tv_sec >= 2 * idle_seconds)) {}

  /** ppoll() for the next part.
  @param mask  ppoll()'s; null: none
  @return as ppoll(), for the client alone */
  int wait(pollfd *client, const sigset_t *mask) {
    m_called = false;
    const int bell = m_idle.bell();
    pollfd both[] = {*client, {bell, POLLIN, 0}};
    const int ready = ppoll(both, bell < 0 ? 1 : 2, timeout(), mask);
    client->revents = both[0].revents;
    if (ready <= 0) return ready;
    m_called = both[1].revents != 0;
    return both[0].revents != 0 ? 1 : 0;
  }

  /** The time to wait now. */
  const timespec *timeout() const { return m_first ? &m_part : m_timeout; }

  /** @param result  what wait() returned
      @return there is another part: wait again */
  bool goes_on(int result) {
    if (result != 0) return false;
    if (m_first) {
      m_first = false;
      if (m_timeout != nullptr) m_timeout->tv_sec -= idle_seconds;
      if (memdiag_give_back_buffers != nullptr) memdiag_give_back_buffers();
      m_idle.begin();
      m_since = seconds_now();
      return true;
    }
    if (!m_called) return false;
    m_idle.call_again();
    if (m_timeout != nullptr)
      m_timeout->tv_sec =
          std::max<time_t>(m_timeout->tv_sec - (seconds_now() - m_since), 0);
    return true;
  }

 private:
  static time_t seconds_now() {
    timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
  }

  const timespec m_part{idle_seconds, 0};
  timespec *const m_timeout;
  bool m_first;
  Idle m_idle;
  bool m_called = false;
  /** When the second part began. */
  time_t m_since = 0;
};

}  // namespace memdiag

#endif  // MEMDIAG_IDLE_HOOKS_H
