/*
  Workers: threads of the layer's own that do something again and again.

  start() and stop() are for the server's start-up and shutdown: never before
  main(), and never before the fork of --daemonize, whose child would not have
  the thread. Both may be called again, and from any thread but the worker's
  own, for which stop() would wait. A worker whose body returned by itself
  counts as running until stop(): start() then says EALREADY. Signals: a
  worker's thread takes none but those of its own faults. Ownership: the worker
  must outlive its thread. Those of the server are never destroyed, because the
  server may exit without a shutdown.
*/

#ifndef MEMDIAG_WORKER_H
#define MEMDIAG_WORKER_H

#include <pthread.h>

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace memdiag {

class Worker {
 public:
  /** Runs in the thread until wait_ms() returns false. */
  using Body = void (*)(Worker *);

  /** @param name  of the thread, up to 15 characters
  @return 0, or the errno of pthread_create(); EALREADY if it runs */
  int start(const char *name, Body body);

  /** End the thread and wait for it. Nothing happens if it does not run. */
  void stop();

  /** For the body: wait so long or until wake(); 0: only until wake().
  @return false: the body must return */
  bool wait_ms(uint64_t ms);

  /** End the current or the next wait. */
  void wake();

 private:
  static void *run(void *self);

  /** Held by start() and stop() from beginning to end: the thread of one must
  have gone before another is made. */
  std::mutex m_control;
  std::mutex m_mutex;
  std::condition_variable m_wake;
  bool m_running{false};
  bool m_stop{false};
  bool m_woken{false};
  Body m_body{nullptr};
  pthread_t m_thread{};
};

}  // namespace memdiag

#endif  // MEMDIAG_WORKER_H
