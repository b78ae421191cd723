/*
  The state of the pools: what a CPU's part of a pool holds, and what the pool
  counts as a whole. Only the files of this folder include this.

  Zero-initialised and trivially destroyed: usable before main() and after exit
  handlers. Hidden, because position-independent code would otherwise look the
  address up on every allocation.
*/

#ifndef MEMDIAG_SHARDS_H
#define MEMDIAG_SHARDS_H

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "mysys/memdiag/jemalloc/mallctl.h"
#include "mysys/memdiag/pools/pool.h"

namespace memdiag::pools {

/** A shard's arena is not made yet, or could not be made. Another attempt for
each allocation would be slow, and a shortage may pass: allocate() tries again
now and then. */
constexpr int no_arena = -1;
constexpr int unavailable = -2;

/** One CPU's part of a pool, on a cache line of its own because every
allocation on that CPU writes it. */
struct alignas(64) Shard {
  std::atomic<int> arena{no_arena};
  /** Held while a thread uses the cache and counts. No allocation waits for it:
  a thread that finds it taken, because its holder was interrupted, goes round
  the cache and counts in the bypass. */
  std::atomic<bool> taken{false};
  /** Taken over a fork(). Only the forking thread uses it. */
  bool held{false};
  /** For the thread that has taken the shard. no_cache: not made yet, or
  dropped; unavailable: could not be made. */
  placed::Cache cache{placed::no_cache};
  std::atomic<uint64_t> allocated_bytes{0};
  std::atomic<uint64_t> freed_bytes{0};
};

/** Behind the shards: counters of threads that did not get their turn. */
constexpr unsigned bypass = max_shards;

struct Pool_state {
  Shard shards[max_shards + 1];
  /** Live blocks that came from the general allocator instead. While there are
  any, free() has to look up where each block came from. */
  alignas(64) std::atomic<uint64_t> fallback_blocks{0};
  std::atomic<uint64_t> fallbacks{0};
  std::atomic<uint64_t> peak_bytes{0};
  std::atomic<uint64_t> peak_time_us{0};
};
extern Pool_state states[pool_count] __attribute__((visibility("hidden")));

inline Pool_state &state_of(Pool pool) {
  return states[static_cast<size_t>(pool)];
}

/** A thread's turn at a shard, for as long as this lives, if it was free. */
class Turn {
 public:
  Turn(Shard *shards, unsigned cpu)
      : m_shards(shards),
        m_index(shards[cpu].taken.exchange(true, std::memory_order_acquire)
                    ? bypass
                    : cpu) {}
  ~Turn() {
    if (m_index != bypass)
      m_shards[m_index].taken.store(false, std::memory_order_release);
  }
  Turn(const Turn &) = delete;
  Turn &operator=(const Turn &) = delete;

  /** Where to count. */
  unsigned index() const { return m_index; }

  /** The shard's cache if there is one. */
  placed::Cache existing_cache() const {
    if (m_index == bypass) return placed::no_cache;
    return std::max(m_shards[m_index].cache, placed::no_cache);
  }
  /** The cache, made if there is none. */
  placed::Cache cache() const {
    if (m_index == bypass) return placed::no_cache;
    placed::Cache &cache = m_shards[m_index].cache;
    if (cache == placed::no_cache) [[unlikely]] {
      const auto created = mallctl::read<Ctl::tcache_create>();
      cache =
          created ? static_cast<placed::Cache>(created.value()) : unavailable;
    }
    return existing_cache();
  }

  /** Whether the counters of index() are this thread's alone for now. */
  bool is_mine() const { return m_index != bypass; }

 private:
  Shard *const m_shards;
  const unsigned m_index;
};

/** The calling thread's CPU, folded into the shards that the pool may have.
Where the kernel does not tell, all threads share shard 0. */
inline unsigned current_shard(const Pool_spec &spec) {
  const int cpu = sched_getcpu();
  if (cpu < 0) return 0;
  const auto shard = static_cast<unsigned>(cpu);
  // A division takes longer than all else here, and there are seldom more CPUs.
  return shard < spec.shards ? shard : shard % spec.shards;
}

/** The shard that a block is taken from. A large block does not come from the
CPU's own shard: a thread that goes on on another CPU would leave its freed
pages behind and take as many again. Where blocks of this size come and go, the
pages cost more than threads that wait for each other. (jemalloc has one arena
for blocks of more than 8 MB, for the same reason.) */
inline unsigned shard_for(const Pool_spec &spec, size_t size) {
  constexpr size_t large = 512 << 10;
  return size >= large ? 0 : current_shard(spec);
}

}  // namespace memdiag::pools

#endif  // MEMDIAG_SHARDS_H
