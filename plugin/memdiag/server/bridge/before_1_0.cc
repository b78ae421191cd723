#include "plugin/memdiag/server/bridge/before_1_0.h"

#include <mysql/plugin.h>

#include <string>

#include "plugin/memdiag/server/bridge/error_log.h"
#include "sql/auth/dynamic_privilege_table.h"
#include "sql/replication.h"

namespace memdiag::before_1_0 {
namespace {

/** GONE(name, what to see instead) */
#define MEMDIAG_GONE_OPTIONS(GONE)                        \
  GONE(pressure_watcher, "memdiag_memory_target")         \
  GONE(pressure_limit, "memdiag_memory_target")           \
  GONE(pressure_stall_percent, "memdiag_memory_target")   \
  GONE(pressure_buffer_pool_min, "memdiag_memory_target") \
  GONE(admission, "memdiag_memory_target")                \
  GONE(admission_reserve, "memdiag_memory_target")        \
  GONE(admission_wait_ms, "memdiag_memory_wait_ms")

constexpr unsigned flags =
    PLUGIN_VAR_NOSYSVAR | PLUGIN_VAR_READONLY | PLUGIN_VAR_OPCMDARG;

#define DECLARE(name, instead)                                           \
  char *name##_text;                                                     \
  static MYSQL_SYSVAR_STR(name, name##_text, flags,                      \
                          "Does nothing, and is gone (docs/ceiling.md)", \
                          nullptr, nullptr, nullptr);
MEMDIAG_GONE_OPTIONS(DECLARE)
#undef DECLARE

struct Gone {
  const char *name;
  char *const *text;
  const char *instead;
};
#define ROW(name, instead) {"memdiag_" #name, &name##_text, instead},
constexpr Gone all[] = {MEMDIAG_GONE_OPTIONS(ROW)};
#undef ROW

constexpr const char *old_privilege = "MEMDIAG_ADMIN";

/** Right after the server has read the grants. No other thread changes the
names of privileges yet: neither clients nor replicas have begun. */
int look_for_grants(Server_state_param *) {
  if (is_dynamic_privilege_defined(old_privilege))
    error_log::warn(std::string("grants of ") + old_privilege +
                    " are ignored: memdiag_purge() needs RELOAD. Grant that "
                    "instead, and remove the old grants by REVOKE.");
  return 0;
}

Server_state_observer observer = {
    .len = sizeof(Server_state_observer),
    .before_handle_connection = nullptr,
    .before_recovery = nullptr,
    .after_engine_recovery = nullptr,
    .after_recovery = look_for_grants,
    .before_server_shutdown = nullptr,
    .after_server_shutdown = nullptr,
    .after_dd_upgrade_from_57 = nullptr,
};

}  // namespace

#define OPTION(name, instead) MYSQL_SYSVAR(name),
SYS_VAR *options[] = {MEMDIAG_GONE_OPTIONS(OPTION) nullptr};
#undef OPTION

void name_set_options() {
  for (const Gone &gone : all)
    if (*gone.text != nullptr)
      error_log::warn(std::string(gone.name) +
                      " is gone and does nothing: remove it from the options, "
                      "and see " +
                      gone.instead);
}

bool watch_for_grants(void *plugin) {
  return register_server_state_observer(&observer, plugin) == 0;
}

void stop(void *plugin) {
  (void)unregister_server_state_observer(&observer, plugin);
}

}  // namespace memdiag::before_1_0
