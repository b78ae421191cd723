/*
  The functions that threads of the plugin group_replication call
  (plugin/group_replication/memdiag_threads.cc). They are weak, as in
  mysys/memdiag/upstream/hooks.h: the plugin may be loaded by a server without
  our layer, and then uses malloc() itself. Threads: any. Units: bytes.
*/

#ifndef MEMDIAG_THREAD_HOOKS_H
#define MEMDIAG_THREAD_HOOKS_H

#include <stddef.h>

extern "C" {
/** From now on malloc() takes the calling thread's blocks from the pool
group_replication, unless that pool is disabled. */
[[gnu::weak]] void memdiag_group_replication_thread();
/** malloc() or calloc(), and free(), for the plugin's own code on any thread. A
session's block that it passes to a thread of the plugin is of the pool, too.
Allocating returns nullptr if there is no memory. */
[[gnu::weak]] void *memdiag_group_replication_allocate(size_t size, bool zero);
[[gnu::weak]] void memdiag_group_replication_free(void *block);
}

namespace memdiag {

inline void group_replication_thread() {
  if (memdiag_group_replication_thread != nullptr)
    memdiag_group_replication_thread();
}

}  // namespace memdiag

#endif  // MEMDIAG_THREAD_HOOKS_H
