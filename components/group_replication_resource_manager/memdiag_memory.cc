/*
  Lets component_group_replication_resource_manager judge a member by the memory
  of its control group. The component reads /proc/meminfo, which has the
  machine's figures in a container too: a member in a container would be killed
  before it is expelled.

  No file of the component is patched. The linker redirects its only call of
  get_memory_info() to this file (--wrap, in cmake/upstream/product.cmake).

  Threads: the component's own. Errors: as the replaced function. Units: bytes,
  percent.
*/

#include "components/group_replication_resource_manager/resource_manager_memory_stats.h"
#include "components/group_replication_resource_manager/resource_manager_stats_collector.h"
#include "sql/memdiag/member.h"

extern gr_resource_manager::Lag_metadata_thresholds lag_metadata_threshold;

int of_the_machine(gr_resource_manager::Memory_Info &memory) asm(
    "__real__ZN19gr_resource_manager15get_memory_infoERNS_11Memory_InfoE");
int of_the_control_group(gr_resource_manager::Memory_Info &memory) asm(
    "__wrap__ZN19gr_resource_manager15get_memory_infoERNS_11Memory_InfoE");

int of_the_control_group(gr_resource_manager::Memory_Info &memory) {
  const int error = of_the_machine(memory);
  if (memdiag_member_memory != nullptr)
    memdiag_member_memory(lag_metadata_threshold.used_memory_limit,
                          &memory.sys.m_total_bytes, &memory.sys.m_avail_bytes);
  return error;
}
