#include "plugin/memdiag/server/bridge/admin_privilege.h"

#include <mysql/components/my_service.h>
#include <mysql/components/services/dynamic_privilege.h>

#include <cstring>

#include "my_sys.h"
#include "mysqld_error.h"
#include "plugin/memdiag/tables/purge_receipt.h"
#include "sql/auth/sql_security_ctx.h"
#include "sql/mysqld.h"
#include "sql/sql_class.h"

namespace memdiag::admin_privilege {
namespace {
using Register = my_service<SERVICE_TYPE(dynamic_privilege_register)>;
constexpr const char *service_name = "dynamic_privilege_register";
}  // namespace

bool register_it() {
  const Register service(service_name, srv_registry);
  return service.is_valid() &&
         !service->register_privilege(admin_privilege_name,
                                      strlen(admin_privilege_name));
}

void unregister_it() {
  const Register service(service_name, srv_registry);
  if (service.is_valid())
    (void)service->unregister_privilege(admin_privilege_name,
                                        strlen(admin_privilege_name));
}

bool check(THD *thd) {
  if (thd->security_context()
          ->has_global_grant(admin_privilege_name, strlen(admin_privilege_name))
          .first)
    return true;
  my_error(ER_SPECIFIC_ACCESS_DENIED_ERROR, MYF(0), admin_privilege_name);
  return false;
}

}  // namespace memdiag::admin_privilege
