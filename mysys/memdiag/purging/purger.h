/*
  The layer's own thread, the purger. It watches the pools, dates their peaks,
  and gives a pool's unused pages back, so that no query pays for it:
  - once the pool has fallen quiet (Policy::quiet_ms);
  - once some arenas of a busy pool rest: each needed less than half of its
  dirty pages for as long, and together they have at least 8 MB of these. A
  burst is over, and a steady load goes on. Only these arenas are purged,
  because pages of one arena do not serve another;
  - once the pool has more of them than it may (Policy::dirty_limit).
  It learns from what purging costs. A second after a purge it counts the pages
  that the purged arenas have taken again. If these are most of what a quiet
  pool gave back, it gets a back-off, and quiet_ms is multiplied by it. An arena
  of a busy pool keeps for a minute what it took again. If the arenas of a purge
  took most of it again, threads wander from arena to arena: the pool then keeps
  as many unused pages as it has with these, first for a minute, then for up to
  16, and no more than it had at any time within ten seconds. Pages beyond,
  which a burst leaves behind, go back as before.

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
    that. UINT32_MAX: it never was. */
    uint32_t purged_ms_ago{UINT32_MAX};
    uint64_t purged_bytes{0};
    /** The bytes that this purge gave back, and the pool's unused bytes before
    it. */
    uint64_t given_back_bytes{0};
    uint64_t unused_in_pool_bytes{0};
    /** What it took again within a second. */
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
    /** A busy pool keeps so many unused bytes, and for how long yet. */
    uint64_t kept_bytes{0};
    uint32_t kept_ms_left{0};
    /** For how long at first, the last time that it kept any; less once a try
    was right. */
    uint32_t kept_ms{0};
    /** The most unused bytes that it had in the present window, and the length
    so far of that. */
    uint64_t most_unused_bytes{0};
    uint32_t window_ms{0};
    /** A quiet pool is purged once so much has come and gone. */
    uint64_t quiet_worth_bytes;
    /** By slot. */
    std::array<Of_arena, pools::max_slots> arenas{};
  };
  struct Resting {
    unsigned arena;
    unsigned slot;
    uint64_t dirty_bytes;
  };
  struct Arenas {
    std::array<Resting, pools::max_slots> resting;
    size_t count;
    /** All arenas of the pool have so many. */
    uint64_t unused_bytes;
  };

  static Arenas resting_arenas(Pool pool, Pool_watch *watch, uint64_t quiet_ms);
  static void keep_if_wanted(Pool_watch *watch, uint64_t given_back_bytes,
                             uint64_t taken_bytes, uint64_t unused_bytes);
  static void keep_no_more_than_it_has(Pool_watch *watch,
                                       uint64_t unused_bytes);
  static void leave_what_is_kept(const Pool_watch &watch, Arenas *arenas);
  static void judge(Pool pool, Pool_watch *watch, uint32_t after_ms);
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
