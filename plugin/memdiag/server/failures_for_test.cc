#include "plugin/memdiag/server/failures_for_test.h"

#include "my_dbug.h"
#include "mysys/memdiag/pages/presence.h"
#include "plugin/memdiag/allocator/control_reader.h"
#include "plugin/memdiag/host/host.h"
#include "plugin/memdiag/server/budget_facts.h"
#include "storage/innobase/memdiag_innodb.h"

namespace memdiag {

void set_failures_for_test() {
  DBUG_EXECUTE_IF("memdiag_fail_stats_resident",
                  fail_reads_for_test(Ctl::stats_resident););
  DBUG_EXECUTE_IF("memdiag_fail_arena_pdirty",
                  fail_reads_for_test(Ctl::stats_arena_pdirty););
  DBUG_EXECUTE_IF("memdiag_fail_bin_curregs",
                  fail_reads_for_test(Ctl::stats_bin_curregs););
  DBUG_EXECUTE_IF("memdiag_fail_arenas_narenas",
                  fail_reads_for_test(Ctl::arenas_narenas););
  DBUG_EXECUTE_IF("memdiag_fail_regions", Presence::fail_for_test(true););
  DBUG_EXECUTE_IF("memdiag_fail_host",
                  host::fail_reads_for_test("/proc/meminfo"););
  DBUG_EXECUTE_IF("memdiag_fail_innodb", innodb::find_busy_for_test(true););
  DBUG_EXECUTE_IF("memdiag_fail_variables", budget::fail_reads_for_test(true););
  DBUG_EXECUTE_IF(
      "memdiag_fail_nothing", fail_reads_for_test(Ctl::count);
      Presence::fail_for_test(false); host::fail_reads_for_test(nullptr);
      innodb::find_busy_for_test(false); budget::fail_reads_for_test(false););
}

}  // namespace memdiag
