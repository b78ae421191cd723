/*
  The tables of the allocator: as a whole, by pool, arena and size class.
*/

#ifndef MEMDIAG_ALLOCATOR_TABLES_H
#define MEMDIAG_ALLOCATOR_TABLES_H

#include <array>
#include <cstddef>

#include "plugin/memdiag/allocator/allocator_snapshot.h"
#include "plugin/memdiag/allocator/size_class_rows.h"
#include "plugin/memdiag/tables/column.h"

namespace memdiag {

/** The columns of each array, one array after the other. */
template <typename Row, size_t... sizes>
constexpr auto join(const std::array<Column<Row>, sizes> &...parts) {
  std::array<Column<Row>, (sizes + ...)> all{};
  size_t next = 0;
  const auto append = [&](const auto &part) {
    for (const Column<Row> &column : part) all[next++] = column;
  };
  (append(parts), ...);
  return all;
}

/** The arena that a row is about. */
template <typename Row>
constexpr auto arena_columns() {
  return std::array{
      column<Row, &Row::arena>("ARENA", Unit::none, "jemalloc's arena number."),
      text_column<Row, &Row::pool>("POOL", 64, "The arena's pool.")};
}

/** The memory of an arena, or of all arenas of a pool, but for live bytes. */
template <typename Row>
constexpr auto memory_columns() {
  return std::array{
      column<Row, &Row::active_bytes>(
          "ACTIVE_BYTES", Unit::bytes,
          "Pages that hold at least one allocated block."),
      column<Row, &Row::dirty_bytes>(
          "DIRTY_BYTES", Unit::bytes,
          "Unused pages that were not given back. A page that was never "
          "written takes no physical memory and counts as well: "
          "MEMDIAG_LEDGER counts pages in physical memory only."),
      column<Row, &Row::muzzy_bytes>(
          "MUZZY_BYTES", Unit::bytes,
          "Unused pages that the kernel may take when it needs them."),
      column<Row, &Row::resident_bytes>(
          "RESIDENT_BYTES", Unit::bytes,
          "Upper bound of the physical memory: active and dirty pages and "
          "metadata."),
      column<Row, &Row::metadata_bytes>("METADATA_BYTES", Unit::bytes,
                                        "The allocator's bookkeeping."),
      column<Row, &Row::mapped_bytes>(
          "MAPPED_BYTES", Unit::bytes,
          "Address space of active, dirty and muzzy pages and of metadata."),
      column<Row, &Row::retained_bytes>(
          "RETAINED_BYTES", Unit::bytes,
          "Address space without memory, kept for reuse.")};
}

/** jemalloc's decay times in force. */
template <typename Row>
constexpr auto decay_columns(const char *dirty_comment) {
  return std::array{
      column<Row, &Row::dirty_decay_ms>("DIRTY_DECAY_MS", Unit::milliseconds,
                                        dirty_comment),
      column<Row, &Row::muzzy_decay_ms>("MUZZY_DECAY_MS", Unit::milliseconds,
                                        "How long unused pages then stay "
                                        "muzzy. 0: dirty pages go straight to "
                                        "the OS.")};
}

inline constexpr Table allocator_table = [] {
  using Row = Allocator_row;
  return Table{
      "MEMDIAG_ALLOCATOR",
      "The server's allocator as a whole, in one row. ALLOCATED_BYTES are part "
      "of ACTIVE_BYTES, and these of RESIDENT_BYTES.",
      0x0100, 748430867u,
      std::array{
          column<Row, &Row::allocated_bytes>(
              "ALLOCATED_BYTES", Unit::bytes,
              "Allocated and not yet freed, rounded up to size classes. Blocks "
              "in caches count too."),
          column<Row, &Row::active_bytes>(
              "ACTIVE_BYTES", Unit::bytes,
              "Pages that hold at least one allocated block."),
          column<Row, &Row::metadata_bytes>("METADATA_BYTES", Unit::bytes,
                                            "The allocator's bookkeeping."),
          column<Row, &Row::resident_bytes>(
              "RESIDENT_BYTES", Unit::bytes,
              "Upper bound of the physical memory: active and dirty pages and "
              "metadata. Pages that were never written count, although they "
              "take no physical memory."),
          column<Row, &Row::mapped_bytes>("MAPPED_BYTES", Unit::bytes,
                                          "Address space of active, dirty and "
                                          "muzzy pages and of metadata."),
          column<Row, &Row::retained_bytes>(
              "RETAINED_BYTES", Unit::bytes,
              "Address space without memory, kept for reuse."),
          column<Row, &Row::dirty_bytes>(
              "DIRTY_BYTES", Unit::bytes,
              "Unused pages that were not given back. A page that was never "
              "written takes no physical memory and counts as well: "
              "MEMDIAG_LEDGER counts pages in physical memory only. A purge "
              "releases dirty pages."),
          column<Row, &Row::muzzy_bytes>(
              "MUZZY_BYTES", Unit::bytes,
              "Unused pages that the kernel may take when it needs them; RSS "
              "includes them until then. 0 while muzzy_decay_ms is 0."),
          column<Row, &Row::fragmentation_bytes>(
              "FRAGMENTATION_BYTES", Unit::bytes,
              "ACTIVE_BYTES minus ALLOCATED_BYTES: gaps within pages in use, "
              "which no purge releases. NULL: the two figures crossed under "
              "load."),
          column<Row, &Row::fragmentation_ratio>(
              "FRAGMENTATION_RATIO", Unit::ratio,
              "ACTIVE_BYTES divided by ALLOCATED_BYTES; 1 is perfect. NULL "
              "where FRAGMENTATION_BYTES is."),
          column<Row, &Row::background_thread_enabled>(
              "BACKGROUND_THREAD_ENABLED", Unit::none,
              "YES: the allocator's own threads release unused pages."),
          column<Row, &Row::background_threads>("BACKGROUND_THREADS",
                                                Unit::count,
                                                "Background threads that run."),
          column<Row, &Row::background_runs>("BACKGROUND_RUNS", Unit::count,
                                             "Times that they woke up."),
          column<Row, &Row::background_run_interval_ns>(
              "BACKGROUND_RUN_INTERVAL_NS", Unit::nanoseconds,
              "Average time between two runs."),
          column<Row, &Row::arenas>("ARENAS", Unit::count,
                                    "Rows of MEMDIAG_ARENAS."),
          text_column<Row, &Row::version>("VERSION", 64,
                                          "The version of jemalloc."),
          text_column<Row, &Row::preloaded>(
              "PRELOADED", 256,
              "Other allocators in the process, by library name, such as a "
              "preloaded tcmalloc. They serve no allocation, because the "
              "server's own allocator comes first; remove them from "
              "LD_PRELOAD. NULL: there is none."),
          text_column<Row, &Row::profiling>(
              "PROFILING", 16,
              "State of jemalloc's heap profiler: not compiled, compiled (not "
              "enabled at start), enabled (not sampling), active."),
          text_column<Row, &Row::options>(
              "OPTIONS", 1024,
              "The allocator's options as in force at start, in the form of "
              "MALLOC_CONF.")}};
}();

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
      0x0102, 2954949816u,
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
                  "or freed in any 100 ms of this time. The pool is then "
                  "purged, if more than 1 MiB were allocated or freed since "
                  "its last purge. 0: the pool is left to decay. Set by "
                  "memdiag_quiet_ms."),
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
              "first arena. -1: for ever. NULL: the pool has no arena yet."))};
}();

inline constexpr Table arenas_table = [] {
  using Row = Arena_row;
  return Table{
      "MEMDIAG_ARENAS",
      "One row for each arena of the allocator. The arenas of a pool add up to "
      "its row in MEMDIAG_POOLS, exactly within one statement; LIVE_BYTES here "
      "include the blocks in caches.",
      0x0100, 1109727584u,
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

inline constexpr Table size_classes_table = [] {
  using Row = Size_class_row;
  return Table{
      "MEMDIAG_SIZE_CLASSES",
      "One row for each size class of blocks, and of unused extents (runs of "
      "pages), in each arena. Classes that an arena never used, and those "
      "without extents of the kind, have no row. BYTES of small and large add "
      "up to LIVE_BYTES of MEMDIAG_ARENAS, exactly within one statement; those "
      "of extents to DIRTY_BYTES, MUZZY_BYTES and RETAINED_BYTES, but for "
      "extents that were made or freed while the allocator was counting.",
      0x0100, 3046776471u,
      join(
          arena_columns<Row>(),
          std::array{
              text_column<Row, &Row::kind>(
                  "KIND", 8,
                  "small: blocks in slabs. large: blocks with pages of their "
                  "own. dirty: extents that were not given back. muzzy: "
                  "extents that the kernel may take when it needs them. "
                  "retained: extents of address space without memory."),
              column<Row, &Row::min_size>(
                  "MIN_SIZE", Unit::bytes,
                  "Smallest size of a block or an extent. Blocks are rounded "
                  "up: small ones to MAX_SIZE, large ones to pages."),
              column<Row, &Row::max_size>("MAX_SIZE", Unit::bytes,
                                          "Largest size of one."),
              column<Row, &Row::blocks>(
                  "BLOCKS", Unit::count,
                  "Blocks that were allocated and not yet freed, those in "
                  "caches too; or extents."),
              column<Row, &Row::bytes>(
                  "BYTES", Unit::bytes,
                  "Their size, between BLOCKS times MIN_SIZE and BLOCKS times "
                  "MAX_SIZE. large: the allocator counts the bytes of all "
                  "large blocks of an arena together; this exact sum is "
                  "divided among the classes."),
              column<Row, &Row::allocations>(
                  "ALLOCATIONS", Unit::count,
                  "Blocks taken from the arena since the server started. A "
                  "cache takes several small ones at once. A small block that "
                  "the heap profiler samples lies in no slab but on pages of "
                  "its own. jemalloc counts it here and in FREES, in the small "
                  "class of its size rounded up to whole pages, and not in "
                  "BLOCKS. NULL here and in all columns below: extents."),
              column<Row, &Row::frees>("FREES", Unit::count,
                                       "Blocks returned to the arena."),
              column<Row, &Row::requests>(
                  "REQUESTS", Unit::count,
                  "Requested blocks. A block from a cache counts when the "
                  "cache is next flushed, a small one also when it is filled. "
                  "Flushes of a pool's cache count in an arena of the pool "
                  "`general`."),
              column<Row, &Row::slab_bytes>(
                  "SLAB_BYTES", Unit::bytes,
                  "Pages that the class takes at once and divides into blocks. "
                  "NULL here and in all columns below: not small."),
              column<Row, &Row::blocks_per_slab>("BLOCKS_PER_SLAB", Unit::count,
                                                 "Blocks in a slab."),
              column<Row, &Row::slabs>("SLABS", Unit::count, "Slabs now."),
              column<Row, &Row::nonfull_slabs>(
                  "NONFULL_SLABS", Unit::count,
                  "Slabs with free blocks, without those being filled. Many of "
                  "them mean fragmentation."),
              column<Row, &Row::capacity_blocks>(
                  "CAPACITY_BLOCKS", Unit::count,
                  "SLABS times BLOCKS_PER_SLAB."),
              column<Row, &Row::utilisation>(
                  "UTILISATION", Unit::ratio,
                  "BLOCKS divided by CAPACITY_BLOCKS. NULL: there are no "
                  "slabs."),
              column<Row, &Row::waste_bytes>(
                  "WASTE_BYTES", Unit::bytes,
                  "Bytes of the slabs minus BYTES. Only blocks of this class "
                  "and arena can use them."),
              column<Row, &Row::fills>("FILLS", Unit::count,
                                       "Times that a cache was filled."),
              column<Row, &Row::flushes>(
                  "FLUSHES", Unit::count,
                  "Times that a cache was emptied, completely or in part; of a "
                  "pool's cache in an arena of the pool `general`.")})};
}();

}  // namespace memdiag

#endif  // MEMDIAG_ALLOCATOR_TABLES_H
