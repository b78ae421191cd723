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
      "One row for each pool: memory of one purpose in arenas of its own. The "
      "pool `general` is everything else; with it, every column of bytes adds "
      "up to the one of MEMDIAG_ALLOCATOR, in one statement exactly.",
      0x0101,
      join(
          std::array{
              text_column<Row, &Row::name>("POOL", 64, "The pool's name."),
              text_column<Row, &Row::purpose>("PURPOSE", 256,
                                              "What the memory is used for."),
              text_column<Row, &Row::lifetime>(
                  "LIFETIME", 16,
                  "What ends the life of a block: server, cache, session, "
                  "transaction or statement."),
              column<Row, &Row::arenas>(
                  "ARENAS", Unit::count,
                  "Arenas the pool has; one for each CPU that has used it, of "
                  "`connection` one for each there is."),
              column<Row, &Row::live_bytes>(
                  "LIVE_BYTES", Unit::bytes,
                  "Handed out and not yet freed, rounded up to size classes. "
                  "Of "
                  "`general` and `connection`, blocks that wait in threads' "
                  "caches "
                  "count too.")},
          memory_columns<Row>(),
          std::array{
              column<Row, &Row::peak_bytes>(
                  "PEAK_BYTES", Unit::bytes,
                  "The highest number of live bytes since the server started, "
                  "looked at ten times a second while the pool is in use; "
                  "shorter "
                  "peaks are missed. NULL for `general` and `connection`."),
              column<Row, &Row::peak_time>("PEAK_TIME", Unit::none,
                                           "When that was; NULL for `general` "
                                           "and `connection`, and for a "
                                           "pool that was never used."),
              column<Row, &Row::allocations>(
                  "ALLOCATIONS", Unit::count,
                  "Blocks taken from the pool's arenas since the server "
                  "started. "
                  "Of `general` and `connection`, a thread's cache takes "
                  "several "
                  "small blocks at once, and each counts when it enters the "
                  "cache."),
              column<Row, &Row::frees>("FREES", Unit::count,
                                       "Blocks given back to the arenas; of "
                                       "`general` and `connection`, "
                                       "when they leave a thread's cache."),
              column<Row, &Row::fallbacks>("FALLBACKS", Unit::count,
                                           "Blocks that malloc() served "
                                           "because the pool could not; NULL "
                                           "for `general` and `connection`."),
              column<Row, &Row::purges>(
                  "PURGES", Unit::count,
                  "Purges of the whole pool: at the end of a burst, or by "
                  "memdiag_purge()."),
              column<Row, &Row::purged_bytes>(
                  "PURGED_BYTES", Unit::bytes,
                  "What those purges gave back: resident bytes before, less "
                  "resident bytes after."),
              column<Row, &Row::purge_us>(
                  "PURGE_MICROSECONDS", Unit::microseconds,
                  "How long those purges took together."),
              column<Row, &Row::refaulted_bytes>(
                  "REFAULTED_BYTES", Unit::bytes,
                  "What of PURGED_BYTES was given back by itself and had to be "
                  "taken again within a second: the price of purging, beside "
                  "the "
                  "time."),
              column<Row, &Row::dirty_purged_bytes>(
                  "DIRTY_PURGED_BYTES", Unit::bytes,
                  "Dirty pages that ceased to be dirty by any purge since the "
                  "server started: those of PURGES and the allocator's own "
                  "decay "
                  "together."),
              column<Row, &Row::quiet_ms>(
                  "QUIET_MS", Unit::milliseconds,
                  "A burst has ended when no block came or went for this long; "
                  "the pool is then purged. 0: left to decay alone. Set by "
                  "memdiag_quiet_ms."),
              column<Row, &Row::backoff>(
                  "BACKOFF", Unit::count,
                  "How many times QUIET_MS the pool waits now: 1, or more "
                  "where "
                  "pages given back were taken again at once."),
              column<Row, &Row::dirty_limit_bytes>(
                  "DIRTY_LIMIT_BYTES", Unit::bytes,
                  "Dirty bytes above which the pool is purged in the midst of "
                  "a "
                  "burst; NULL: no limit. Set by memdiag_dirty_limit.")},
          decay_columns<Row>(
              "How long unused pages stay dirty, as in force in the pool's "
              "first "
              "arena. -1: for ever. NULL: the pool has no arena yet."))};
}();

static_assert(fingerprint(pools_table) == 990344711,
              "columns changed: raise the table's version, then set this");

}  // namespace memdiag

#endif  // MEMDIAG_POOLS_TABLE_H
