/*
  The columns of INFORMATION_SCHEMA.MEMDIAG_POOLS.
*/

#ifndef MEMDIAG_POOLS_TABLE_H
#define MEMDIAG_POOLS_TABLE_H

#include "plugin/memdiag/allocator/allocator_snapshot.h"
#include "plugin/memdiag/tables/column.h"
#include "plugin/memdiag/tables/shared_columns.h"

namespace memdiag {

inline constexpr Table pools_table = [] {
  using Row = Pool_row;
  return Table{
      "MEMDIAG_POOLS",
      "One row for each pool: memory of one purpose, in arenas of its own. The "
      "pool `general` has everything else. `general`, `connection` and "
      "`group_replication` are malloc(), the last two for their threads. "
      "Blocks of these three are not counted one by one. Each column of bytes "
      "adds up to its "
      "column in MEMDIAG_ALLOCATOR, exactly within one statement; LIVE_BYTES "
      "and CACHED_BYTES together add up to ALLOCATED_BYTES.",
      0x0102,
      join(
          std::array{
              text_column<Row, &Row::name>("POOL", 64, "The pool's name."),
              text_column<Row, &Row::purpose>("PURPOSE", 256,
                                              "The use of the memory."),
              text_column<Row, &Row::lifetime>(
                  "LIFETIME", 16,
                  "The end of a block's life: server, cache, session, "
                  "transaction or statement."),
              column<Row, &Row::arenas>(
                  "ARENAS", Unit::count,
                  "Arenas that the pool has made. It makes one when a CPU "
                  "first uses it, and more when a thread finds that CPU's "
                  "arena taken, up to a limit. `connection` and "
                  "`group_replication` make theirs for their threads."),
              column<Row, &Row::held_bytes>(
                  "LIVE_BYTES", Unit::bytes,
                  "Allocated and not yet freed, rounded up to size classes. "
                  "malloc()'s pools: with the blocks in threads' caches."),
              column<Row, &Row::cached_bytes>(
                  "CACHED_BYTES", Unit::bytes,
                  "Free blocks that wait in the pool's caches for reuse. NULL "
                  "for malloc()'s pools: TCACHE_BYTES of MEMDIAG_ARENAS has "
                  "them.")},
          memory_columns<Row>(),
          std::array{
              column<Row, &Row::peak_bytes>(
                  "PEAK_BYTES", Unit::bytes,
                  "Highest LIVE_BYTES since the server started. The purger "
                  "looks ten times a second while the pool is in use and "
                  "misses shorter peaks. NULL for malloc()'s pools."),
              column<Row, &Row::peak_time>(
                  "PEAK_TIME", Unit::none,
                  "The time of that peak. NULL for malloc()'s pools, and for a "
                  "pool that was never used."),
              column<Row, &Row::allocations>(
                  "ALLOCATIONS", Unit::count,
                  "Blocks taken from the pool's arenas since the server "
                  "started. A cache takes several small blocks at once; each "
                  "counts when it enters the cache."),
              column<Row, &Row::frees>(
                  "FREES", Unit::count,
                  "Blocks returned to the arenas. A cached block counts when "
                  "it leaves the cache."),
              column<Row, &Row::fallbacks>(
                  "FALLBACKS", Unit::count,
                  "Blocks that malloc() served because the pool could not. "
                  "NULL for malloc()'s pools."),
              column<Row, &Row::purges>("PURGES", Unit::count,
                                        "Purges of the whole pool, for any "
                                        "REASON of MEMDIAG_PURGES."),
              column<Row, &Row::purged_bytes>(
                  "PURGED_BYTES", Unit::bytes,
                  "Bytes that these purges released: RELEASED_BYTES of "
                  "MEMDIAG_PURGES."),
              column<Row, &Row::purge_us>("PURGE_MICROSECONDS",
                                          Unit::microseconds,
                                          "Total duration of these purges."),
              column<Row, &Row::refaulted_bytes>(
                  "REFAULTED_BYTES", Unit::bytes,
                  "Bytes that the pool allocated again within a second of a "
                  "purge with REASON quiet, excess or dirty_limit. Purges that "
                  "released less than 1 MiB do not count. Together with the "
                  "duration this is the price of purging."),
              column<Row, &Row::dirty_purged_bytes>(
                  "DIRTY_PURGED_BYTES", Unit::bytes,
                  "Dirty pages that PURGES and the allocator's own decay have "
                  "released since the server started, or made muzzy."),
              column<Row, &Row::quiet_ms>(
                  "QUIET_MS", Unit::milliseconds,
                  "A burst has ended when no more than 64 KiB were allocated "
                  "or freed in "
                  "any 100 ms of this time. The pool is then purged, if more "
                  "than 1 MiB were allocated or freed since its last purge. 0: "
                  "the pool "
                  "is left to decay. Set by memdiag_quiet_ms."),
              column<Row, &Row::backoff>(
                  "BACKOFF", Unit::count,
                  "The pool is quiet for this many times QUIET_MS before it is "
                  "purged. More than 1: purged pages were soon needed again."),
              column<Row, &Row::dirty_limit_bytes>(
                  "DIRTY_LIMIT_BYTES", Unit::bytes,
                  "Dirty bytes above which the pool is purged during a burst. "
                  "NULL: no limit. Set by memdiag_dirty_limit.")},
          decay_columns<Row>(
              "How long unused pages stay dirty, as in force in the pool's "
              "first "
              "arena. -1: for ever. NULL: the pool has no arena yet."))};
}();

static_assert(fingerprint(pools_table) == 2954949816u,
              "columns changed: raise the table's version, then set this");

}  // namespace memdiag

#endif  // MEMDIAG_POOLS_TABLE_H
