/*
  Threads of connections take malloc()'s blocks from arenas of
  Pool::connection, at malloc()'s cost.

  Threads: each binds itself, to the arena with the fewest bound threads. There
  is an arena for each CPU of the process, and more where 16 threads share each.
*/

#ifndef MEMDIAG_BOUND_THREADS_H
#define MEMDIAG_BOUND_THREADS_H

namespace memdiag::pools {

/** From now on malloc() takes the calling thread's blocks from an arena of
Pool::connection. If none can be had, nothing changes. Blocks that the thread's
cache already holds, and those of others that it frees, are still handed out
first. Called once for a thread; takes a microsecond. */
void bind_thread_to_connection() noexcept;

/** Empty the calling thread's cache of malloc()'s blocks and free the cache
itself, 40 KB. Until resume_cache(), each block is taken from its arena. */
void suspend_cache() noexcept;
/** Make a new cache for the calling thread, unless it has one. */
void resume_cache() noexcept;

}  // namespace memdiag::pools

#endif  // MEMDIAG_BOUND_THREADS_H
