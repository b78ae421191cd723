/*
  Collector: the figures of jemalloc and of the pool layer at one moment, in
  plain structs. Tables, status variables and the reference page are made from
  these structs.

  All figures of a snapshot come from one refresh of jemalloc's statistics, so
  arenas add up to pools and pools to totals. A refresh adds up counter after
  counter while other threads go on, so two figures of one arena (active and
  allocated, say) can differ by what changes in between. The pool layer's own
  counters (peaks, purges, fallbacks) are read right after the refresh. Figures
  that take many reads (size_classes.h) are in a snapshot only on request, and
  come from the same refresh.

  Errors: a control that cannot be read leaves its member empty and is listed in
  `failed`; no figure is 0 because a read failed. A sum over arenas is empty
  when one of its parts is.
  Threads: take_snapshot() may be called from any thread at any time; snapshots
  are taken one after the other. Nothing is allocated from a pool.
  Ownership: a snapshot is a copy of everything.
  Units: as in the names; pages are converted to bytes.
*/

#ifndef MEMDIAG_ALLOCATOR_SNAPSHOT_H
#define MEMDIAG_ALLOCATOR_SNAPSHOT_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "mysys/memdiag/pools/pools.h"
#include "plugin/memdiag/allocator/control_reader.h"
#include "plugin/memdiag/allocator/size_classes.h"
#include "plugin/memdiag/base/reading.h"

namespace memdiag {

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
  /** As other_allocators() (preload.h), but empty where there is none. */
  std::optional<std::string> preloaded;
  std::optional<std::string> profiling;
  std::optional<std::string> options;
  /** opt.thp, the huge pages that the allocator asks the kernel for: default,
  always, never; or "not supported". The machine has a setting of its own. */
  std::optional<std::string> huge_pages;
};

/** jemalloc's statistics of an arena, or their sums over a pool's arenas. */
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
  /** live_bytes is jemalloc's figure. It is the sum of held_bytes, the blocks
  that the pool's users hold as the layer counts them, and of cached_bytes,
  those that wait in the pool's caches. For pools that use malloc(), whose
  caches belong to threads, held_bytes is live_bytes, and cached_bytes,
  peak_bytes and fallbacks are empty. */
  Reading held_bytes;
  Reading cached_bytes;
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
struct Arena_row : Arena_id, Arena_figures {
  std::optional<std::string> name;
  Reading threads;
  Reading uptime_s;
  std::optional<int64_t> dirty_decay_ms;
  std::optional<int64_t> muzzy_decay_ms;
};

/** A set of the kinds of rows that are read only on request. */
using Details = unsigned;

/** The set with one kind of rows; 0: these rows are always read. */
template <typename Row>
constexpr Details detail_of = std::is_same_v<Row, Bin_row>       ? 1
                              : std::is_same_v<Row, Large_row>   ? 2
                              : std::is_same_v<Row, Extents_row> ? 4
                                                                 : 0;

struct Snapshot {
  Allocator_row allocator;
  std::vector<Arena_row> arenas;
  std::array<Pool_row, pool_count> pools;
  /** The kinds of rows that were requested; the others of the next three are
  empty. */
  Details details;
  std::vector<Bin_row> bins;
  std::vector<Large_row> large;
  std::vector<Extents_row> extents;
  std::vector<Failed_read> failed;
  /** Other threads refreshed jemalloc's statistics during each attempt to read
  them: each figure is right, but they are of different moments. */
  bool mixed_moments;
};

/** Waits while other threads take theirs. Inside an Interruptible that ends the
read (interruption.h) it neither waits nor reads on. Throw that snapshot away:
its sums may be of some arenas only, and its counters of purges 0.
@throws std::bad_alloc */
Snapshot take_snapshot(Details details = 0);

/** Takes one without details, unless another thread is taking one: nothing is
waited for but jemalloc's own mutexes. @throws std::bad_alloc */
std::optional<Snapshot> try_take_snapshot();

/** The totals and the pools of the snapshot that any thread took last; the
sampler takes one each second by default, or each ten while the server rests.
Without the sampler it may be of any age. nullptr: none was taken yet. */
std::shared_ptr<const Snapshot> last_snapshot();

/** The snapshot's rows of a type. */
template <typename Row>
std::span<const Row> rows_of(const Snapshot &snapshot) {
  if constexpr (std::is_same_v<Row, Allocator_row>)
    return {&snapshot.allocator, 1};
  else if constexpr (std::is_same_v<Row, Pool_row>)
    return snapshot.pools;
  else if constexpr (std::is_same_v<Row, Bin_row>)
    return snapshot.bins;
  else if constexpr (std::is_same_v<Row, Large_row>)
    return snapshot.large;
  else if constexpr (std::is_same_v<Row, Extents_row>)
    return snapshot.extents;
  else
    return snapshot.arenas;
}

}  // namespace memdiag

#endif  // MEMDIAG_ALLOCATOR_SNAPSHOT_H
