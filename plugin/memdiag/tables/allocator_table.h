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
      "The server's allocator as a whole, in one row. ALLOCATED_BYTES are part "
      "of ACTIVE_BYTES, and these of RESIDENT_BYTES.",
      0x0100,
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

static_assert(fingerprint(allocator_table) == 748430867,
              "columns changed: raise the table's version, then set this");

}  // namespace memdiag

#endif  // MEMDIAG_ALLOCATOR_TABLE_H
