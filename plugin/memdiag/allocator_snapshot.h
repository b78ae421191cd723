/*
  Collector: what jemalloc and the pool layer say about memory, copied at one
  moment into plain structs that the tables, the status variables and the
  reference page are made from.

  All figures of a snapshot come from one refresh of jemalloc's statistics, so
  the arenas add up to the pools and the pools to the totals. A refresh adds up
  counter after counter while other threads go on, so different figures of one
  arena (active and allocated, say) are apart by what happens meanwhile. The
  pool layer's own counters (peaks, purges, fallbacks) are read right after it.

  Errors: a control that cannot be read leaves its member empty and is listed in
  `failed`; nothing is ever 0 because a read failed. A sum over arenas is empty
  when one of its parts is.
  Threads: take_snapshot() may be called from any thread at any time; snapshots
  are taken one after the other. Nothing of the pools is allocated.
  Ownership: the snapshot is the caller's, a copy of everything.
  Units: as the names say; pages are multiplied out to bytes.
*/

#ifndef MEMDIAG_ALLOCATOR_SNAPSHOT_H
#define MEMDIAG_ALLOCATOR_SNAPSHOT_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "column.h"
#include "memdiag_mallctl.h"
#include "memdiag_pools.h"

namespace memdiag {

using Reading = std::optional<uint64_t>;

/** The process as a whole: one row of MEMDIAG_ALLOCATOR. */
struct Allocator_row {
  Reading allocated_bytes;
  Reading active_bytes;
  Reading metadata_bytes;
  Reading resident_bytes;
  Reading mapped_bytes;
  Reading retained_bytes;
  Reading dirty_bytes;
  Reading muzzy_bytes;
  Reading fragmentation_bytes;
  std::optional<double> fragmentation_ratio;
  std::optional<bool> background_thread_enabled;
  Reading background_threads;
  Reading background_runs;
  Reading background_run_interval_ns;
  Reading arenas;
  std::optional<std::string> version;
  std::optional<std::string> preloaded;
  std::optional<std::string> profiling;
  std::optional<std::string> options;
};

/** What jemalloc knows of an arena, and what is added up for a pool. */
struct Arena_figures {
  Reading live_bytes;
  Reading active_bytes;
  Reading dirty_bytes;
  Reading muzzy_bytes;
  Reading resident_bytes;
  Reading mapped_bytes;
  Reading retained_bytes;
  Reading metadata_bytes;
  Reading tcache_bytes;
  Reading allocations;
  Reading frees;
  Reading purge_sweeps;
  Reading purge_madvises;
  Reading dirty_purged_bytes;
  Reading muzzy_purged_bytes;
};

/** One row of MEMDIAG_POOLS. */
struct Pool_row : Arena_figures {
  const char *name;
  const char *purpose;
  const char *lifetime;
  Reading arenas;
  Reading peak_bytes;
  std::optional<Timestamp> peak_time;
  Reading fallbacks;
  uint64_t purges;
  uint64_t purged_bytes;
  uint64_t purge_us;
  uint64_t refaulted_bytes;
  uint64_t backoff;
  uint64_t quiet_ms;
  Reading dirty_limit_bytes;
  std::optional<int64_t> dirty_decay_ms;
  std::optional<int64_t> muzzy_decay_ms;
};

/** One row of MEMDIAG_ARENAS. */
struct Arena_row : Arena_figures {
  uint64_t arena;
  std::optional<std::string> name;
  const char *pool;
  Reading threads;
  Reading uptime_s;
  std::optional<int64_t> dirty_decay_ms;
  std::optional<int64_t> muzzy_decay_ms;
};

/** A control that could not be read. */
struct Failed_read {
  Ctl ctl;
  /** The errno of the first failure. */
  int error;
  /** How often it failed: once for each arena, where it is an arena's. */
  unsigned times;
};

struct Snapshot {
  Allocator_row allocator;
  std::vector<Arena_row> arenas;
  std::array<Pool_row, pool_count> pools;
  std::vector<Failed_read> failed;
  /** Other threads refreshed jemalloc's statistics again and again while they
  were read: the figures are right one by one, but not of one moment. */
  bool mixed_moments;
};

/** Take one. @throws std::bad_alloc */
Snapshot take_snapshot();

/** The rows that a table with rows of this type shows. */
template <typename Row>
std::span<const Row> rows_of(const Snapshot &snapshot) {
  if constexpr (std::is_same_v<Row, Allocator_row>)
    return {&snapshot.allocator, 1};
  else if constexpr (std::is_same_v<Row, Pool_row>)
    return snapshot.pools;
  else
    return snapshot.arenas;
}

/** Treat a control as unreadable from now on (EIO), to test what a failed read
looks like. Ctl::count ends it. */
void fail_reads_for_test(Ctl ctl);

}  // namespace memdiag

#endif  // MEMDIAG_ALLOCATOR_SNAPSHOT_H
