/*
  memdiag_fail_reads(what), a loadable function for tests: makes one source of
  figures of the running server fail, for all sessions, until it is called
  again. '' ends it.

    what   a control of jemalloc as in the list below, 'regions',
           '/proc/meminfo', 'innodb' (its dictionary is in use), 'variables',
           or 'profile' (no memory for the heap profiler)

  Returns NULL.
*/

#include <mysql/udf_registration_types.h>

#include <cstring>
#include <string_view>

#include "mysys/memdiag/pages/presence.h"
#include "plugin/memdiag/allocator/control_reader.h"
#include "plugin/memdiag/host/host.h"
#include "plugin/memdiag/server/bridge/budget_facts.h"
#include "plugin/memdiag/server/threads/profile_switch.h"
#include "storage/innobase/memdiag/innodb.h"

namespace {

using memdiag::Ctl;

struct Control {
  std::string_view name;
  Ctl ctl;
};
constexpr Control controls[] = {
    {"stats.resident", Ctl::stats_resident},
    {"stats.arenas.pdirty", Ctl::stats_arena_pdirty},
    {"stats.arenas.bins.curregs", Ctl::stats_bin_curregs},
    {"arenas.narenas", Ctl::arenas_narenas},
};

/** @return false: there is no such source */
bool fail(std::string_view what) {
  memdiag::fail_reads_for_test(Ctl::count);
  memdiag::Presence::fail_for_test(what == "regions");
  memdiag::host::fail_reads_for_test(what == "/proc/meminfo" ? "/proc/meminfo"
                                                             : nullptr);
  memdiag::innodb::find_busy_for_test(what == "innodb");
  memdiag::budget::fail_reads_for_test(what == "variables");
  memdiag::profile_switch::fail_for_test(what == "profile");
  for (const Control &control : controls)
    if (what == control.name) {
      memdiag::fail_reads_for_test(control.ctl);
      return true;
    }
  for (const char *other :
       {"", "regions", "/proc/meminfo", "innodb", "variables", "profile"})
    if (what == other) return true;
  return false;
}

}  // namespace

extern "C" bool memdiag_fail_reads_init(UDF_INIT *init, UDF_ARGS *args,
                                        char *message) {
  if (args->arg_count != 1) {
    strcpy(message, "it takes the source that fails");
    return true;
  }
  args->arg_type[0] = STRING_RESULT;
  init->maybe_null = true;
  init->const_item = false;
  return false;
}

extern "C" long long memdiag_fail_reads(UDF_INIT *, UDF_ARGS *args,
                                        unsigned char *is_null,
                                        unsigned char *error) {
  const std::string_view what =
      args->args[0] == nullptr
          ? std::string_view{"NULL"}
          : std::string_view{args->args[0], args->lengths[0]};
  if (!fail(what)) *error = 1;
  *is_null = 1;
  return 0;
}
