/*
  Blocks that use no cache: a thread takes them from an arena and gives them
  back to it, under the arena's own locks. These are blocks too large for a
  cache, and small ones while interrupted threads hold all caches.

  A thread that is interrupted while it holds such a lock waits for its next
  turn at the CPU, and all threads that need the lock wait with it. So each
  arena has a flag that says whether a thread is at work in it. An allocation
  that finds the flag held takes the block from another arena. A block below
  large_size that comes back while the flag is held is left with the holder, who
  frees it afterwards. A larger one waits for the flag: its arena would take as
  many new pages meanwhile.

  A thread that cannot go elsewhere pauses and asks again. A mutex in the flag's
  place would wake one sleeper at a time, and the next one only after that one
  had its turn at the CPU (mysys/memdiag/README.md, "Stand-ins").

  Nothing depends on the flag. After 130 pauses, 1 s in all, a thread frees what
  was left in the arena and goes to the arena's locks. Caches that are filled or
  flushed, and purges, take these locks without the flag.

  Threads: any. A call may sleep.
  Ownership: a block that is left with a holder is no longer the caller's. It is
  freed when the holder has finished.
  Units: bytes.
*/

#ifndef MEMDIAG_UNCACHED_H
#define MEMDIAG_UNCACHED_H

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "mysys/memdiag/pools/cpus.h"
#include "mysys/memdiag/pools/pool.h"
#include "mysys/memdiag/pools/sharing.h"

namespace memdiag::pools {

/** The arena of a block from this size on is chosen by the thread and not by
the CPU: a thread that goes on on another CPU would leave its freed pages behind
and take as many again. (jemalloc has one arena for blocks of more than 8 MB,
for the same reason.) While another thread is at work in the arena, the block
comes from another one; that costs pages, too, but less than a wait. */
constexpr size_t large_size = 512 << 10;

/** Larger blocks are pages of their own, which no cache holds. */
constexpr size_t largest_cached = 32 << 10;

/** The arenas that a thread may take in place of its first one are this many
slots apart. So a pool with four arenas or more has another one for each
stand-in, for any number of CPUs. */
inline unsigned slots_apart(unsigned arenas) {
  return std::max(1U, arenas / (1 + stand_ins));
}

/** The slot of the arena of a shard, which may be a stand-in. */
inline unsigned slot_of_shard(Pool pool, unsigned shard) {
  if (shares_one_arena()) return 0;
  const unsigned arenas = spec_of(pool).arenas;
  const unsigned own = stand_in_shards().distance;
  return (shard % own + shard / own * slots_apart(arenas)) % arenas;
}

/** The flag of one arena of a pool, for as long as this lives, if is_mine(). */
class Arena_guard {
 public:
  /** The arena of the CPU's shard, or one of three others. Pauses while another
  thread is at work in each.
  @param own  the number of the CPU's shard */
  static Arena_guard in_pool(Pool pool, unsigned own) noexcept;
  /** The arena of the calling thread's large blocks, or one of three others.
  Pauses as in_pool(). */
  static Arena_guard for_large_block(Pool pool) noexcept;
  /** The arena in this slot. Pauses as in_pool(). */
  Arena_guard(Pool pool, unsigned slot) noexcept : Arena_guard(pool, slot, 1) {}
  /** Frees what was left with this thread. */
  ~Arena_guard();
  Arena_guard(const Arena_guard &) = delete;
  Arena_guard &operator=(const Arena_guard &) = delete;

  /** false: the pauses were in vain, or all CPUs share one arena (sharing.h),
  where no thread pauses. slot() is the first choice then. */
  bool is_mine() const { return m_is_mine; }
  unsigned slot() const { return m_slot; }

 private:
  /** @param candidates  from `slot` on, slots_apart() */
  Arena_guard(Pool pool, unsigned slot, unsigned candidates) noexcept;

  const Pool m_pool;
  unsigned m_slot;
  bool m_is_mine;
};

/** Give a block of the pool back to its arena, now or soon. Pauses while
another thread is at work in the arena of a large block.
@param size  as asked for at allocation */
void free_uncached(Pool pool, void *block, size_t size) noexcept;

/** @name Blocks of more than largest_cached bytes in the arena of a slot
free_uncached() counts them down. @{ */
/** @param size  of a block that was allocated there, as asked for */
void note_pages(Pool pool, unsigned slot, size_t size) noexcept;
/** The most bytes at a moment since the last call, with the pages that jemalloc
takes beside a block (placed::extent_bytes), less the blocks' own of now. What
it took beside a block that lives for long may be gone since. */
uint64_t surplus_of_pages(Pool pool, unsigned slot) noexcept;
/** @} */

/** The forked child's flags are free: their holders are not in it. */
void forget_work_of_others() noexcept;

}  // namespace memdiag::pools

#endif  // MEMDIAG_UNCACHED_H
