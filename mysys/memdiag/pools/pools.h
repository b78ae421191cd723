/*
  Pools: memory of one purpose in arenas of its own.

  A pool has a shard for each CPU that uses it: a cache of small blocks, and
  counters. Shards take their blocks from the pool's jemalloc arenas, of which
  each serves one or several CPUs. Nothing else allocates there: pools bypass
  the threads' automatic caches in both directions, so a block freed into a pool
  is never handed to another subsystem, nor the reverse. Pages of a pool
  therefore fall empty together and can be given back together. Pools for which
  uses_malloc() is true are the exception: they are malloc(), of some threads or
  of all.

  Ownership: a block belongs to the caller. Any thread may free it, with the
  pool, the size and the account it was allocated with.
  Threads: every function may be called from any thread, and needs no
  initialisation: before main(), after fork() and at exit too. Allocation takes
  a mutex of this layer to make an arena, and where the ceiling lets the thread
  wait: for five seconds, or 50 for a large block (ceiling/ask.h). Otherwise
  neither it nor free() takes one, but for blocks of watched_size while a
  replica's thread reads large ones (ceiling/loose_blocks.h). With a block that
  no cache holds, both may pause while another thread is at work in its arena
  (uncached.h).
  Errors: allocate() returns nullptr when the general allocator has no memory
  either, or when the ceiling refuses the block (Watcher::ask in attention.h). A
  pool that cannot get an arena or a page falls back to the general allocator,
  and counts it.
  Units: bytes of size classes, as jemalloc accounts them; microseconds since
  the epoch.
*/

#ifndef MEMDIAG_POOLS_H
#define MEMDIAG_POOLS_H

#include <cstddef>
#include <cstdint>
#include <vector>

#include "mysys/memdiag/pools/pool.h"

namespace memdiag::pools {

/** Allocate a block. From a pool that uses_malloc() it is malloc()'s, and no
account counts it.
@param zero     fill the block with zeros, as calloc() does
@param account  counts the block as live until it is freed; 0: none does
@return nullptr: no memory, or the ceiling refused the block */
[[nodiscard]] void *allocate(Pool pool, size_t size, bool zero = false,
                             Account account = 0) noexcept;

/** Free a block of `pool`, of any thread, or nullptr.
@param size     as given to allocate(); 0: not known, which is slower
@param account  as given to allocate() */
void free(Pool pool, void *block, size_t size, Account account = 0) noexcept;

/** Free a block of the general allocator that was meant for a pool, or for
none. If it served for the pool because the pool could not, it no longer counts
as a fallback that is live. */
void free_general(Pool pool, void *block) noexcept;

/** Live bytes and blocks of an account, in all pools. Blocks that the general
allocator served for a pool are not counted. */
struct Live {
  uint64_t bytes;
  uint64_t blocks;
};
/** Those of the first `accounts` accounts. Adding up takes long.
@throws std::bad_alloc */
std::vector<Live> live_of_first(size_t accounts);

/** The layer's own counters of a pool; the statistics of its arenas have
the rest. Each value is of one moment, not all of the same one. Blocks that the
general allocator served for the pool are in `fallbacks` only; activity(),
allocated_bytes() and the Block_listener leave them out, too. */
struct Counters {
  /** Bytes handed out and not yet freed; 0 where uses_malloc(). */
  uint64_t live_bytes;
  /** The highest live_bytes that a call of counters() saw, and when; 0 if the
  pool was never used. The purger calls it every tick while the pool is used. */
  uint64_t peak_bytes;
  uint64_t peak_time_us;
  /** Blocks that the general allocator served because the pool could not. */
  uint64_t fallbacks;
  /** Blocks that came or went while another thread had the CPU's shard: they
  went round its cache. */
  uint64_t bypasses;
};
Counters counters(Pool pool);

/** Bytes that wait in the pool's caches. jemalloc counts them as allocated.
@param allocated_bytes  in the pool's arenas, by jemalloc's statistics */
constexpr uint64_t cached_bytes(const Counters &counters,
                                uint64_t allocated_bytes) {
  return allocated_bytes > counters.live_bytes
             ? allocated_bytes - counters.live_bytes
             : 0;
}

/** Bytes that ever came into and left the pool; changes whenever it is used. */
uint64_t activity(Pool pool);

/** Peak minus current live bytes since the last call, of the arena in a slot
(arenas.h); blocks of more than 32 KB only. The peak has the pages beside the
blocks that jemalloc keeps for the next ones. For the purger: each call begins
anew. */
uint64_t recent_surplus(Pool pool, unsigned slot);

/** Live blocks that the general allocator served for the pool. While there are
any, a free of the pool looks up where its block came from, unless
fallback_filter.h rules it out. */
uint64_t fallback_blocks(Pool pool);

/** Bytes that were ever allocated from the pool. */
uint64_t allocated_bytes(Pool pool);

/** Called for each block of an account that a pool hands out (bytes > 0) or
takes back (bytes < 0), by the thread that does it, which may hold the shard: it
must not allocate from a pool. */
using Block_listener = void (*)(Pool, Account, int64_t bytes) noexcept;

/** Set the listener; nullptr: none. A thread that is at work may still call the
one before. */
void set_block_listener(Block_listener listener) noexcept;

/** Give the blocks that wait in the pool's caches back to its arenas, and the
caches too. A cache in use at the moment is left alone. */
void drop_caches(Pool pool) noexcept;

/** The same for the caches of shards that moved less than so many bytes since
the last call, and for one of the others, in turn. A shard whose cache could not
be made tries again. */
void trim_caches(Pool pool, uint64_t least_bytes) noexcept;

/** @name Around fork(), see mysys/memdiag/fork.cc
No thread makes or uses a cache while fork() is under way. @{ */
void hold_caches() noexcept;
void let_go_of_caches(bool in_child) noexcept;
/** @} */

}  // namespace memdiag::pools

#endif  // MEMDIAG_POOLS_H
