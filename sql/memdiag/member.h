/*
  The hook by which component_group_replication_resource_manager gets this
  server's figures of memory
  (components/group_replication_resource_manager/memdiag_memory.cc). It is weak,
  as those of mysys/memdiag/upstream/hooks.h: a server without our layer may
  load the component, which then reads /proc/meminfo.

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

#endif  // MEMDIAG_MEMBER_H
