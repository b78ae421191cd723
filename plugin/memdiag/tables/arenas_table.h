/*
  The columns of INFORMATION_SCHEMA.MEMDIAG_ARENAS.
*/

#ifndef MEMDIAG_ARENAS_TABLE_H
#define MEMDIAG_ARENAS_TABLE_H

#include "plugin/memdiag/allocator/allocator_snapshot.h"
#include "plugin/memdiag/tables/column.h"
#include "plugin/memdiag/tables/shared_columns.h"

namespace memdiag {

inline constexpr Table arenas_table = [] {
  using Row = Arena_row;
  return Table{
      "MEMDIAG_ARENAS",
      "One row for each arena of the allocator. The arenas of a pool add up to "
      "its row in MEMDIAG_POOLS, exactly within one statement; LIVE_BYTES here "
      "include the blocks in caches.",
      0x0100,
      join(
          std::array{
              column<Row, &Row::arena>("ARENA", Unit::none,
                                       "jemalloc's arena number."),
              text_column<Row, &Row::name>(
                  "NAME", 32,
                  "The pool and a number, such as fts_query.3. Arenas of "
                  "`general`: auto_ and the arena's number, or auto_oversize "
                  "for blocks above 8 MiB."),
              text_column<Row, &Row::pool>("POOL", 64, "The arena's pool."),
              column<Row, &Row::threads>(
                  "THREADS", Unit::count,
                  "Threads whose malloc() uses the arena. 0 in other pools "
                  "than `general`, `connection` and `group_replication`."),
              column<Row, &Row::uptime_s>("UPTIME_SECONDS", Unit::seconds,
                                          "Age of the arena."),
              column<Row, &Row::live_bytes>(
                  "LIVE_BYTES", Unit::bytes,
                  "Allocated and not yet freed, rounded up to size classes. "
                  "Blocks in caches count too.")},
          memory_columns<Row>(),
          std::array{
              column<Row, &Row::tcache_bytes>(
                  "TCACHE_BYTES", Unit::bytes,
                  "Free blocks in the caches that jemalloc associates with "
                  "this arena: those of its threads, and pools' caches that "
                  "one of these threads created. LIVE_BYTES of the blocks' own "
                  "arenas include them."),
              column<Row, &Row::allocations>(
                  "ALLOCATIONS", Unit::count,
                  "Blocks taken from the arena since it was created, also by "
                  "caches."),
              column<Row, &Row::frees>(
                  "FREES", Unit::count,
                  "Blocks returned to it, also by caches."),
              column<Row, &Row::purge_sweeps>(
                  "PURGE_SWEEPS", Unit::count,
                  "Times that the arena was searched for pages to release."),
              column<Row, &Row::purge_madvises>(
                  "PURGE_MADVISES", Unit::count,
                  "System calls of these sweeps: the price of purging."),
              column<Row, &Row::dirty_purged_bytes>(
                  "DIRTY_PURGED_BYTES", Unit::bytes,
                  "Dirty pages that were released or became muzzy."),
              column<Row, &Row::muzzy_purged_bytes>(
                  "MUZZY_PURGED_BYTES", Unit::bytes,
                  "Muzzy pages that were released.")},
          decay_columns<Row>(
              "How long unused pages stay dirty. -1: for ever."))};
}();

static_assert(fingerprint(arenas_table) == 1109727584,
              "columns changed: raise the table's version, then set this");

}  // namespace memdiag

#endif  // MEMDIAG_ARENAS_TABLE_H
