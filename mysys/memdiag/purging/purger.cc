#include "mysys/memdiag/purging/purger.h"

#include <algorithm>
#include <optional>

#include "mysys/memdiag/base/worker.h"
#include "mysys/memdiag/jemalloc/mallctl.h"
#include "mysys/memdiag/pools/arenas.h"
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
/** Less is not worth a purge of a busy pool's arenas. */
constexpr uint64_t worth_bytes_of_excess = 8 << 20;
/** A purge is judged so long after it, or just before the next one. */
constexpr uint32_t judged_after_ms = 1000;
/** A pool whose pages are wanted again each time is purged after so many times
its quiet_ms at the latest. */
constexpr uint32_t max_backoff = 16;
/** An arena that took its pages again is tried again after so long. Pages that
it does not need any more have decayed by then. */
constexpr uint32_t remembered_ms = 60000;
/** So is a pool of such arenas, and after four times as long each time that it
takes them again, up to this. */
constexpr uint32_t longer = 4;
constexpr uint32_t most_remembered_ms = longer * longer * remembered_ms;
/** Pages that no arena took for so long have decayed. */
constexpr uint32_t kept_window_ms = 10000;
/** Less than so much above what a pool keeps is not worth a purge. */
constexpr uint64_t least_above_kept_bytes = 2 << 20;
/** A quiet purge of so little that is taken again each time waits for up to so
many times worth_bytes. */
constexpr uint64_t max_quiet_worth_bytes = 16 * worth_bytes;

/** Never destroyed: see Worker. */
Worker &worker() {
  static Worker *const instance = new Worker;
  return *instance;
}

}  // namespace

/** Judge the last purge by the pages that its arenas have taken again since:
those were better left to them. Nothing happens before it is `after_ms` old. */
void Watch::judge(Pool pool, Pool_watch *watch, uint32_t after_ms) {
  // The purger does not purge these, and has nothing to learn.
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
  // Of a purge that could not read all sizes it is not known.
  if (last->receipt.error != 0) return;
  const auto taken_bytes = purging::taken_again(pool, last->sequence);
  if (!taken_bytes) return;
  const uint64_t given_back_bytes = last->receipt.given_back_bytes();
  const uint64_t wanted_bytes = std::min(taken_bytes.value(), given_back_bytes);
  const uint64_t shown_bytes =
      std::min(wanted_bytes, last->receipt.released_bytes());
  purge_log::note_refault(last->sequence, shown_bytes);
  // When to purge next time is learnt only from this thread's own decisions.
  if (last->reason == Purge_reason::quiet)
    watch->quiet_worth_bytes =
        given_back_bytes < worth_bytes && wanted_bytes > given_back_bytes / 2
            ? std::min(watch->quiet_worth_bytes * 2, max_quiet_worth_bytes)
            : worth_bytes;
  if (given_back_bytes < worth_bytes) return;
  if (last->reason == Purge_reason::quiet ||
      last->reason == Purge_reason::dirty_limit ||
      last->reason == Purge_reason::excess)
    purging::note_refault(pool, shown_bytes);
  if (last->reason == Purge_reason::quiet)
    purging::change_backoff(
        pool, wanted_bytes > given_back_bytes / 2 ? max_backoff : 0);
}

void Watch::purge(Pool pool, Pool_watch *watch, Purge_reason reason,
                  std::span<const unsigned> only) {
  judge(pool, watch, 0);
  (void)purging::purge(pool, reason, only);
  watch->unpurged_bytes = 0;
  watch->uncounted_bytes = 0;
  watch->quiet_for_ms = 0;
}

void Watch::purge_resting(Pool pool, Pool_watch *watch, const Arenas &resting) {
  std::array<unsigned, pools::max_slots> numbers;
  for (size_t i = 0; i < resting.count; ++i)
    numbers[i] = resting.resting[i].arena;
  purge(pool, watch, Purge_reason::excess, {numbers.data(), resting.count});
  for (size_t i = 0; i < resting.count; ++i) {
    const Resting &one = resting.resting[i];
    Of_arena &arena = watch->arenas[one.slot];
    const auto pages = mallctl::arena_pages(one.arena);
    arena.purged_ms_ago = pages ? 0 : UINT32_MAX;
    arena.purged_bytes = pages ? pages.value().resident_bytes : 0;
    arena.given_back_bytes = one.dirty_bytes;
    arena.unused_in_pool_bytes = resting.unused_bytes;
    arena.taken_bytes = 0;
  }
}

/** The purger judges a purge by what its arenas took again within a second. If
they took most of it, the pool keeps its unused pages for a while. A pool that
takes them again after that while keeps them longer. */
void Watch::keep_if_wanted(Pool_watch *watch, uint64_t given_back_bytes,
                           uint64_t taken_bytes, uint64_t unused_bytes) {
  if (given_back_bytes < worth_bytes) return;
  const bool keeps = watch->kept_ms_left != 0;
  if (taken_bytes <= given_back_bytes / 2) {
    if (!keeps) watch->kept_ms /= longer;
    return;
  }
  if (!keeps)
    watch->kept_ms =
        std::clamp(watch->kept_ms * longer, remembered_ms, most_remembered_ms);
  const uint64_t wanted_bytes =
      unused_bytes - std::min(unused_bytes, given_back_bytes - taken_bytes);
  watch->kept_bytes =
      keeps ? std::max(watch->kept_bytes, wanted_bytes) : wanted_bytes;
  watch->kept_ms_left = watch->kept_ms - judged_after_ms;
  watch->window_ms = 0;
  watch->most_unused_bytes = 0;
}

/** A load that became smaller needs less: what it left has decayed. */
void Watch::keep_no_more_than_it_has(Pool_watch *watch, uint64_t unused_bytes) {
  watch->most_unused_bytes = std::max(watch->most_unused_bytes, unused_bytes);
  watch->window_ms += tick_ms;
  if (watch->window_ms < kept_window_ms) return;
  watch->kept_bytes = std::min(watch->kept_bytes, watch->most_unused_bytes);
  watch->window_ms = 0;
  watch->most_unused_bytes = 0;
}

/** The list keeps the resting arenas with most unused pages, until they have
what the pool has beyond the bytes that it keeps. It keeps none if that is not
worth a purge. */
void Watch::leave_what_is_kept(const Pool_watch &watch, Arenas *arenas) {
  const bool keeps = watch.kept_ms_left != 0;
  const uint64_t kept_bytes = keeps ? watch.kept_bytes : 0;
  const uint64_t above_bytes =
      arenas->unused_bytes - std::min(arenas->unused_bytes, kept_bytes);
  const uint64_t worth = keeps
                             ? std::max(least_above_kept_bytes, kept_bytes / 4)
                             : worth_bytes_of_excess;
  Resting *const first = arenas->resting.data();
  std::sort(first, first + arenas->count,
            [](const Resting &one, const Resting &other) {
              return one.dirty_bytes > other.dirty_bytes;
            });
  size_t count = 0;
  uint64_t bytes = 0;
  for (; count < arenas->count && bytes < above_bytes; ++count)
    bytes += first[count].dirty_bytes;
  arenas->count = above_bytes < worth || bytes < worth ? 0 : count;
}

/** The arenas whose unused pages are mostly more than they needed in the last
period, and more than they took again after a purge. None before a period ends,
or if that is not worth a purge. Between two ticks a statement may come and go:
blocks of whole pages are counted when they come, slabs of small blocks are seen
in a tick only. */
Watch::Arenas Watch::resting_arenas(Pool pool, Pool_watch *watch,
                                    uint64_t quiet_ms) {
  Arenas found{};
  const auto page_bytes = mallctl::read<Ctl::arenas_page>();
  if (!page_bytes) return found;
  watch->kept_ms_left -= std::min(watch->kept_ms_left, tick_ms);
  watch->period_ms += tick_ms;
  const bool ends = watch->period_ms >= quiet_ms;
  if (ends) watch->period_ms = 0;
  uint64_t given_back_bytes = 0;
  uint64_t taken_bytes = 0;
  uint64_t unused_then_bytes = 0;
  for (unsigned slot = 0; slot < spec_of(pool).arenas; ++slot) {
    const int arena = pools::arena_in_slot(pool, slot);
    if (arena < 0) continue;
    Of_arena &watched = watch->arenas[slot];
    uint64_t &most_needed = watched.most_needed;
    const auto pages = mallctl::arena_pages(static_cast<unsigned>(arena));
    if (!pages) {
      most_needed = UINT64_MAX;
      continue;
    }
    const uint64_t dirty = pages.value().dirty_pages * page_bytes.value();
    const uint64_t resident = pages.value().resident_bytes;
    // Both are read while the arena is in use.
    const uint64_t used = resident - std::min(dirty, resident);
    most_needed =
        std::max(most_needed, used + pools::recent_surplus(pool, slot));
    found.unused_bytes += dirty;
    if (watched.purged_ms_ago < judged_after_ms)
      watched.taken_bytes =
          std::max(watched.taken_bytes,
                   resident - std::min(resident, watched.purged_bytes));
    if (watched.purged_ms_ago < remembered_ms) {
      watched.purged_ms_ago += tick_ms;
      if (watched.purged_ms_ago == judged_after_ms) {
        given_back_bytes += watched.given_back_bytes;
        taken_bytes += std::min(watched.taken_bytes, watched.given_back_bytes);
        unused_then_bytes =
            std::max(unused_then_bytes, watched.unused_in_pool_bytes);
      }
    } else {
      watched.taken_bytes = 0;
    }
    if (!ends) continue;
    if (dirty != 0 &&
        std::max(most_needed - used, watched.taken_bytes) < dirty / 2)
      found.resting[found.count++] = {static_cast<unsigned>(arena), slot,
                                      dirty};
    most_needed = used;
  }
  keep_if_wanted(watch, given_back_bytes, taken_bytes, unused_then_bytes);
  keep_no_more_than_it_has(watch, found.unused_bytes);
  leave_what_is_kept(*watch, &found);
  return found;
}

void Watch::purge_if_due(Pool pool, Pool_watch *watch) {
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
    const auto dirty_bytes = purging::dirty_bytes(pool);
    // A figure that could not be read is asked for again.
    if (dirty_bytes) watch->uncounted_bytes = 0;
    if (dirty_bytes && dirty_bytes.value() > limit) {
      purge(pool, watch, Purge_reason::dirty_limit);
      return;
    }
  }

  const auto quiet_ms =
      static_cast<uint64_t>(policies::get(Policy::quiet_ms, pool));
  if (quiet_ms == 0) return;
  if (moved_bytes > quiet_bytes) {
    watch->quiet_for_ms = 0;
    const Arenas resting = resting_arenas(pool, watch, quiet_ms);
    if (resting.count != 0) purge_resting(pool, watch, resting);
    return;
  }
  watch->quiet_for_ms += tick_ms;
  if (watch->unpurged_bytes <= watch->quiet_worth_bytes) return;
  if (watch->quiet_for_ms >= quiet_ms * purging::backoff(pool))
    purge(pool, watch, Purge_reason::quiet);
}

Watch::Watch() {
  for (Pool_watch &watch : m_pools) watch.quiet_worth_bytes = worth_bytes;
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
