/*
  The columns of INFORMATION_SCHEMA.MEMDIAG_ALLOCATOR.
*/

#ifndef MEMDIAG_ALLOCATOR_TABLE_H
#define MEMDIAG_ALLOCATOR_TABLE_H

#include "plugin/memdiag/allocator/allocator_snapshot.h"
#include "plugin/memdiag/tables/column.h"

namespace memdiag {

inline constexpr Table allocator_table = [] {
  using Row = Allocator_row;
  return Table{
      "MEMDIAG_ALLOCATOR",
      "The server's allocator as a whole, in one row. From the inside out: "
      "ALLOCATED_BYTES lie in ACTIVE_BYTES, which lie in RESIDENT_BYTES.",
      0x0100,
      std::array{
          column<Row, &Row::allocated_bytes>(
              "ALLOCATED_BYTES", Unit::bytes,
              "Handed out by the allocator and not yet freed, rounded up to "
              "size classes; blocks that wait in threads' caches count too."),
          column<Row, &Row::active_bytes>(
              "ACTIVE_BYTES", Unit::bytes,
              "Pages that hold at least one allocated block."),
          column<Row, &Row::metadata_bytes>(
              "METADATA_BYTES", Unit::bytes,
              "What the allocator needs for its own bookkeeping."),
          column<Row, &Row::resident_bytes>(
              "RESIDENT_BYTES", Unit::bytes,
              "The most that the allocator can have in physical memory: "
              "active and dirty pages and metadata. Pages that were never "
              "touched count although they take no memory."),
          column<Row, &Row::mapped_bytes>(
              "MAPPED_BYTES", Unit::bytes,
              "Address space in use, in active, "
              "dirty and muzzy pages and metadata."),
          column<Row, &Row::retained_bytes>(
              "RETAINED_BYTES", Unit::bytes,
              "Address space without memory, kept to be used again."),
          column<Row, &Row::dirty_bytes>(
              "DIRTY_BYTES", Unit::bytes,
              "Unused pages that still take physical memory: what a purge "
              "gives back."),
          column<Row, &Row::muzzy_bytes>(
              "MUZZY_BYTES", Unit::bytes,
              "Unused pages that the kernel may take when it needs them, and "
              "that it counts as the process's until then. 0 as long as "
              "muzzy_decay_ms is 0."),
          column<Row, &Row::fragmentation_bytes>(
              "FRAGMENTATION_BYTES", Unit::bytes,
              "ACTIVE_BYTES less ALLOCATED_BYTES: gaps within pages in use, "
              "which no purge gives back. NULL when the two were caught "
              "crossing under load."),
          column<Row, &Row::fragmentation_ratio>(
              "FRAGMENTATION_RATIO", Unit::ratio,
              "ACTIVE_BYTES divided by ALLOCATED_BYTES; 1 is perfect. NULL as "
              "FRAGMENTATION_BYTES is."),
          column<Row, &Row::background_thread_enabled>(
              "BACKGROUND_THREAD_ENABLED", Unit::none,
              "Whether the allocator's own threads give unused pages back."),
          column<Row, &Row::background_threads>(
              "BACKGROUND_THREADS", Unit::count, "How many of them run."),
          column<Row, &Row::background_runs>("BACKGROUND_RUNS", Unit::count,
                                             "How often they woke up."),
          column<Row, &Row::background_run_interval_ns>(
              "BACKGROUND_RUN_INTERVAL_NS", Unit::nanoseconds,
              "The average time between two runs."),
          column<Row, &Row::arenas>("ARENAS", Unit::count,
                                    "Rows of MEMDIAG_ARENAS."),
          text_column<Row, &Row::version>("VERSION", 64,
                                          "The version of jemalloc."),
          text_column<Row, &Row::preloaded>(
              "PRELOADED", 256,
              "Other allocators found in the process, by library name, such as "
              "a preloaded tcmalloc; NULL when there is none. They serve "
              "nobody, since the server's own comes first: stop preloading "
              "them."),
          text_column<Row, &Row::profiling>(
              "PROFILING", 16,
              "State of jemalloc's heap profiler: not compiled, compiled (but "
              "not enabled at start), enabled (but not sampling), active."),
          text_column<Row, &Row::options>(
              "OPTIONS", 1024,
              "The allocator's options as they were in force at start, in the "
              "form of the environment variable MALLOC_CONF.")}};
}();

static_assert(fingerprint(allocator_table) == 748430867,
              "columns changed: raise the table's version, then set this");

}  // namespace memdiag

#endif  // MEMDIAG_ALLOCATOR_TABLE_H
