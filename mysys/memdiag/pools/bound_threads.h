/*
  Threads that are bound to a pool take malloc()'s blocks from arenas of that
  pool, at malloc()'s cost: Pool::connection and Pool::group_replication.

  Threads: each binds itself, to the pool's arena with the fewest bound threads.
  A pool has no arena before its first thread is bound. Then it has one for each
  CPU of the process, or one for each 16 threads if that is more, up to the
  number in pool_list.h. Ownership: as for malloc(). Errors: without an arena or
  a cache, the thread goes on as it is. Units: bytes.
*/

#ifndef MEMDIAG_BOUND_THREADS_H
#define MEMDIAG_BOUND_THREADS_H

#include <cstddef>

#include "mysys/memdiag/pools/pool.h"

namespace memdiag::pools {

/** From now on malloc() takes the calling thread's blocks from an arena of the
pool. If none can be had, nothing changes. Blocks of others that the thread's
cache holds, or will hold, are still handed out first. For Pool::connection the
cache is made anew, and small. Takes 4 us. A thread that is bound again leaves
the former pool.
@param pool  one that uses_malloc(), and not Pool::general */
void bind_thread(Pool pool) noexcept;

/** @name malloc() and free() for code that passes blocks from other threads to
bound ones
A bound thread frees such a block into its cache, which would hand it out again
as if it came from the pool. So every thread takes such blocks from the pool's
arenas. A thread that is not bound does not use its cache for them, which takes
0.1 us longer. A free looks up the arena, which takes 20 ns longer.
@param pool  as for bind_thread() @{ */
[[nodiscard]] void *allocate_as_bound(Pool pool, size_t size,
                                      bool zero) noexcept;
/** @param block  of malloc() or of the above */
void free_as_bound(Pool pool, void *block) noexcept;
/** @} */

/** Empty the calling thread's cache of malloc()'s blocks and free the cache
itself. Until resume_cache(), each block is taken from its arena. */
void suspend_cache() noexcept;
/** Make a new cache for the calling thread, if suspend_cache() freed one. If
there is no memory for it, the thread goes on without. The next resume_cache()
or bind_thread() tries again. */
void resume_cache() noexcept;

}  // namespace memdiag::pools

#endif  // MEMDIAG_BOUND_THREADS_H
