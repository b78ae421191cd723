#include "memdiag_purger.h"

#include <pthread.h>
#include <signal.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "memdiag_pools.h"

namespace memdiag::purger {
namespace {

struct Thread_state {
  /** Held by start() and stop() from beginning to end: the thread of one must
  have gone before another is made. */
  std::mutex control;
  std::mutex mutex;
  std::condition_variable wake;
  bool running{false};
  bool stop{false};
  pthread_t thread{};
};

/** Never destroyed: the thread may still wait here while static objects are,
if the server exits without a shutdown. */
Thread_state &state() {
  static Thread_state *const instance = new Thread_state;
  return *instance;
}

/** What the thread remembers of a pool from tick to tick. */
struct Watch {
  uint64_t activity{0};
  uint32_t quiet_for_ms{0};
  bool purged{true};
};

void look_at(Pool pool, Watch *watch) {
  const uint32_t quiet_ms = spec_of(pool).quiet_ms;
  if (quiet_ms == 0) return;
  const uint64_t activity = pools::activity(pool);
  if (activity != watch->activity) {
    *watch = {activity, 0, false};
    (void)pools::counters(pool);  // dates a new peak
    return;
  }
  if (watch->purged) return;
  watch->quiet_for_ms += tick_ms;
  if (watch->quiet_for_ms < quiet_ms) return;
  (void)pools::purge(pool);
  watch->purged = true;
}

void *run(void *) {
  Thread_state &self = state();
  std::array<Watch, pool_count> watches;
  std::unique_lock<std::mutex> lock(self.mutex);
  while (!self.stop) {
    self.wake.wait_for(lock, std::chrono::milliseconds(tick_ms),
                       [&self] { return self.stop; });
    if (self.stop) break;
    lock.unlock();
    for (size_t i = 0; i < pool_count; ++i)
      look_at(static_cast<Pool>(i), &watches[i]);
    lock.lock();
  }
  return nullptr;
}

}  // namespace

int start() {
  Thread_state &self = state();
  const std::lock_guard<std::mutex> control(self.control);
  const std::lock_guard<std::mutex> guard(self.mutex);
  if (self.running) return EALREADY;
  self.stop = false;
  // The server has a thread of its own for signals: none may come here.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = pthread_create(&self.thread, nullptr, run, nullptr);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) return error;
  pthread_setname_np(self.thread, "memdiag");
  self.running = true;
  return 0;
}

void stop() {
  Thread_state &self = state();
  const std::lock_guard<std::mutex> control(self.control);
  {
    const std::lock_guard<std::mutex> guard(self.mutex);
    if (!self.running) return;
    self.stop = true;
    self.running = false;
  }
  self.wake.notify_all();
  pthread_join(self.thread, nullptr);
}

}  // namespace memdiag::purger
