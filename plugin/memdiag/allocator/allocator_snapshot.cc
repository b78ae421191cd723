#include "plugin/memdiag/allocator/allocator_snapshot.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <iterator>
#include <mutex>
#include <string_view>
#include <utility>

#include "mysys/memdiag/base/interruption.h"
#include "mysys/memdiag/ceiling/sensor.h"
#include "mysys/memdiag/pools/arenas.h"
#include "mysys/memdiag/purging/policies.h"
#include "mysys/memdiag/purging/purge.h"
#include "plugin/memdiag/allocator/preload.h"

namespace memdiag {
namespace {

/** Attempts to read everything between two refreshes of other threads, which
are rare: a change of decay times refreshes (pools/arenas.h). */
constexpr int max_attempts = 5;

/** Two concurrent snapshots would refresh under each other's reads, so threads
take them in turn. The condition is never destroyed: threads may wait for it
while the process exits. */
constinit std::mutex snapshot_mutex;
std::condition_variable &unlocked = *new std::condition_variable;
/** Guarded by snapshot_mutex. */
constinit bool is_locked = false;

/** A thread that waits for the lock asks this often if it was killed. */
constexpr std::chrono::milliseconds asks_after{10};

/** The lock under which snapshots are taken, for as long as this lives. */
class Snapshot_lock {
 public:
  enum class If_taken { wait, leave };

  /** @param if_taken  wait: until is_interrupted() at the longest */
  explicit Snapshot_lock(If_taken if_taken) {
    std::unique_lock<std::mutex> lock(snapshot_mutex);
    while (is_locked) {
      if (if_taken == If_taken::leave || is_interrupted()) return;
      unlocked.wait_for(lock, asks_after);
    }
    is_locked = m_is_mine = true;
  }
  ~Snapshot_lock() {
    if (!m_is_mine) return;
    {
      const std::lock_guard<std::mutex> guard(snapshot_mutex);
      is_locked = false;
    }
    unlocked.notify_one();
  }
  Snapshot_lock(const Snapshot_lock &) = delete;
  Snapshot_lock &operator=(const Snapshot_lock &) = delete;

  /** false: another thread has it. */
  bool is_mine() const { return m_is_mine; }

 private:
  /** The sampler waits for the lock. Within, other_allocators() has that of the
  dynamic linker, and SHOW GLOBAL STATUS has LOCK_status. */
  const ceiling::No_wait m_no_wait;
  bool m_is_mine{false};
};

/** Protects `last`, which is never destroyed: threads may read it while the
process exits. */
constinit std::mutex last_mutex;
std::shared_ptr<const Snapshot> &last = *new std::shared_ptr<const Snapshot>;

/** The figures that are summed up over a pool's arenas. */
constexpr Reading Arena_figures::*all_figures[] = {
    &Arena_figures::live_bytes,
    &Arena_figures::active_bytes,
    &Arena_figures::dirty_bytes,
    &Arena_figures::muzzy_bytes,
    &Arena_figures::resident_bytes,
    &Arena_figures::mapped_bytes,
    &Arena_figures::retained_bytes,
    &Arena_figures::metadata_bytes,
    &Arena_figures::tcache_bytes,
    &Arena_figures::allocations,
    &Arena_figures::frees,
    &Arena_figures::purge_sweeps,
    &Arena_figures::purge_madvises,
    &Arena_figures::dirty_purged_bytes,
    &Arena_figures::muzzy_purged_bytes,
};
static_assert(sizeof(Arena_figures) == sizeof(Reading) * std::size(all_figures),
              "all_figures leaves a member out");

Arena_figures read_figures(Control_reader *reader, unsigned arena,
                           Reading page) {
  const auto pages = [page](Reading n) { return product(n, page); };
  Arena_figures figures;
  figures.live_bytes =
      sum(reader->read<Ctl::stats_arena_small_allocated>(arena),
          reader->read<Ctl::stats_arena_large_allocated>(arena));
  figures.active_bytes = pages(reader->read<Ctl::stats_arena_pactive>(arena));
  figures.dirty_bytes = pages(reader->read<Ctl::stats_arena_pdirty>(arena));
  figures.muzzy_bytes = pages(reader->read<Ctl::stats_arena_pmuzzy>(arena));
  figures.resident_bytes = reader->read<Ctl::stats_arena_resident>(arena);
  figures.mapped_bytes = reader->read<Ctl::stats_arena_mapped>(arena);
  figures.retained_bytes = reader->read<Ctl::stats_arena_retained>(arena);
  figures.metadata_bytes = sum(reader->read<Ctl::stats_arena_base>(arena),
                               reader->read<Ctl::stats_arena_internal>(arena));
  figures.tcache_bytes = reader->read<Ctl::stats_arena_tcache_bytes>(arena);
  figures.allocations =
      sum(reader->read<Ctl::stats_arena_small_nmalloc>(arena),
          reader->read<Ctl::stats_arena_large_nmalloc>(arena));
  figures.frees = sum(reader->read<Ctl::stats_arena_small_ndalloc>(arena),
                      reader->read<Ctl::stats_arena_large_ndalloc>(arena));
  figures.purge_sweeps =
      sum(reader->read<Ctl::stats_arena_dirty_npurge>(arena),
          reader->read<Ctl::stats_arena_muzzy_npurge>(arena));
  figures.purge_madvises =
      sum(reader->read<Ctl::stats_arena_dirty_nmadvise>(arena),
          reader->read<Ctl::stats_arena_muzzy_nmadvise>(arena));
  figures.dirty_purged_bytes =
      pages(reader->read<Ctl::stats_arena_dirty_purged>(arena));
  figures.muzzy_purged_bytes =
      pages(reader->read<Ctl::stats_arena_muzzy_purged>(arena));
  return figures;
}

Arena_row read_arena(Control_reader *reader, unsigned arena, Reading page) {
  Arena_row row{};
  static_cast<Arena_figures &>(row) = read_figures(reader, arena, page);
  row.arena = arena;
  row.name = reader->arena_name(arena);
  row.pool = spec_of(pools::owner_of_arena(arena)).name;
  row.threads = reader->read<Ctl::stats_arena_nthreads>(arena);
  if (const Reading ns = reader->read<Ctl::stats_arena_uptime>(arena))
    row.uptime_s = *ns / 1000000000;
  row.dirty_decay_ms = reader->read<Ctl::arena_dirty_decay_ms>(arena);
  row.muzzy_decay_ms = reader->read<Ctl::arena_muzzy_decay_ms>(arena);
  return row;
}

/** Sums up a pool's arenas, which have been read already.
@param complete  false: an arena is missing, and sums are empty */
Pool_row add_up(Pool pool, const std::vector<Arena_row> &arenas,
                bool complete) {
  Pool_row row{};
  const Pool_spec &spec = spec_of(pool);
  row.name = spec.name;
  row.purpose = spec.purpose;
  row.lifetime = spec.lifetime;
  row.quiet_ms = static_cast<uint64_t>(policies::get(Policy::quiet_ms, pool));
  if (!complete) return row;
  // A pool without arenas is known to have 0 bytes.
  for (const auto figure : all_figures) row.*figure = 0;
  uint64_t count = 0;
  for (const Arena_row &arena : arenas) {
    if (arena.pool != std::string_view{spec.name}) continue;
    if (count++ == 0) {
      row.dirty_decay_ms = arena.dirty_decay_ms;
      row.muzzy_decay_ms = arena.muzzy_decay_ms;
    }
    for (const auto figure : all_figures)
      row.*figure = sum(row.*figure, arena.*figure);
  }
  row.arenas = count;
  return row;
}

/** The pool layer's own counters. */
void add_counters(Pool pool, Pool_row *row) {
  const pools::Counters counters = pools::counters(pool);
  const purging::Counters purged = purging::counters(pool);
  row->purges = purged.purges;
  row->purged_bytes = purged.purged_bytes;
  row->purge_us = purged.purge_us;
  row->refaulted_bytes = purged.refaulted_bytes;
  row->backoff = purging::backoff(pool);
  row->held_bytes = row->live_bytes;
  // The layer does not count blocks of malloc().
  if (uses_malloc(pool)) return;
  if (row->live_bytes) {
    // The two counters are read one after the other, so they can cross.
    row->held_bytes = std::min(counters.live_bytes, *row->live_bytes);
    row->cached_bytes = *row->live_bytes - *row->held_bytes;
  }
  row->peak_bytes = counters.peak_bytes;
  if (counters.peak_time_us != 0)
    row->peak_time = Timestamp{counters.peak_time_us};
  row->fallbacks = counters.fallbacks;
  if (const int64_t limit = policies::get(Policy::dirty_limit, pool); limit > 0)
    row->dirty_limit_bytes = static_cast<uint64_t>(limit);
}

std::optional<std::string> profiling_state(Control_reader *reader) {
  const std::optional<bool> compiled = reader->read<Ctl::config_prof>();
  if (!compiled) return std::nullopt;
  if (!*compiled) return "not compiled";
  const std::optional<bool> enabled = reader->read<Ctl::opt_prof>();
  if (!enabled) return std::nullopt;
  if (!*enabled) return "compiled";
  const std::optional<bool> active = reader->read<Ctl::prof_active>();
  if (!active) return std::nullopt;
  return *active ? "active" : "enabled";
}

template <Ctl ctl>
bool append_option(Control_reader *reader, std::string_view name,
                   std::string *list) {
  using Type = ctl_type_t<ctl>;
  constexpr std::string_view prefix = "opt.";
  if constexpr (std::is_arithmetic_v<Type> ||
                std::is_same_v<Type, const char *>) {
    if (!name.starts_with(prefix)) return true;
    const std::optional<Type> value = reader->read<ctl>();
    if (!value) return false;
    if (!list->empty()) *list += ',';
    *list += name.substr(prefix.size());
    *list += ':';
    if constexpr (std::is_same_v<Type, bool>)
      *list += *value ? "true" : "false";
    else if constexpr (std::is_same_v<Type, const char *>)
      *list += *value == nullptr ? "" : *value;
    else
      *list += std::to_string(*value);
  }
  return true;
}

/** The options of mysys/memdiag/jemalloc/mallctl_names.h, in the form of
MALLOC_CONF; empty when one cannot be read. A build without profiling lacks the
options of profiling. */
std::optional<std::string> options_in_force(Control_reader *reader,
                                            bool profiling) {
  std::string list;
  const auto wanted = [profiling](std::string_view name) {
    return profiling || !name.starts_with("opt.prof");
  };
#define MEMDIAG_CTL(id, name, type)                                 \
  if (wanted(name) && !append_option<Ctl::id>(reader, name, &list)) \
    return std::nullopt;
#include "mysys/memdiag/jemalloc/mallctl_names.h"
#undef MEMDIAG_CTL
  return list;
}

Allocator_row read_allocator(Control_reader *reader) {
  Allocator_row row{};
  row.allocated_bytes = reader->read<Ctl::stats_allocated>();
  row.active_bytes = reader->read<Ctl::stats_active>();
  row.metadata_bytes = reader->read<Ctl::stats_metadata>();
  row.resident_bytes = reader->read<Ctl::stats_resident>();
  row.mapped_bytes = reader->read<Ctl::stats_mapped>();
  row.retained_bytes = reader->read<Ctl::stats_retained>();
  // jemalloc adds up the two one after the other. Under load they can cross;
  // their difference then means nothing.
  if (row.active_bytes && row.allocated_bytes &&
      *row.active_bytes >= *row.allocated_bytes && *row.allocated_bytes != 0) {
    row.fragmentation_bytes = *row.active_bytes - *row.allocated_bytes;
    row.fragmentation_ratio = static_cast<double>(*row.active_bytes) /
                              static_cast<double>(*row.allocated_bytes);
  }
  row.background_thread_enabled = reader->read<Ctl::background_thread>();
  row.background_threads = reader->read<Ctl::stats_background_threads>();
  row.background_runs = reader->read<Ctl::stats_background_runs>();
  row.background_run_interval_ns =
      reader->read<Ctl::stats_background_run_interval>();
  return row;
}

/** Figures that do not depend on a refresh. */
void add_settings(Control_reader *reader, Allocator_row *row) {
  row->version = reader->read_text<Ctl::version>();
  row->profiling = profiling_state(reader);
  row->options = options_in_force(
      reader, row->profiling && *row->profiling != "not compiled");
  row->huge_pages = reader->read_text<Ctl::opt_thp>();
  if (std::string others = other_allocators(); !others.empty())
    row->preloaded = std::move(others);
}

void read_details(Control_reader *reader, Details details, Snapshot *to) {
  to->details = details;
  if (details == 0) return;
  const Size_classes classes(reader);
  for (const Arena_row &arena : to->arenas) {
    if (is_interrupted()) return;
    if (details & detail_of<Bin_row>) classes.append_bins(arena, &to->bins);
    if (details & detail_of<Large_row>) classes.append_large(arena, &to->large);
    if (details & detail_of<Extents_row>)
      classes.append_extents(arena, &to->extents);
  }
}

/** Reads everything once. @return false: another thread refreshed the
statistics meanwhile */
bool read_all(Details details, Snapshot *snapshot) {
  *snapshot = Snapshot{};
  Control_reader reader(&snapshot->failed);
  if (const int error = mallctl::refresh(); error != 0)
    snapshot->failed.push_back({Ctl::epoch, error, 1});
  const std::optional<uint64_t> epoch = reader.read<Ctl::epoch>();
  const Reading page = reader.read<Ctl::arenas_page>();
  const std::optional<unsigned> narenas = reader.read<Ctl::arenas_narenas>();
  snapshot->allocator = read_allocator(&reader);
  bool complete = narenas.has_value();
  for (unsigned arena = 0; arena < narenas.value_or(0); ++arena) {
    if (is_interrupted()) break;
    // jemalloc assigns an index before the arena exists, and keeps it after
    // the arena was destroyed.
    const std::optional<bool> exists =
        reader.read<Ctl::arena_initialized>(arena);
    if (!exists)
      complete = false;
    else if (*exists)
      snapshot->arenas.push_back(read_arena(&reader, arena, page));
  }
  read_details(&reader, details, snapshot);
  const bool one_epoch = reader.read<Ctl::epoch>() == epoch;

  for (size_t i = 0; i < pool_count; ++i) {
    const Pool pool = static_cast<Pool>(i);
    snapshot->pools[i] = add_up(pool, snapshot->arenas, complete);
    add_counters(pool, &snapshot->pools[i]);
  }
  Allocator_row &total = snapshot->allocator;
  total.arenas = total.dirty_bytes = total.muzzy_bytes = 0;
  for (const Pool_row &pool : snapshot->pools) {
    total.arenas = sum(total.arenas, pool.arenas);
    total.dirty_bytes = sum(total.dirty_bytes, pool.dirty_bytes);
    total.muzzy_bytes = sum(total.muzzy_bytes, pool.muzzy_bytes);
  }
  add_settings(&reader, &total);
  return one_epoch;
}

/** Keeps the totals and the pools for last_snapshot(). */
void publish(const Snapshot &snapshot) {
  auto copy = std::make_shared<Snapshot>();
  copy->allocator = snapshot.allocator;
  copy->pools = snapshot.pools;
  const std::lock_guard<std::mutex> guard(last_mutex);
  last = std::move(copy);
}

/** The caller has the turn. */
Snapshot take_locked(Details details) {
  Snapshot snapshot;
  int attempts = 1;
  while (!read_all(details, &snapshot))
    if (attempts++ == max_attempts) {
      snapshot.mixed_moments = true;
      break;
    }
  if (!is_interrupted()) publish(snapshot);
  return snapshot;
}

/** For a thread that was interrupted while it waited for its turn: every figure
is unknown. */
Snapshot nothing_read() {
  Snapshot snapshot{};
  for (size_t i = 0; i < pool_count; ++i)
    snapshot.pools[i] = add_up(static_cast<Pool>(i), {}, false);
  return snapshot;
}

}  // namespace

Snapshot take_snapshot(Details details) {
  const Snapshot_lock lock(Snapshot_lock::If_taken::wait);
  return lock.is_mine() ? take_locked(details) : nothing_read();
}

std::optional<Snapshot> try_take_snapshot() {
  const Snapshot_lock lock(Snapshot_lock::If_taken::leave);
  if (!lock.is_mine()) return std::nullopt;
  return take_locked(0);
}

std::shared_ptr<const Snapshot> last_snapshot() {
  const std::lock_guard<std::mutex> guard(last_mutex);
  return last;
}

}  // namespace memdiag
