/*
  The layer's own thread, the purger. It watches the pools, dates their peaks,
  and gives a pool's unused pages back, so that no query pays for it:
  - once the pool has fallen quiet (Policy::quiet_ms);
  - once a burst is over and a steady load goes on. An arena's surplus are the
  unused pages that it did not need for as long. A pool whose surplus is above
  that of the last half minute by 2 MB, and by a quarter of that and of what the
  pool needed, gives it back. Only arenas with a surplus are purged, because
  pages of one arena do not serve another. A surplus that comes slowly is of
  threads that wander from arena to arena, and decays;
  - once the pool has more of them than it may (Policy::dirty_limit).
  It learns from what purging costs. A second after a purge it counts the pages
  that the purged arenas have taken again. If these are most of what a quiet
  pool gave back, it gets a back-off, and quiet_ms is multiplied by it. If they
  are most of a busy pool's surplus, so much surplus is usual from then on. An
  arena keeps for a minute what it took again. Of arenas of a busy pool, a
  second and a minute are 10 and 600 ticks in which the pool is busy. Traffic so
  low that the pool was quiet all the time has to be more for each further
  purge.

  Every tick it reads a few counters of the layer, and asks jemalloc for the
  pages of each arena of the busy pools. Every two seconds it drops the caches
  of small blocks that were hardly used, and one that is in use. A pool that
  fell quiet is purged once and then left alone until it has allocated and freed
  a megabyte again.

  Threads: start() and stop() as Worker has them; the plugin calls them. A Watch
  is used by one thread at a time.
*/

#ifndef MEMDIAG_PURGER_H
#define MEMDIAG_PURGER_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "mysys/memdiag/pools/pool.h"
#include "mysys/memdiag/purging/purge_log.h"
#include "mysys/memdiag/purging/receipt.h"

namespace memdiag::purger {

/** The time between two checks of the pools. */
constexpr uint32_t tick_ms = 100;

/** A pool is quiet in a tick that moved no more bytes than this: the server's
background threads never rest altogether. Pages that so little leaves behind are
left to decay. */
constexpr uint64_t quiet_bytes = 64 << 10;

/** Every trim_ms, the purger drops caches of small blocks that moved less than
least_cached_bytes since the last time, and in each pool one that moved more. */
constexpr uint32_t trim_ms = 2000;
constexpr uint64_t least_cached_bytes = 256 << 10;

/** The purger takes the server to have started after this time
(share_one_arena() in pools/sharing.h). */
constexpr uint32_t starting_ms = 10000;

/** @return as Worker::start() */
int start();
void stop();

/** The purger's memory of the pools from tick to tick. The thread has
one. Tests make their own and call tick() themselves, as if the time between two
calls were tick_ms. */
class Watch {
 public:
  /** Purges of the past are not judged. */
  Watch();
  /** Checks every pool once, and purges those that are due. */
  void tick();

 private:
  struct Of_arena {
    /** Bytes of pages in use: the most in the current period; UINT64_MAX: not
    known. */
    uint64_t most_needed{0};
    /** Since the arena was purged alone, and its resident bytes right after
    that, with those that it needed. UINT32_MAX: it never was. */
    uint32_t purged_ms_ago{UINT32_MAX};
    uint64_t purged_bytes{0};
    /** The surplus that this purge gave back, and the pool's before it. */
    uint64_t given_back_bytes{0};
    uint64_t surplus_of_pool_bytes{0};
    /** The arena took so much again within a second, beyond its need. */
    uint64_t taken_bytes{0};
  };
  struct Pool_watch {
    /** pools::activity() at the last tick, and how much of it came since the
    last purge. */
    uint64_t activity{0};
    uint64_t unpurged_bytes{0};
    uint32_t quiet_for_ms{0};
    /** Activity since the dirty pages were last counted. */
    uint64_t uncounted_bytes{0};
    /** The pool's last purge, of any reason, and how long it has been known. */
    uint64_t last_purge{0};
    uint32_t purged_ms_ago{0};
    bool judged{true};
    /** The length so far of the current period of a busy pool. It will be
    quiet_ms long. */
    uint32_t period_ms{0};
    /** The most surplus in this window, without what bursts left; that of the
    window before; and the length so far of this one. */
    uint64_t most_surplus_bytes{0};
    uint64_t surplus_before_bytes{0};
    uint32_t window_ms{0};
    /** It was busy since its last quiet purge. */
    bool was_busy{false};
    /** As quiet_worth_bytes, of a pool that was not. */
    uint64_t trickle_worth_bytes;
    /** A quiet pool is purged once so much has come and gone. */
    uint64_t quiet_worth_bytes;
    /** By slot. */
    std::array<Of_arena, pools::max_slots> arenas{};
  };
  struct Resting {
    unsigned arena;
    unsigned slot;
    /** It will take these again. */
    uint64_t needed_bytes;
    uint64_t surplus_bytes;
  };
  struct Arenas {
    std::array<Resting, pools::max_slots> resting;
    size_t count;
    /** Sums over the pool's arenas. */
    uint64_t needed_bytes;
    uint64_t surplus_bytes;
  };

  static Arenas resting_arenas(Pool pool, Pool_watch *watch, uint64_t quiet_ms);
  static void learn(Pool_watch *watch, uint64_t given_back_bytes,
                    uint64_t taken_bytes, uint64_t surplus_bytes);
  static bool burst_has_ended(Pool_watch *watch, const Arenas &arenas);
  static void follow(Pool pool, Pool_watch *watch,
                     const purge_log::Purge &last);
  static void judge(Pool pool, Pool_watch *watch, uint32_t after_ms);
  static void learn_when(Pool pool, Pool_watch *watch,
                         const purge_log::Purge &purge, uint64_t wanted_bytes,
                         bool whole);
  static void purge_if_due(Pool pool, Pool_watch *watch);
  static void purge(Pool pool, Pool_watch *watch, Purge_reason reason,
                    std::span<const unsigned> only = {});
  static void purge_resting(Pool pool, Pool_watch *watch,
                            const Arenas &resting);

  std::array<Pool_watch, pool_count> m_pools;
  uint32_t m_trimmed_ms_ago{0};
  uint32_t m_running_ms{0};
};

}  // namespace memdiag::purger

#endif  // MEMDIAG_PURGER_H
