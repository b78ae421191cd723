/*
  Blocks that use no cache: a thread takes them from an arena and gives them
  back to it, under the arena's own locks. These are blocks too large for a
  cache, and small ones while interrupted threads hold all caches.

  A thread that is interrupted while it holds such a lock waits for its next
  turn at the CPU, and all threads that need the lock wait with it. So each
  arena has a flag that says whether a thread is at work in it. An allocation
  that finds the flag held takes the block from another arena. A block below
  large_size that comes back while the flag is held is left with the holder, who
  frees it afterwards. A larger one is not: its arena would take as many new
  pages meanwhile.

  A thread that cannot go elsewhere asks again after a pause. It does not queue
  for the arena's lock. A mutex wakes one sleeper at a time, and the next one
  only after that one had its turn at the CPU: among 1,024 running threads, 300
  slept up to twelve seconds before a mutex that was free nearly all the time.

  Nothing depends on the flag. After a second of pauses, a thread frees what was
  left in the arena and waits for its locks.

  Threads: any.
  Ownership: a block that is left with a holder is no longer the caller's. It is
  freed when the holder has finished.
  Units: bytes.
*/

#ifndef MEMDIAG_UNCACHED_H
#define MEMDIAG_UNCACHED_H

#include <atomic>
#include <cstddef>

#include "mysys/memdiag/pools/pool.h"
#include "mysys/memdiag/pools/sharing.h"

namespace memdiag::pools {

/** Blocks from this size on do not come from the arena of the CPU's shard: a
thread that goes on on another CPU would leave its freed pages behind and take
as many again. Where blocks of this size come and go, the pages cost more than
threads that wait for each other. (jemalloc has one arena for blocks of more
than 8 MB, for the same reason.) */
constexpr size_t large_size = 512 << 10;

/** The slot of a shard's arena. Where shards share arenas, a stand-in has
another one than the shard that it stands in for, except while all share the
first. */
inline unsigned slot_of_shard(Pool pool, unsigned shard) {
  const unsigned arenas = spec_of(pool).arenas;
  return shares_one_arena() ? 0 : (shard + shard / arenas) % arenas;
}

/** The flag of one arena of a pool, for as long as this lives. */
class At_work {
 public:
  /** The arena of the CPU's shard, or of the first stand-in that is free.
  Pauses while none is.
  @param own  the number of the CPU's shard */
  static At_work in_pool(Pool pool, unsigned own) noexcept;
  /** The arena of the calling thread's large blocks, or one of the next three.
  Pauses as in_pool(). */
  static At_work for_large_block(Pool pool) noexcept;
  /** The arena in this slot. Pauses as in_pool(). */
  At_work(Pool pool, unsigned slot) noexcept;
  /** Frees what was left with this thread. */
  ~At_work();
  At_work(const At_work &) = delete;
  At_work &operator=(const At_work &) = delete;

  /** false: another thread holds the flag. */
  bool is_mine() const { return m_is_mine; }
  unsigned slot() const { return m_slot; }

 private:
  At_work(Pool pool, unsigned slot, bool is_mine)
      : m_pool(pool), m_slot(slot), m_is_mine(is_mine) {}

  const Pool m_pool;
  const unsigned m_slot;
  const bool m_is_mine;
};

/** Give a block of the pool back to its arena, now or soon. Pauses while
another thread is at work in the arena of a large block.
@param size  as asked for at allocation */
void free_uncached(Pool pool, void *block, size_t size) noexcept;

/** The forked child's flags are free: their holders are not in it. */
void forget_work_of_others() noexcept;

}  // namespace memdiag::pools

#endif  // MEMDIAG_UNCACHED_H
