#include "mysys/memdiag/pools/arenas.h"

#include <atomic>
#include <cstdio>
#include <mutex>

#include "mysys/memdiag/jemalloc/mallctl.h"

namespace memdiag::pools {
namespace {

/** By arena. */
static_assert(static_cast<uint8_t>(Pool::general) == 0);
constinit std::atomic<uint8_t> owners[max_arenas];
constinit std::atomic<uint8_t> slots_of_arenas[max_arenas];
static_assert(max_slots <= UINT8_MAX + 1);

/** The slots begin as zeros, and so must mean that they have no arena. */
constexpr int stored(int arena) { return arena - no_arena; }
constexpr int loaded(int stored) { return stored + no_arena; }

constexpr bool every_pool_has_room() {
  for (const Pool_spec &spec : pool_specs)
    if (spec.arenas > max_slots) return false;
  return true;
}
static_assert(every_pool_has_room());

/** stored() indexes of arenas. */
constinit std::atomic<int> slots[pool_count][max_slots];

std::atomic<int> &entry_of(Pool pool, unsigned slot) {
  return slots[static_cast<size_t>(pool)][slot];
}

/** Held while an arena is made, and over a fork(). */
constinit std::mutex making_mutex;

/** In force for each pool. */
constinit std::atomic<int64_t> decay_times[static_cast<size_t>(Decay::count)]
                                          [pool_count] = {{
#define MEMDIAG_POOL(id, lifetime, shards, cached_max, quiet_ms, dirty_ms, \
                     muzzy_ms, purpose)                                    \
  dirty_ms,
#include "mysys/memdiag/pools/pool_list.h"
#undef MEMDIAG_POOL
                                                          },
                                                          {
#define MEMDIAG_POOL(id, lifetime, shards, cached_max, quiet_ms, dirty_ms, \
                     muzzy_ms, purpose)                                    \
  muzzy_ms,
#include "mysys/memdiag/pools/pool_list.h"
#undef MEMDIAG_POOL
                                                          }};

std::atomic<int64_t> &decay_time(Decay kind, Pool pool) {
  return decay_times[static_cast<size_t>(kind)][static_cast<size_t>(pool)];
}

struct Decay_controls {
  Result<ssize_t> (*option)();
  /** For automatic arenas to come. */
  int (*set_default)(ssize_t);
  int (*set)(ssize_t, unsigned arena);
};
constexpr Decay_controls decay_controls[] = {
    {[] { return mallctl::read<Ctl::opt_dirty_decay_ms>(); },
     [](ssize_t ms) { return mallctl::write<Ctl::arenas_dirty_decay_ms>(ms); },
     mallctl::write<Ctl::arena_dirty_decay_ms>},
    {[] { return mallctl::read<Ctl::opt_muzzy_decay_ms>(); },
     [](ssize_t ms) { return mallctl::write<Ctl::arenas_muzzy_decay_ms>(ms); },
     mallctl::write<Ctl::arena_muzzy_decay_ms>}};

const Decay_controls &controls_of(Decay kind) {
  return decay_controls[static_cast<size_t>(kind)];
}

/** The time to write into an arena; below -1: not known, leave it alone. */
int64_t time_to_set(Decay kind, int64_t time) {
  return time >= -1 ? time : controls_of(kind).option().value_or(-2);
}

/** Give a new arena its pool's decay time: jemalloc gave it what was set last
for malloc()'s. */
void set_decay_of_new(Decay kind, Pool pool, unsigned arena) {
  int64_t time;
  do {
    time = decay_time(kind, pool).load();
    const int64_t wanted = time_to_set(kind, time);
    if (wanted >= -1) (void)controls_of(kind).set(wanted, arena);
  } while (time != decay_time(kind, pool).load());
}

}  // namespace

Pool owner_of_arena(unsigned arena) {
  return arena < max_arenas ? static_cast<Pool>(owners[arena].load())
                            : Pool::general;
}

unsigned slot_of_arena(unsigned arena) {
  return arena < max_arenas
             ? slots_of_arenas[arena].load(std::memory_order_relaxed)
             : 0;
}

int arena_in_slot(Pool pool, unsigned slot) {
  if (slot >= max_slots) return no_arena;
  return loaded(entry_of(pool, slot).load(std::memory_order_acquire));
}

int make_arena(Pool pool, unsigned slot) noexcept {
  std::atomic<int> &entry = entry_of(pool, slot);
  const std::lock_guard<std::mutex> guard(making_mutex);
  if (const int arena = loaded(entry.load()); arena >= 0) return arena;
  const Result<unsigned> created = mallctl::read<Ctl::arenas_create>();
  if (!created || created.value() >= max_arenas) {
    entry.store(stored(unavailable));
    return unavailable;
  }
  const unsigned arena = created.value();
  (void)mallctl::keep_metadata_small(arena);
  char name[mallctl::arena_name_size];
  snprintf(name, sizeof name, "%s.%u", spec_of(pool).name, slot);
  // An arena without a name or with jemalloc's decay times still serves; the
  // tables show which settings are in force.
  (void)mallctl::set_arena_name(arena, name);
  // set_decay_times() may run meanwhile, for the arenas that it finds. So the
  // arena can be found first, and reads the times afterwards.
  slots_of_arenas[arena].store(static_cast<uint8_t>(slot),
                               std::memory_order_relaxed);
  owners[arena].store(static_cast<uint8_t>(pool));
  set_decay_of_new(Decay::dirty, pool, arena);
  set_decay_of_new(Decay::muzzy, pool, arena);
  entry.store(stored(static_cast<int>(arena)), std::memory_order_release);
  return static_cast<int>(arena);
}

void set_decay_times(Decay kind, const Decay_times &times) {
  const Decay_controls &controls = controls_of(kind);
  Decay_times wanted;
  for (size_t i = 0; i < pool_count; ++i) {
    decay_time(kind, static_cast<Pool>(i)).store(times[i]);
    wanted[i] = time_to_set(kind, times[i]);
  }
  const auto general = wanted[static_cast<size_t>(Pool::general)];
  if (general >= -1) (void)controls.set_default(general);
  (void)mallctl::refresh();  // jemalloc shows arenas as of its last statistics
  const auto narenas = mallctl::read<Ctl::arenas_narenas>();
  for (unsigned arena = 0; arena < narenas.value_or(0); ++arena) {
    if (!mallctl::read<Ctl::arena_initialized>(arena).value_or(false)) continue;
    // make_arena() may be about to say whose it is.
    Pool owner;
    do {
      owner = owner_of_arena(arena);
      const ssize_t time = wanted[static_cast<size_t>(owner)];
      if (time >= -1) (void)controls.set(time, arena);
    } while (owner != owner_of_arena(arena));
  }
}

void hold_arenas() noexcept { making_mutex.lock(); }
void let_go_of_arenas() noexcept { making_mutex.unlock(); }

}  // namespace memdiag::pools
