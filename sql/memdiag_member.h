/*
  What the patched component_group_replication_resource_manager asks about this
  server's memory. The hook is weak, as in mysys/memdiag/routes/hooks.h: the
  component may be loaded by a server without our layer, and reads /proc/meminfo
  there.

  Threads: one at a time. Units: bytes, percent.
*/

#ifndef MEMDIAG_MEMBER_H
#define MEMDIAG_MEMBER_H

#include <stdint.h>

extern "C" {
/** Replaces the machine's figures by those of the control group, if it has less
(plugin/memdiag/advice/member_memory.h). What cannot be read stays as it is.
@param limit_percent  use above which the component counts towards expelling the
                      member. Pools are purged before such a use is told. 0:
                      memory is not judged. */
[[gnu::weak]] void memdiag_member_memory(unsigned limit_percent,
                                         uint64_t *total_bytes,
                                         uint64_t *available_bytes);
}

namespace memdiag {

/** @tparam Memory  System_Memory_Info of the component */
template <typename Memory>
void judge(unsigned limit_percent, Memory *memory) {
  if (memdiag_member_memory != nullptr)
    memdiag_member_memory(limit_percent, &memory->m_total_bytes,
                          &memory->m_avail_bytes);
}

}  // namespace memdiag

#endif  // MEMDIAG_MEMBER_H
