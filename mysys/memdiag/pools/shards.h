/*
  The state of the pools: what a CPU's part of a pool holds, and what the pool
  counts as a whole. Only the files of this folder include this.

  Initialised by constants and trivially destroyed: usable before main() and
  after exit handlers. Hidden, because position-independent code would otherwise
  look the address up on every allocation.
*/

#ifndef MEMDIAG_SHARDS_H
#define MEMDIAG_SHARDS_H

#include <atomic>
#include <cstdint>

#include "mysys/memdiag/jemalloc/mallctl.h"
#include "mysys/memdiag/pools/arenas.h"
#include "mysys/memdiag/pools/cpus.h"
#include "mysys/memdiag/pools/fallback_filter.h"
#include "mysys/memdiag/pools/pool.h"

namespace memdiag::pools {

/** A CPU's part of a pool, or a stand-in for it. CPUs share one where there are
more of them than shards. */
struct Shard {
  /** On a cache line of its own because every allocation on that CPU writes it.
  The arena is that of the slot which this shard shares with others, once it
  was needed. */
  alignas(64) std::atomic<int> arena{no_arena};
  /** Held while a thread uses the cache and counts: the shard's lock. No
  allocation waits for it: a thread that finds it taken, because its holder was
  interrupted or runs on a CPU of the same shard, takes a stand-in. If all of
  them are taken, it goes round the cache (uncached.h) and counts in the
  bypass. */
  std::atomic<bool> taken{false};
  /** Taken over a fork(). Only the forking thread uses it. */
  bool held{false};
  /** Small blocks that went round the cache while there was none. Written in
  the shard's lock, as all below. */
  uint16_t uncached{0};
  /** no_cache: not made yet, or dropped; unavailable: could not be made. */
  std::atomic<placed::Cache> cache{placed::no_cache};
  std::atomic<uint64_t> allocated_bytes{0};
  std::atomic<uint64_t> freed_bytes{0};
  /** The sum of both when the cache was last looked at; see trim_caches(). */
  uint64_t moved_at_trim{0};

  /** The bypass: counters of threads that found the shard taken. */
  alignas(64) std::atomic<uint64_t> bypass_allocated_bytes{0};
  std::atomic<uint64_t> bypass_freed_bytes{0};
  std::atomic<uint64_t> bypasses{0};
};

struct Pool_state {
  Shard shards[max_shards];
  /** Live blocks that came from the general allocator instead. While there are
  any, free() looks up where a block came from if the filter may have it. */
  alignas(64) std::atomic<uint64_t> fallback_blocks{0};
  Fallback_filter fallback_filter;
  std::atomic<uint64_t> fallbacks{0};
  std::atomic<uint64_t> peak_bytes{0};
  std::atomic<uint64_t> peak_time_us{0};
  /** The shard where trim_caches() goes on. */
  std::atomic<unsigned> next_trimmed{0};
};
extern Pool_state states[pool_count] __attribute__((visibility("hidden")));

inline Pool_state &state_of(Pool pool) {
  return states[static_cast<size_t>(pool)];
}

/** The lock of the CPU's shard, or of the first stand-in that was free, for as
long as this lives. */
class Shard_lock {
 public:
  /** @param own  the number of the CPU's shard */
  Shard_lock(Pool_state *state, unsigned own)
      : m_number(own), m_shard(&state->shards[own]) {
    if (m_shard->taken.exchange(true, std::memory_order_acquire)) [[unlikely]]
      take_stand_in(state);
  }
  ~Shard_lock() {
    if (m_shard != nullptr)
      m_shard->taken.store(false, std::memory_order_release);
  }
  Shard_lock(const Shard_lock &) = delete;
  Shard_lock &operator=(const Shard_lock &) = delete;

  /** true: for now, this thread alone uses the cache and the counters. false:
  all are taken. */
  bool is_mine() const { return m_shard != nullptr; }
  /** The number of the shard; the CPU's own if all are taken. */
  unsigned shard() const { return m_number; }

 private:
  [[gnu::noinline]] void take_stand_in(Pool_state *state) {
    const Stand_ins others = stand_in_shards();
    for (unsigned i = m_number + others.distance; i < others.end;
         i += others.distance) {
      m_shard = &state->shards[i];
      if (m_shard->taken.load(std::memory_order_relaxed) ||
          m_shard->taken.exchange(true, std::memory_order_acquire))
        continue;
      m_number = i;
      return;
    }
    m_shard = nullptr;
  }

  unsigned m_number;
  Shard *m_shard;
};

/** A lock at one certain shard, if it was free. */
class Shard_try_lock {
 public:
  explicit Shard_try_lock(Shard *shard)
      : m_shard(shard),
        m_is_mine(!shard->taken.exchange(true, std::memory_order_acquire)) {}
  ~Shard_try_lock() {
    if (m_is_mine) m_shard->taken.store(false, std::memory_order_release);
  }
  Shard_try_lock(const Shard_try_lock &) = delete;
  Shard_try_lock &operator=(const Shard_try_lock &) = delete;

  bool is_mine() const { return m_is_mine; }

 private:
  Shard *const m_shard;
  const bool m_is_mine;
};

}  // namespace memdiag::pools

#endif  // MEMDIAG_SHARDS_H
