#include "memdiag_purger.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "memdiag_policies.h"
#include "memdiag_pools.h"

namespace memdiag::purger {
namespace {

/** A purge that gave back less is not worth judging. */
constexpr uint64_t worth_bytes = 1 << 20;
/** How long after a purge it is judged, if there is no other before. */
constexpr uint32_t judged_after_ms = 1000;
/** A pool whose pages are wanted again each time is purged after so many times
its quiet_ms at the latest. */
constexpr uint32_t max_backoff = 16;

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
  /** pools::activity() at the last tick, and how much of it came since the last
  purge. */
  uint64_t activity{0};
  uint64_t unpurged_bytes{0};
  uint32_t quiet_for_ms{0};
  /** Activity since the dirty pages were last counted. */
  uint64_t uncounted_bytes{0};
  /** Of the last purge that gave back something: how much, how long ago, and
  what has been allocated since. */
  uint64_t purged_bytes{0};
  uint32_t purged_ms_ago{0};
  uint64_t allocated_at_purge{0};
};

/** Whether the last purge was of use: pages that the pool has taken again since
were better left to it. */
void judge(Pool pool, Watch *watch) {
  if (watch->purged_bytes == 0) return;
  const uint64_t wanted =
      std::min(pools::allocated_bytes(pool) - watch->allocated_at_purge,
               watch->purged_bytes);
  pools::note_refault(pool, wanted,
                      wanted > watch->purged_bytes / 2 ? max_backoff : 0);
  watch->purged_bytes = 0;
}

/** Give a pool's pages back, and begin to watch whether they are wanted again.
 */
void purge(Pool pool, Watch *watch) {
  judge(pool, watch);
  const pools::Receipt receipt = pools::purge(pool);
  watch->unpurged_bytes = 0;
  watch->uncounted_bytes = 0;
  if (receipt.resident_before_bytes <
      receipt.resident_after_bytes + worth_bytes)
    return;
  watch->purged_bytes =
      receipt.resident_before_bytes - receipt.resident_after_bytes;
  watch->purged_ms_ago = 0;
  watch->allocated_at_purge = pools::allocated_bytes(pool);
}

void look_at(Pool pool, Watch *watch) {
  const uint64_t activity = pools::activity(pool);
  const uint64_t moved_bytes = activity - watch->activity;
  watch->activity = activity;
  watch->unpurged_bytes += moved_bytes;
  watch->uncounted_bytes += moved_bytes;
  if (moved_bytes != 0) (void)pools::counters(pool);  // dates a new peak
  watch->purged_ms_ago += tick_ms;
  if (watch->purged_ms_ago >= judged_after_ms) judge(pool, watch);

  // Counting means asking jemalloc, so only when there can be enough of them.
  const auto limit =
      static_cast<uint64_t>(policies::get(Policy::dirty_limit, pool));
  if (limit != 0 && watch->uncounted_bytes > limit / 2) {
    watch->uncounted_bytes = 0;
    if (pools::dirty_bytes(pool).value_or(0) > limit) {
      purge(pool, watch);
      return;
    }
  }

  const auto quiet_ms =
      static_cast<uint64_t>(policies::get(Policy::quiet_ms, pool));
  if (quiet_ms == 0) return;
  if (moved_bytes > quiet_bytes) {
    watch->quiet_for_ms = 0;
    return;
  }
  if (watch->unpurged_bytes <= quiet_bytes) return;
  watch->quiet_for_ms += tick_ms;
  if (watch->quiet_for_ms >= quiet_ms * pools::backoff(pool))
    purge(pool, watch);
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
