#include "mysys/memdiag/purging/purger.h"

#include <algorithm>
#include <optional>

#include "mysys/memdiag/base/worker.h"
#include "mysys/memdiag/pools/pools.h"
#include "mysys/memdiag/pools/sharing.h"
#include "mysys/memdiag/purging/policies.h"
#include "mysys/memdiag/purging/purge.h"
#include "mysys/memdiag/purging/purge_log.h"

namespace memdiag::purger {
namespace {

/** A purge that gave back less is not judged. A pool in which no more has come
and gone is not purged, but left to decay. */
constexpr uint64_t worth_bytes = 1 << 20;
/** Less is not worth a purge of a busy pool. */
constexpr uint64_t worth_bytes_of_excess = 8 << 20;
/** A purge is judged so long after it, or just before the next one. */
constexpr uint32_t judged_after_ms = 1000;
/** A pool whose pages are wanted again each time is purged after so many times
its quiet_ms at the latest. */
constexpr uint32_t max_backoff = 16;

/** Never destroyed: see Worker. */
Worker &worker() {
  static Worker *const instance = new Worker;
  return *instance;
}

}  // namespace

/** Judge the last purge by the pages that the pool has taken again since: those
were better left to it. Nothing happens before it is `after_ms` old. */
void Watch::judge(Pool pool, Of_pool *watch, uint32_t after_ms) {
  // The layer does not count malloc()'s blocks.
  if (uses_malloc(pool)) return;
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
  // A busy pool allocates all the time, from pages that it has.
  const uint64_t taken_bytes =
      last->reason == Purge_reason::excess
          ? watch->most_needed_since - watch->needed_at_purge
          : pools::allocated_bytes(pool) - last->allocated_bytes;
  const uint64_t wanted_bytes = std::min(taken_bytes, released_bytes);
  purge_log::note_refault(last->sequence, wanted_bytes);
  // When to purge next time is learnt only from this thread's own decisions.
  if (released_bytes >= worth_bytes &&
      (last->reason == Purge_reason::quiet ||
       last->reason == Purge_reason::dirty_limit ||
       last->reason == Purge_reason::excess))
    purging::note_refault(pool, wanted_bytes,
                          wanted_bytes > released_bytes / 2 ? max_backoff : 0);
}

void Watch::purge(Pool pool, Of_pool *watch, Purge_reason reason) {
  judge(pool, watch, 0);
  (void)purging::purge(pool, reason);
  watch->unpurged_bytes = 0;
  watch->uncounted_bytes = 0;
  watch->quiet_for_ms = 0;
  watch->needed_at_purge = watch->most_needed_since =
      pools::counters(pool).live_bytes;
}

/** true: most of a busy pool's unused pages are more than it needed in
the last period, which has just ended. */
bool Watch::has_excess(Pool pool, Of_pool *watch, uint64_t live_bytes,
                       uint64_t quiet_ms) {
  watch->most_needed =
      std::max(watch->most_needed, live_bytes + pools::recent_surplus(pool));
  watch->period_ms += tick_ms;
  if (watch->period_ms < quiet_ms * purging::backoff(pool)) return false;
  const uint64_t may_be_needed =
      watch->most_needed > live_bytes ? watch->most_needed - live_bytes : 0;
  watch->period_ms = 0;
  watch->most_needed = live_bytes;
  const uint64_t dirty = purging::dirty_bytes(pool).value_or(0);
  return dirty >= worth_bytes_of_excess && may_be_needed < dirty / 2;
}

void Watch::purge_if_due(Pool pool, Of_pool *watch) {
  const uint64_t activity = pools::activity(pool);
  const uint64_t moved_bytes = activity - watch->activity;
  watch->activity = activity;
  watch->unpurged_bytes += moved_bytes;
  watch->uncounted_bytes += moved_bytes;
  uint64_t live_bytes = 0;
  if (moved_bytes != 0) {
    live_bytes = pools::counters(pool).live_bytes;  // dates a new peak
    watch->most_needed_since = std::max(watch->most_needed_since, live_bytes);
  }
  watch->purged_ms_ago += tick_ms;
  judge(pool, watch, judged_after_ms);

  // Counting means asking jemalloc, so only when there can be enough of them.
  const auto limit =
      static_cast<uint64_t>(policies::get(Policy::dirty_limit, pool));
  if (limit != 0 && watch->uncounted_bytes > limit / 2) {
    watch->uncounted_bytes = 0;
    if (purging::dirty_bytes(pool).value_or(0) > limit) {
      purge(pool, watch, Purge_reason::dirty_limit);
      return;
    }
  }

  const auto quiet_ms =
      static_cast<uint64_t>(policies::get(Policy::quiet_ms, pool));
  if (quiet_ms == 0) return;
  if (moved_bytes > quiet_bytes) {
    watch->quiet_for_ms = 0;
    if (has_excess(pool, watch, live_bytes, quiet_ms))
      purge(pool, watch, Purge_reason::excess);
    return;
  }
  watch->quiet_for_ms += tick_ms;
  if (watch->unpurged_bytes <= worth_bytes) return;
  if (watch->quiet_for_ms >= quiet_ms * purging::backoff(pool))
    purge(pool, watch, Purge_reason::quiet);
}

Watch::Watch() {
  for (size_t i = 0; i < pool_count; ++i)
    if (const auto last = purge_log::last_of(static_cast<Pool>(i)))
      m_pools[i].last_purge = last->sequence;
}

void Watch::tick() {
  for (size_t i = 0; i < pool_count; ++i)
    purge_if_due(static_cast<Pool>(i), &m_pools[i]);
  if (pools::shares_one_arena() && (m_running_ms += tick_ms) >= starting_ms)
    pools::share_one_arena(false);
  m_trimmed_ms_ago += tick_ms;
  if (m_trimmed_ms_ago < trim_ms) return;
  m_trimmed_ms_ago = 0;
  for (size_t i = 0; i < pool_count; ++i)
    pools::trim_caches(static_cast<Pool>(i), least_cached_bytes);
}

int start() {
  return worker().start("memdiag", [](Worker *self) {
    Watch watch;
    while (self->wait_ms(tick_ms)) watch.tick();
  });
}

void stop() { worker().stop(); }

}  // namespace memdiag::purger
