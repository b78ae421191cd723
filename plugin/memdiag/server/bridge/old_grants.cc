#include "plugin/memdiag/server/bridge/old_grants.h"

#include <string>

#include "plugin/memdiag/server/bridge/error_log.h"
#include "sql/auth/dynamic_privilege_table.h"
#include "sql/replication.h"

namespace memdiag::old_grants {
namespace {

constexpr const char *old_name = "MEMDIAG_ADMIN";

/** Right after the server has read the grants. No other thread changes the
names of privileges yet: neither clients nor replicas have begun. */
int look(Server_state_param *) {
  if (is_dynamic_privilege_defined(old_name))
    error_log::warn(std::string("grants of ") + old_name +
                    " are ignored: memdiag_purge() needs RELOAD. Grant that "
                    "instead, and remove the old grants by REVOKE.");
  return 0;
}

Server_state_observer observer = {
    .len = sizeof(Server_state_observer),
    .before_handle_connection = nullptr,
    .before_recovery = nullptr,
    .after_engine_recovery = nullptr,
    .after_recovery = look,
    .before_server_shutdown = nullptr,
    .after_server_shutdown = nullptr,
    .after_dd_upgrade_from_57 = nullptr,
};

}  // namespace

bool watch_for(void *plugin) {
  return register_server_state_observer(&observer, plugin) == 0;
}

void stop(void *plugin) {
  (void)unregister_server_state_observer(&observer, plugin);
}

}  // namespace memdiag::old_grants
