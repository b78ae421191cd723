/*
  The hook by which the patched component_group_replication_resource_manager
  gets this server's figures of memory. It is weak, as those of
  mysys/memdiag/upstream/hooks.h: a server without our layer may load the
  component, which then reads /proc/meminfo.

  Threads: one at a time. Units: bytes, percent.
*/

#ifndef MEMDIAG_MEMBER_H
#define MEMDIAG_MEMBER_H

#include <stdint.h>

extern "C" {
/** Replaces the machine's figures by those of the control group, if it has less
(plugin/memdiag/host/member_memory.h). Leaves them unchanged if they cannot
be read.
@param limit_percent  use above which the component counts towards expelling the
                      member. The hook purges pools before it returns such a
                      use. 0: the component does not judge memory. */
[[gnu::weak]] void memdiag_member_memory(unsigned limit_percent,
                                         uint64_t *total_bytes,
                                         uint64_t *available_bytes);
}

namespace memdiag {

/** Replaces the figures as memdiag_member_memory() does.
@tparam Memory  System_Memory_Info of the component */
template <typename Memory>
void judge(unsigned limit_percent, Memory *memory) {
  if (memdiag_member_memory != nullptr)
    memdiag_member_memory(limit_percent, &memory->m_total_bytes,
                          &memory->m_avail_bytes);
}

}  // namespace memdiag

#endif  // MEMDIAG_MEMBER_H
