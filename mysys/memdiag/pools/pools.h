/*
  Pools: memory of one purpose in arenas of its own.

  A pool owns one jemalloc arena per CPU (a shard), created when that CPU first
  allocates from it. Nothing else allocates there (`connection` excepted, which
  is malloc() of some threads): pools bypass the threads'
  automatic caches in both directions, so a block freed into a pool is never
  handed to another subsystem, nor the reverse. Pages of a pool therefore fall
  empty together and can be given back together.

  Ownership: a block belongs to the caller and is freed with the pool and the
  size it was allocated with, by any thread.
  Threads: every function may be called from any thread, and needs no
  initialisation: before main(), after fork() and at exit too. Allocation and
  free take no lock of this layer.
  Errors: allocate() returns nullptr only when the general allocator has no
  memory either. A pool that cannot get an arena or a page falls back to the
  general allocator, and counts it.
  Units: bytes (of size classes, as jemalloc accounts them), microseconds, and
  milliseconds, as the names say.
  Looking never creates: only allocate() and bind_thread_to_connection() make
  arenas.
*/

#ifndef MEMDIAG_POOLS_H
#define MEMDIAG_POOLS_H

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "mysys/memdiag/jemalloc/mallctl.h"

namespace memdiag {

enum class Pool : uint8_t {
#define MEMDIAG_POOL(id, lifetime, shards, cached_max, quiet_ms, dirty_ms, \
                     muzzy_ms, purpose)                                    \
  id,
#include "mysys/memdiag/pools/pool_list.h"
#undef MEMDIAG_POOL
  count
};
constexpr size_t pool_count = static_cast<size_t>(Pool::count);

/** What is declared of a pool. Decay times of -2 mean: as jemalloc's options
say (-1 is jemalloc's "never"). */
struct Pool_spec {
  const char *name;
  const char *lifetime;
  unsigned shards;
  size_t cached_max;
  uint32_t quiet_ms;
  ssize_t dirty_decay_ms;
  ssize_t muzzy_decay_ms;
  const char *purpose;
};

inline constexpr std::array<Pool_spec, pool_count> pool_specs{{
#define MEMDIAG_POOL(id, lifetime, shards, cached_max, quiet_ms, dirty_ms, \
                     muzzy_ms, purpose)                                    \
  {#id, lifetime, shards, cached_max, quiet_ms, dirty_ms, muzzy_ms, purpose},
#include "mysys/memdiag/pools/pool_list.h"
#undef MEMDIAG_POOL
}};

constexpr const Pool_spec &spec_of(Pool pool) {
  return pool_specs[static_cast<size_t>(pool)];
}

/** Whether a pool is what some threads take from malloc(), and not what some
callers ask the layer for. The layer counts none of its blocks, and they go
through the threads' own caches. */
constexpr bool is_mallocs(Pool pool) { return pool <= Pool::connection; }
static_assert(is_mallocs(Pool::general) && !is_mallocs(Pool::fts_query));

/** Why a pool is purged. */
enum class Purge_reason : uint8_t {
  /** Somebody said so. */
  asked,
  /** It fell quiet (Policy::quiet_ms). */
  quiet,
  /** It had too many unused pages (Policy::dirty_limit). */
  dirty_limit,
  /** The machine or the cgroup is short of memory. */
  pressure
};
inline constexpr const char *purge_reason_names[] = {"asked", "quiet",
                                                     "dirty_limit", "pressure"};

/** The pool of that name, as written in the list, in any case of letters. */
std::optional<Pool> find_pool(std::string_view name);

namespace pools {

/** Whoever wants to know what lives of his blocks names an account for them;
the pool keeps it. 0: none. */
using Account = uint16_t;
constexpr size_t max_accounts = 1024;

/** Allocate. A pool that is_mallocs() is malloc(), and keeps no accounts.
@param zero  whether the block is to be filled with zeros, as calloc() does
@return nullptr: no memory at all */
[[nodiscard]] void *allocate(Pool pool, size_t size, bool zero = false,
                             Account account = 0) noexcept;

/** Free a block of `pool`, of any thread, or nullptr.
@param size     as given to allocate(); 0: not known, which is slower
@param account  as given to allocate() */
void free(Pool pool, void *block, size_t size, Account account = 0) noexcept;

/** Free a block of the general allocator that nothing is known of but which
pool it was meant for: it may have served for that pool, which then counts one
block less to look for. */
void free_general(Pool pool, void *block) noexcept;

/** From now on malloc() takes the calling thread's blocks from an arena of
Pool::connection. Where there is none to be had, all stays as it is. What the
thread's cache already has, and what it frees of others, it still hands out
first. To be called once; takes a microsecond. */
void bind_thread_to_connection() noexcept;

/** What lives of an account, in all pools: bytes of size classes, and blocks.
Blocks that the general allocator served for a pool are not in it. */
struct Live {
  uint64_t bytes;
  uint64_t blocks;
};
Live live(Account account);

/** The same of the accounts from 0 on, so many of them, much faster than one by
one. */
std::vector<Live> live_of_first(size_t accounts);

/** Which pool an arena belongs to; Pool::general for automatic arenas. */
Pool owner_of_arena(unsigned arena);

/** Arenas that the pool has made so far. For Pool::general none: its arenas
are those that no pool owns. Calls visit(arena index) for each. */
template <typename Visitor>
void for_each_arena(Pool pool, Visitor visit);

/** What the layer itself counts of a pool; the rest is in the statistics of
its arenas. Values are of one moment each, not of one moment together. */
struct Counters {
  /** Bytes handed out and not yet freed; 0 where is_mallocs(). */
  uint64_t live_bytes;
  /** Highest live_bytes seen by the sampler (every tick_ms of
  mysys/memdiag/purging/purger.h) or by a caller of counters(), and when, as microseconds
  since the epoch; 0 if it was never used. */
  uint64_t peak_bytes;
  uint64_t peak_time_us;
  /** Blocks that the general allocator served because the pool could not. */
  uint64_t fallbacks;
  /** Purges asked for or at the end of a burst, what they gave back and how
  long they took; decay by jemalloc's own threads is not in here. */
  uint64_t purges;
  uint64_t purged_bytes;
  uint64_t purge_us;
  /** What of purged_bytes had to be taken again within a second. */
  uint64_t refaulted_bytes;
};
Counters counters(Pool pool);

/** Bytes that ever came into and left the pool; changes whenever it is used. */
uint64_t activity(Pool pool);

/** Blocks alive that the general allocator served for the pool. While there are
any, each free of the pool looks where its block came from. */
uint64_t fallback_blocks(Pool pool);

/** Bytes that were ever allocated from the pool. */
uint64_t allocated_bytes(Pool pool);

/** Bytes of its unused pages; asks jemalloc for new statistics. */
Result<uint64_t> dirty_bytes(Pool pool);

/** How many times its quiet_ms a pool waits before it is purged: 1, or more
where pages that were given back had to be taken again. */
uint32_t backoff(Pool pool);

/** Of what a purge gave back, `bytes` were taken again.
@param max_backoff  wait twice as long from now on, up to so much; 0: half as
                    long again */
void note_refault(Pool pool, uint64_t bytes, uint32_t max_backoff);

/** What a purge did. Resident bytes are jemalloc's, of the purged arenas. */
struct Receipt {
  uint64_t resident_before_bytes;
  uint64_t resident_after_bytes;
  uint64_t duration_us;
  unsigned arenas;
  /** 0, or the errno of the first step that failed; the sizes then count only
  what could be read. */
  int error;

  /** 0 if more was allocated meanwhile than given back. */
  constexpr uint64_t released_bytes() const {
    return resident_before_bytes > resident_after_bytes
               ? resident_before_bytes - resident_after_bytes
               : 0;
  }
};

/** Give the unused pages of a pool back to the system, on this thread, and note
it in the log of purges. Purges are serialised; allocation goes on meanwhile.
Pool::general purges all arenas that no pool owns. */
Receipt purge(Pool pool, Purge_reason reason = Purge_reason::asked);

/** Purge every arena there is. */
Receipt purge_all(Purge_reason reason = Purge_reason::asked);

/** Allocations that are to fail, to test what then happens. */
struct Failures {
  uint32_t count;
  /** How many succeed before. */
  uint32_t skip{0};
  /** Which count at all: those of one pool, of one account (0: any), of the
  calling thread. */
  std::optional<Pool> pool{};
  Account account{0};
  bool this_thread{false};
  /** false: the pool has no page to give. true: the general allocator has no
  memory either, and allocate() returns nullptr. */
  bool hard{false};
};
/** Make allocations from pools fail. Overlapping calls mix.
@return how many of the call before are left over */
uint32_t fail_allocations_for_test(const Failures &failures);

namespace detail {
constexpr unsigned max_shards = 64;
/** Arena index of a shard of a pool, or -1 while there is none. */
int arena_of_shard(Pool pool, unsigned shard);
}  // namespace detail

template <typename Visitor>
void for_each_arena(Pool pool, Visitor visit) {
  for (unsigned shard = 0; shard < detail::max_shards; ++shard) {
    const int arena = detail::arena_of_shard(pool, shard);
    if (arena >= 0) visit(static_cast<unsigned>(arena));
  }
}

}  // namespace pools
}  // namespace memdiag

#endif  // MEMDIAG_POOLS_H
