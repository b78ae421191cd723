#include "mysys/memdiag/purging/purger.h"

#include <algorithm>
#include <array>
#include <optional>

#include "mysys/memdiag/purging/policies.h"
#include "mysys/memdiag/pools/pools.h"
#include "mysys/memdiag/purging/purge_log.h"
#include "mysys/memdiag/purging/worker.h"

namespace memdiag::purger {
namespace {

/** A purge that gave back less is not worth judging, and where no more than
that has come and gone none is made: it is left to decay. */
constexpr uint64_t worth_bytes = 1 << 20;
/** How long after a purge it is judged, if there is no other before. */
constexpr uint32_t judged_after_ms = 1000;
/** A pool whose pages are wanted again each time is purged after so many times
its quiet_ms at the latest. */
constexpr uint32_t max_backoff = 16;

/** Never destroyed: see Worker. */
Worker &worker() {
  static Worker *const instance = new Worker;
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
  /** The pool's last purge, whoever wanted it; how long it has been known. */
  uint64_t last_purge{0};
  uint32_t purged_ms_ago{0};
  bool judged{true};
};

/** Whether the last purge was of use: pages that the pool has taken again since
were better left to it. Nothing happens before it is `after_ms` old. */
void judge(Pool pool, Watch *watch, uint32_t after_ms) {
  // What goes through malloc() is not counted by the layer.
  if (is_mallocs(pool)) return;
  const std::optional<purge_log::Purge> last = purge_log::last_of(pool);
  if (!last) return;
  if (last->sequence != watch->last_purge) {
    watch->last_purge = last->sequence;
    watch->purged_ms_ago = 0;
    watch->judged = false;
  }
  if (watch->judged || watch->purged_ms_ago < after_ms) return;
  watch->judged = true;
  const uint64_t released_bytes = last->receipt.released_bytes();
  const uint64_t wanted_bytes = std::min(
      pools::allocated_bytes(pool) - last->allocated_bytes, released_bytes);
  purge_log::note_refault(last->sequence, wanted_bytes);
  // When to purge next time is learnt only from this thread's own decisions.
  if (released_bytes >= worth_bytes &&
      (last->reason == Purge_reason::quiet ||
       last->reason == Purge_reason::dirty_limit))
    pools::note_refault(pool, wanted_bytes,
                        wanted_bytes > released_bytes / 2 ? max_backoff : 0);
}

void purge(Pool pool, Watch *watch, Purge_reason reason) {
  judge(pool, watch, 0);
  (void)pools::purge(pool, reason);
  watch->unpurged_bytes = 0;
  watch->uncounted_bytes = 0;
  watch->quiet_for_ms = 0;
}

void look_at(Pool pool, Watch *watch) {
  const uint64_t activity = pools::activity(pool);
  const uint64_t moved_bytes = activity - watch->activity;
  watch->activity = activity;
  watch->unpurged_bytes += moved_bytes;
  watch->uncounted_bytes += moved_bytes;
  if (moved_bytes != 0) (void)pools::counters(pool);  // dates a new peak
  watch->purged_ms_ago += tick_ms;
  judge(pool, watch, judged_after_ms);

  // Counting means asking jemalloc, so only when there can be enough of them.
  const auto limit =
      static_cast<uint64_t>(policies::get(Policy::dirty_limit, pool));
  if (limit != 0 && watch->uncounted_bytes > limit / 2) {
    watch->uncounted_bytes = 0;
    if (pools::dirty_bytes(pool).value_or(0) > limit) {
      purge(pool, watch, Purge_reason::dirty_limit);
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
  watch->quiet_for_ms += tick_ms;
  if (watch->unpurged_bytes <= worth_bytes) return;
  if (watch->quiet_for_ms >= quiet_ms * pools::backoff(pool))
    purge(pool, watch, Purge_reason::quiet);
}

void run(Worker *self) {
  std::array<Watch, pool_count> watches;
  for (size_t i = 0; i < pool_count; ++i)
    if (const auto last = purge_log::last_of(static_cast<Pool>(i)))
      watches[i].last_purge = last->sequence;  // too old to be judged
  while (self->wait_ms(tick_ms))
    for (size_t i = 0; i < pool_count; ++i)
      look_at(static_cast<Pool>(i), &watches[i]);
}

}  // namespace

int start() { return worker().start("memdiag", run); }

void stop() { worker().stop(); }

}  // namespace memdiag::purger
