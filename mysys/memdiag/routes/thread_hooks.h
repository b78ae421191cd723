/*
  The function that threads of the plugin group_replication call
  (plugin/group_replication/memdiag_threads.cc). It is weak, as in
  mysys/memdiag/routes/hooks.h: the plugin may be loaded by a server without our
  layer.
*/

#ifndef MEMDIAG_THREAD_HOOKS_H
#define MEMDIAG_THREAD_HOOKS_H

extern "C" {
/** What the calling thread takes from malloc() is from now on the pool
group_replication's, unless that pool is disabled. */
[[gnu::weak]] void memdiag_group_replication_thread();
}

namespace memdiag {

inline void group_replication_thread() {
  if (memdiag_group_replication_thread != nullptr)
    memdiag_group_replication_thread();
}

}  // namespace memdiag

#endif  // MEMDIAG_THREAD_HOOKS_H
