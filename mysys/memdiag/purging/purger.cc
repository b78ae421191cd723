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
constexpr uint64_t worth_purging_bytes = 1 << 20;
/** A burst has left this much more of a busy pool's pages than usual, and at
least a quarter of what is usual and of what the pool needed: one of many
threads that leaves its arena is no burst. */
constexpr uint64_t least_burst_bytes = 2 << 20;
/** A purge is judged so long after it, or just before the next one. */
constexpr uint32_t judged_after_ms = 1000;
/** A pool whose pages are wanted again each time is purged after so many times
its quiet_ms at the latest. */
constexpr uint32_t max_backoff = 16;
/** An arena that took its pages again is tried again after so long. Pages that
it does not need any more have decayed by then. */
constexpr uint32_t remembered_ms = 60000;
/** Usual is what a pool had in this window, or in the one before. Pages that no
arena took for a third of it have decayed. */
constexpr uint32_t surplus_window_ms = 30000;
/** A quiet purge of so little that is taken again each time waits for up to so
many times worth_purging_bytes. */
constexpr uint64_t max_quiet_worth_bytes = 16 * worth_purging_bytes;

/** Never destroyed: see Worker. */
Worker &worker() {
  static Worker *const instance = new Worker;
  return *instance;
}

}  // namespace

/** Another's purge may come before the one before was judged. Then it is judged
by what was taken again until then. */
void Watch::follow(Pool pool, Pool_watch *watch, const purge_log::Purge &last) {
  if (last.sequence == watch->last_purge) return;
  const auto before =
      watch->judged ? std::nullopt : purge_log::of(watch->last_purge);
  if (before && before->refaulted_bytes)
    learn_when(pool, watch, *before, before->refaulted_bytes.value(), false);
  watch->last_purge = last.sequence;
  watch->purged_ms_ago = 0;
  watch->judged = false;
}

/** Judge the last purge by the pages that its arenas have taken again since:
those were better left to them. Nothing happens before it is `after_ms` old. */
void Watch::judge(Pool pool, Pool_watch *watch, uint32_t after_ms) {
  // The purger does not purge these, and has nothing to learn.
  if (uses_malloc(pool)) return;
  const std::optional<purge_log::Purge> last = purge_log::last_of(pool);
  if (!last) return;
  follow(pool, watch, *last);
  if (watch->judged || watch->purged_ms_ago < after_ms) return;
  watch->judged = true;
  // Of a purge that could not read all sizes it is not known.
  if (last->receipt.error != 0) return;
  const auto taken_bytes = purging::taken_again(pool, last->sequence);
  if (!taken_bytes) return;
  const uint64_t wanted_bytes =
      std::min(taken_bytes.value(), last->receipt.given_back_bytes());
  purge_log::note_refault(
      last->sequence, std::min(wanted_bytes, last->receipt.released_bytes()));
  learn_when(pool, watch, *last, wanted_bytes, true);
}

/** When to purge next time is learnt only from this thread's own decisions.
@param wanted_bytes  the pages that were taken again
@param whole         no more would have been taken */
void Watch::learn_when(Pool pool, Pool_watch *watch,
                       const purge_log::Purge &purge, uint64_t wanted_bytes,
                       bool whole) {
  const uint64_t given_back_bytes = purge.receipt.given_back_bytes();
  const bool was_wrong = wanted_bytes > given_back_bytes / 2;
  const bool is_quiet = purge.reason == Purge_reason::quiet;
  const bool teaches = is_quiet && (was_wrong || whole);
  if (teaches)
    watch->quiet_worth_bytes =
        given_back_bytes < worth_purging_bytes && was_wrong
            ? std::min(watch->quiet_worth_bytes * 2, max_quiet_worth_bytes)
            : worth_purging_bytes;
  if (given_back_bytes < worth_purging_bytes) return;
  if (is_quiet || purge.reason == Purge_reason::dirty_limit ||
      purge.reason == Purge_reason::excess)
    purging::note_refault(
        pool, std::min(wanted_bytes, purge.receipt.released_bytes()));
  if (teaches) purging::change_backoff(pool, was_wrong ? max_backoff : 0);
}

void Watch::purge(Pool pool, Pool_watch *watch, Purge_reason reason,
                  std::span<const unsigned> only) {
  judge(pool, watch, 0);
  (void)purging::purge(pool, reason, only);
  if (const auto own = purge_log::last_of(pool)) follow(pool, watch, *own);
  watch->quiet_for_ms = 0;
  if (!only.empty()) return;
  watch->unpurged_bytes = 0;
  watch->uncounted_bytes = 0;
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
    // The load takes the needed pages again. The purge was right all the same.
    arena.purged_bytes =
        pages ? pages.value().resident_bytes + one.needed_bytes : 0;
    arena.given_back_bytes = one.surplus_bytes;
    arena.surplus_of_pool_bytes = resting.surplus_bytes;
    arena.taken_bytes = 0;
  }
}

/** A surplus that was purged, and most of it taken again, is usual. */
void Watch::learn(Pool_watch *watch, uint64_t given_back_bytes,
                  uint64_t taken_bytes, uint64_t surplus_bytes) {
  if (given_back_bytes < worth_purging_bytes ||
      taken_bytes <= given_back_bytes / 2)
    return;
  watch->most_surplus_bytes =
      std::max(watch->most_surplus_bytes, surplus_bytes);
}

/** A steady load has a surplus, too: its threads wander, and the arenas that
they left keep their pages until these decay. It comes slowly and stays the
same. What a burst leaves comes within a period. */
bool Watch::burst_has_ended(Pool_watch *watch, const Arenas &arenas) {
  const uint64_t usual_bytes =
      std::max(watch->most_surplus_bytes, watch->surplus_before_bytes);
  const uint64_t burst_bytes =
      std::max(least_burst_bytes, (usual_bytes + arenas.needed_bytes) / 4);
  if (arenas.surplus_bytes <= usual_bytes + burst_bytes) {
    watch->most_surplus_bytes =
        std::max(watch->most_surplus_bytes, arenas.surplus_bytes);
    return false;
  }
  uint64_t bytes = 0;
  for (size_t i = 0; i < arenas.count; ++i)
    bytes += arenas.resting[i].surplus_bytes;
  return bytes >= least_burst_bytes;
}

/** The arenas with unused pages that they did not need in the last period and
did not take again after a purge. None before a period ends, or if no burst has
ended. Between two ticks a statement may come and go: blocks of whole pages are
counted when they come, slabs of small blocks are seen in a tick only. So these
are a part of the usual surplus. */
Watch::Arenas Watch::resting_arenas(Pool pool, Pool_watch *watch,
                                    uint64_t quiet_ms) {
  Arenas found{};
  const auto page_bytes = mallctl::read<Ctl::arenas_page>();
  if (!page_bytes) return found;
  const bool ends = watch->period_ms >= quiet_ms;
  if (ends) watch->period_ms = 0;
  uint64_t given_back_bytes = 0;
  uint64_t taken_bytes = 0;
  uint64_t surplus_then_bytes = 0;
  for (unsigned slot = 0; slot < spec_of(pool).arenas; ++slot) {
    const int arena = pools::arena_in_slot(pool, slot);
    if (arena < 0) continue;
    Of_arena &watched = watch->arenas[slot];
    uint64_t &most_needed = watched.most_needed;
    const auto pages = mallctl::arena_pages(static_cast<unsigned>(arena));
    if (!pages) {
      most_needed = 0;
      continue;
    }
    const uint64_t dirty = pages.value().dirty_pages * page_bytes.value();
    const uint64_t resident = pages.value().resident_bytes;
    // Both are read while the arena is in use.
    const uint64_t used = resident - std::min(dirty, resident);
    most_needed =
        std::max(most_needed, used + pools::recent_surplus(pool, slot));
    if (watched.purged_ms_ago < judged_after_ms)
      watched.taken_bytes =
          std::max(watched.taken_bytes,
                   resident - std::min(resident, watched.purged_bytes));
    if (watched.purged_ms_ago < remembered_ms) {
      watched.purged_ms_ago += tick_ms;
      if (watched.purged_ms_ago == judged_after_ms) {
        given_back_bytes += watched.given_back_bytes;
        taken_bytes += std::min(watched.taken_bytes, watched.given_back_bytes);
        surplus_then_bytes =
            std::max(surplus_then_bytes, watched.surplus_of_pool_bytes);
      }
    } else {
      watched.taken_bytes = 0;
    }
    if (!ends) continue;
    const uint64_t needed = most_needed - used;
    most_needed = used;
    const uint64_t surplus = dirty - std::min(dirty, needed);
    const uint64_t wanted = std::min(surplus, watched.taken_bytes);
    found.needed_bytes += needed;
    found.surplus_bytes += surplus;
    // An arena with little more than it needs would take it all again.
    if (surplus - wanted > dirty / 8)
      found.resting[found.count++] = {static_cast<unsigned>(arena), slot,
                                      needed, surplus - wanted};
  }
  learn(watch, given_back_bytes, taken_bytes, surplus_then_bytes);
  if (!ends || !burst_has_ended(watch, found)) found.count = 0;
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
  // Also in quiet ticks: a load may have a statement in each fourth tick.
  watch->period_ms += tick_ms;
  watch->window_ms += tick_ms;
  if (watch->window_ms >= surplus_window_ms) {
    watch->surplus_before_bytes = watch->most_surplus_bytes;
    watch->most_surplus_bytes = 0;
    watch->window_ms = 0;
  }
  if (moved_bytes > quiet_bytes) {
    watch->quiet_for_ms = 0;
    watch->was_busy = true;
    const Arenas resting = resting_arenas(pool, watch, quiet_ms);
    if (resting.count != 0) purge_resting(pool, watch, resting);
    return;
  }
  watch->quiet_for_ms += tick_ms;
  if (watch->unpurged_bytes <=
      std::max(watch->quiet_worth_bytes,
               watch->was_busy ? 0 : watch->trickle_worth_bytes))
    return;
  if (watch->quiet_for_ms < quiet_ms * purging::backoff(pool)) return;
  purge(pool, watch, Purge_reason::quiet);
  // The next load may be another.
  watch->most_surplus_bytes = watch->surplus_before_bytes = 0;
  for (Of_arena &arena : watch->arenas) arena.purged_ms_ago = UINT32_MAX;
  watch->trickle_worth_bytes =
      watch->was_busy
          ? worth_purging_bytes
          : std::min(watch->trickle_worth_bytes * 2, max_quiet_worth_bytes);
  watch->was_busy = false;
}

Watch::Watch() {
  for (Pool_watch &watch : m_pools)
    watch.quiet_worth_bytes = watch.trickle_worth_bytes = worth_purging_bytes;
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
