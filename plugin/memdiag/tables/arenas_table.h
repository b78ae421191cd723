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
      "its row of MEMDIAG_POOLS, in one statement exactly.",
      0x0100,
      join(
          std::array{
              column<Row, &Row::arena>("ARENA", Unit::none,
                                       "The allocator's number of the arena."),
              text_column<Row, &Row::name>(
                  "NAME", 32,
                  "Its name: the pool and the CPU, such as fts_query.3 (of "
                  "`connection` a number); `auto` for those of `general`."),
              text_column<Row, &Row::pool>("POOL", 64,
                                           "The pool it belongs to."),
              column<Row, &Row::threads>(
                  "THREADS", Unit::count,
                  "Threads whose malloc() is served by it; 0 for those of "
                  "other "
                  "pools than `general` and `connection`."),
              column<Row, &Row::uptime_s>("UPTIME_SECONDS", Unit::seconds,
                                          "How long it has existed."),
              column<Row, &Row::live_bytes>(
                  "LIVE_BYTES", Unit::bytes,
                  "Handed out and not yet freed, rounded up to size classes.")},
          memory_columns<Row>(),
          std::array{
              column<Row, &Row::tcache_bytes>(
                  "TCACHE_BYTES", Unit::bytes,
                  "Free blocks that wait in caches which jemalloc accounts to "
                  "this "
                  "arena: of its threads, and of pools where one of these "
                  "threads "
                  "made the cache; part of LIVE_BYTES of the blocks' own "
                  "arenas."),
              column<Row, &Row::allocations>(
                  "ALLOCATIONS", Unit::count,
                  "Blocks taken from the arena since it was made, by caches "
                  "too."),
              column<Row, &Row::frees>(
                  "FREES", Unit::count,
                  "Blocks given back to it, by caches too."),
              column<Row, &Row::purge_sweeps>(
                  "PURGE_SWEEPS", Unit::count,
                  "How often it was looked through for pages to give back."),
              column<Row, &Row::purge_madvises>(
                  "PURGE_MADVISES", Unit::count,
                  "System calls that this took: the price of purging."),
              column<Row, &Row::dirty_purged_bytes>(
                  "DIRTY_PURGED_BYTES", Unit::bytes,
                  "Dirty pages that ceased to be dirty: given back, or muzzy "
                  "since."),
              column<Row, &Row::muzzy_purged_bytes>("MUZZY_PURGED_BYTES",
                                                    Unit::bytes,
                                                    "Muzzy pages given back.")},
          decay_columns<Row>(
              "How long unused pages stay dirty. -1: for ever."))};
}();

static_assert(fingerprint(arenas_table) == 1109727584,
              "columns changed: raise the table's version, then set this");

}  // namespace memdiag

#endif  // MEMDIAG_ARENAS_TABLE_H
