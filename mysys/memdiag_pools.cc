#include "memdiag_pools.h"

#include <pthread.h>
#include <sched.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <mutex>

#include "memdiag_mallctl.h"

namespace memdiag {
namespace {

using pools::detail::max_shards;

constexpr int no_arena = -1;
/** This shard's arena could not be made. Asking again on each allocation would
be slow; a shortage may pass, so some ask again. */
constexpr int unavailable = -2;
constexpr uint64_t fallbacks_before_retry = 1024;

/** One CPU's part of a pool, on a cache line of its own because every
allocation on that CPU writes it. */
struct alignas(64) Shard {
  std::atomic<int> arena{no_arena};
  std::atomic<uint64_t> allocated_bytes{0};
  std::atomic<uint64_t> freed_bytes{0};
};

/** All zero-initialised and without constructors or destructors that do
anything: usable before main() and after exit handlers. */
struct Pool_state {
  Shard shards[max_shards];
  /** Live blocks that came from the general allocator instead. While there are
  any, free() has to look where each block came from. */
  alignas(64) std::atomic<uint64_t> fallback_blocks{0};
  std::atomic<uint64_t> fallbacks{0};
  std::atomic<uint64_t> peak_bytes{0};
  std::atomic<uint64_t> peak_time_us{0};
  std::atomic<uint64_t> purges{0};
  std::atomic<uint64_t> purged_bytes{0};
  std::atomic<uint64_t> purge_us{0};
};
constinit Pool_state states[pool_count];

/** Pool of each arena; 0 is Pool::general. jemalloc's own limit of arenas is
4095 (MALLOCX_ARENA_LIMIT). */
constexpr unsigned max_arenas = 4096;
constinit std::atomic<uint8_t> arena_owners[max_arenas];

constinit std::atomic<uint32_t> failures_to_inject{0};

/** Serialises purges, so that a receipt's before and after are its own. */
constinit std::mutex purge_mutex;

/** fork() waits until a purge has ended: the child would find the mutex locked
for ever, and jemalloc's arena in the midst of a purge that nobody ends. */
[[gnu::constructor]] void keep_purges_out_of_fork() {
  // jemalloc registers its own handlers when it is first used. Those that are
  // registered later run earlier, and purges take our mutex before jemalloc's.
  (void)mallctl::refresh();
  (void)pthread_atfork([] { purge_mutex.lock(); }, [] { purge_mutex.unlock(); },
                       [] { purge_mutex.unlock(); });
}

Pool_state &state_of(Pool pool) { return states[static_cast<size_t>(pool)]; }

uint64_t clock_us(clockid_t clock) {
  timespec now;
  if (clock_gettime(clock, &now) != 0) return 0;
  return static_cast<uint64_t>(now.tv_sec) * 1000000 + now.tv_nsec / 1000;
}

/** The calling thread's CPU, folded into the shards there may be. Where the
kernel does not tell, everything shares shard 0. */
unsigned current_shard() {
  const int cpu = sched_getcpu();
  return cpu < 0 ? 0 : static_cast<unsigned>(cpu) % max_shards;
}

/** Create a shard's arena. Without a lock: two threads may both create one,
and the one that publishes second gives its own to the next shard that has none.
It must not destroy it: another thread may be purging it, and jemalloc does not
hold the two apart. */
int create_arena(Pool pool, unsigned shard) {
  Shard &slot = state_of(pool).shards[shard];
  int expected = unavailable;
  slot.arena.compare_exchange_strong(expected, no_arena);
  expected = no_arena;
  const Result<unsigned> created = mallctl::read<Ctl::arenas_create>();
  if (!created || created.value() >= max_arenas) {
    slot.arena.compare_exchange_strong(expected, unavailable);
    return slot.arena.load();
  }
  const unsigned arena = created.value();
  const Pool_spec &spec = spec_of(pool);
  const auto name_it = [arena, &spec](unsigned of_shard) {
    char name[mallctl::arena_name_size];
    snprintf(name, sizeof name, "%s.%u", spec.name, of_shard);
    // A nameless arena or one with default decay still serves; the tables show
    // which settings are in force.
    (void)mallctl::set_arena_name(arena, name);
  };
  name_it(shard);
  if (spec.dirty_decay_ms >= -1)
    (void)mallctl::write<Ctl::arena_dirty_decay_ms>(spec.dirty_decay_ms, arena);
  if (spec.muzzy_decay_ms >= -1)
    (void)mallctl::write<Ctl::arena_muzzy_decay_ms>(spec.muzzy_decay_ms, arena);
  arena_owners[arena].store(static_cast<uint8_t>(pool));
  if (slot.arena.compare_exchange_strong(expected, static_cast<int>(arena)))
    return static_cast<int>(arena);
  for (unsigned step = 1; step < max_shards; ++step) {
    const unsigned other = (shard + step) % max_shards;
    expected = no_arena;
    if (state_of(pool).shards[other].arena.compare_exchange_strong(
            expected, static_cast<int>(arena))) {
      name_it(other);
      break;
    }
  }
  return slot.arena.load();
}

bool injected_failure() {
  uint32_t left = failures_to_inject.load(std::memory_order_relaxed);
  while (left > 0 &&
         !failures_to_inject.compare_exchange_weak(left, left - 1)) {
  }
  return left > 0;
}

void *allocate_fallback(Pool_state &state, size_t size) {
  // Counted before the block exists: a thread that frees it must see the count.
  state.fallback_blocks.fetch_add(1);
  void *block = placed::general_allocate(size);
  if (block == nullptr) {
    state.fallback_blocks.fetch_sub(1);
    return nullptr;
  }
  state.fallbacks.fetch_add(1, std::memory_order_relaxed);
  return block;
}

/** Whether a block of a pool really came from the general allocator. */
bool is_fallback(Pool pool, const void *block) {
  const Result<unsigned> arena = mallctl::arena_of(block);
  return !arena || pools::owner_of_arena(arena.value()) != pool;
}

/** Bytes that were live at some moment of the call, or a little less; never
more, or a peak would be on record that never was. The counters of the shards
cannot be read at one moment: what is freed while they are read is missing from
the difference. So if that was much (the thread was interrupted on the way), it
is read again. */
uint64_t live_bytes(const Pool_state &state) {
  const auto freed_bytes = [&state] {
    uint64_t sum = 0;
    for (const Shard &shard : state.shards)
      sum += shard.freed_bytes.load(std::memory_order_acquire);
    return sum;
  };
  uint64_t live = 0;
  uint64_t freed_before = freed_bytes();
  for (int attempt = 0; attempt < 4; ++attempt) {
    uint64_t allocated = 0;
    for (const Shard &shard : state.shards)
      allocated += shard.allocated_bytes.load(std::memory_order_acquire);
    const uint64_t freed = freed_bytes();
    if (allocated > freed && allocated - freed > live) live = allocated - freed;
    if (freed - freed_before <= live / 64) break;
    freed_before = freed;
  }
  return live;
}

void note_peak(Pool_state &state, uint64_t live) {
  uint64_t peak = state.peak_bytes.load(std::memory_order_relaxed);
  while (live > peak) {
    if (state.peak_bytes.compare_exchange_weak(peak, live)) {
      state.peak_time_us.store(clock_us(CLOCK_REALTIME));
      return;
    }
  }
}

/** Purge the arenas that `wanted` accepts. Caller holds purge_mutex. */
template <typename Predicate>
pools::Receipt purge_arenas(Predicate wanted) {
  pools::Receipt receipt{0, 0, 0, 0, 0};
  const auto note_error = [&receipt](int error) {
    if (receipt.error == 0) receipt.error = error;
  };
  const auto resident = [&](uint64_t *sum, unsigned narenas) {
    if (const int error = mallctl::refresh(); error != 0) note_error(error);
    for (unsigned arena = 0; arena < narenas; ++arena) {
      if (!wanted(arena)) continue;
      const auto bytes = mallctl::read<Ctl::stats_arena_resident>(arena);
      if (bytes)
        *sum += bytes.value();
      else
        note_error(bytes.error());
    }
  };

  const Result<unsigned> narenas = mallctl::read<Ctl::arenas_narenas>();
  if (!narenas) {
    note_error(narenas.error());
    return receipt;
  }
  const uint64_t start_us = clock_us(CLOCK_MONOTONIC);
  resident(&receipt.resident_before_bytes, narenas.value());
  for (unsigned arena = 0; arena < narenas.value(); ++arena) {
    if (!wanted(arena)) continue;
    if (const int error = mallctl::call<Ctl::arena_purge>(arena); error != 0)
      note_error(error);
    else
      ++receipt.arenas;
  }
  resident(&receipt.resident_after_bytes, narenas.value());
  receipt.duration_us = clock_us(CLOCK_MONOTONIC) - start_us;
  return receipt;
}

bool is_initialized(unsigned arena) {
  return mallctl::read<Ctl::arena_initialized>(arena).value_or(false);
}

}  // namespace

std::optional<Pool> find_pool(std::string_view name) {
  for (size_t i = 0; i < pool_count; ++i) {
    const std::string_view candidate = pool_specs[i].name;
    if (candidate.size() == name.size() &&
        strncasecmp(candidate.data(), name.data(), name.size()) == 0)
      return static_cast<Pool>(i);
  }
  return std::nullopt;
}

namespace pools {

void *allocate(Pool pool, size_t size) noexcept {
  if (pool == Pool::general) return placed::general_allocate(size);
  Pool_state &state = state_of(pool);
  const unsigned cpu = current_shard();
  Shard &shard = state.shards[cpu];
  int arena = shard.arena.load(std::memory_order_acquire);
  if (arena < 0) [[unlikely]] {
    if (arena == no_arena || state.fallbacks.load(std::memory_order_relaxed) %
                                     fallbacks_before_retry ==
                                 0)
      arena = create_arena(pool, cpu);
  }
  if (arena < 0 || failures_to_inject.load(std::memory_order_relaxed) != 0)
      [[unlikely]] {
    if (arena < 0 || injected_failure()) return allocate_fallback(state, size);
  }
  void *block = placed::allocate(static_cast<unsigned>(arena), size);
  if (block == nullptr) [[unlikely]]
    return allocate_fallback(state, size);
  shard.allocated_bytes.fetch_add(placed::usable(size),
                                  std::memory_order_release);
  return block;
}

void free(Pool pool, void *block, size_t size) noexcept {
  if (block == nullptr) return;
  if (pool == Pool::general) {
    placed::general_free(block);
    return;
  }
  Pool_state &state = state_of(pool);
  if (state.fallback_blocks.load(std::memory_order_relaxed) != 0) [[unlikely]] {
    if (is_fallback(pool, block)) {
      placed::general_free(block);
      state.fallback_blocks.fetch_sub(1);
      return;
    }
  }
  state.shards[current_shard()].freed_bytes.fetch_add(
      placed::usable(size), std::memory_order_release);
  placed::free(block, size);
}

Pool owner_of_arena(unsigned arena) {
  return arena < max_arenas ? static_cast<Pool>(arena_owners[arena].load())
                            : Pool::general;
}

Counters counters(Pool pool) {
  Pool_state &state = state_of(pool);
  const uint64_t live = live_bytes(state);
  note_peak(state, live);
  return {live,
          state.peak_bytes.load(),
          state.peak_time_us.load(),
          state.fallbacks.load(),
          state.purges.load(),
          state.purged_bytes.load(),
          state.purge_us.load()};
}

uint64_t activity(Pool pool) {
  uint64_t sum = 0;
  for (const Shard &shard : state_of(pool).shards)
    sum += shard.allocated_bytes.load(std::memory_order_relaxed) +
           shard.freed_bytes.load(std::memory_order_relaxed);
  return sum;
}

Receipt purge(Pool pool) {
  const std::lock_guard<std::mutex> guard(purge_mutex);
  const Receipt receipt = purge_arenas([pool](unsigned arena) {
    return owner_of_arena(arena) == pool && is_initialized(arena);
  });
  Pool_state &state = state_of(pool);
  if (receipt.resident_before_bytes > receipt.resident_after_bytes)
    state.purged_bytes.fetch_add(receipt.resident_before_bytes -
                                 receipt.resident_after_bytes);
  state.purge_us.fetch_add(receipt.duration_us);
  state.purges.fetch_add(1);  // last: who sees it sees what the purge did
  return receipt;
}

Receipt purge_all() {
  Receipt total{0, 0, 0, 0, 0};
  for (size_t i = 0; i < pool_count; ++i) {
    const Receipt one = purge(static_cast<Pool>(i));
    total.resident_before_bytes += one.resident_before_bytes;
    total.resident_after_bytes += one.resident_after_bytes;
    total.duration_us += one.duration_us;
    total.arenas += one.arenas;
    if (total.error == 0) total.error = one.error;
  }
  return total;
}

void fail_allocations_for_test(uint32_t failures) {
  failures_to_inject.store(failures);
}

int detail::arena_of_shard(Pool pool, unsigned shard) {
  if (shard >= max_shards) return no_arena;
  return state_of(pool).shards[shard].arena.load(std::memory_order_acquire);
}

}  // namespace pools
}  // namespace memdiag
