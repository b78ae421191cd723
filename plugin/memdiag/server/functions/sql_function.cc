#include "plugin/memdiag/server/functions/sql_function.h"

#include <mysql/components/my_service.h>
#include <mysql/components/services/udf_metadata.h>
#include <mysql/components/services/udf_registration.h>

#include <cstdio>

#include "mysql_com.h"
#include "sql/mysqld.h"
#include "sql/sql_class.h"

namespace memdiag::sql_function {
namespace {

using Registration = my_service<SERVICE_TYPE(udf_registration)>;
constexpr const char *service_name = "udf_registration";

}  // namespace

bool register_it(const char *name, const Entry_points &entry_points) {
  const Registration service(service_name, srv_registry);
  return service.is_valid() &&
         !service->udf_register(
             name, STRING_RESULT,
             reinterpret_cast<Udf_func_any>(entry_points.execute),
             entry_points.init, entry_points.deinit);
}

void unregister_it(const char *name) {
  const Registration service(service_name, srv_registry);
  int was_present;
  if (service.is_valid()) (void)service->udf_unregister(name, &was_present);
}

bool set_charset(UDF_INIT *initid, UDF_ARGS *args, char *message) {
  const my_service<SERVICE_TYPE(mysql_udf_metadata)> metadata(
      "mysql_udf_metadata", srv_registry);
  char *const charset = const_cast<char *>("utf8mb4");
  bool done =
      metadata.is_valid() && !metadata->result_set(initid, "charset", charset);
  for (unsigned i = 0; done && i < args->arg_count; ++i)
    done = !metadata->argument_set(args, "charset", i, charset);
  if (!done)
    snprintf(message, MYSQL_ERRMSG_SIZE, "its character set cannot be set");
  return done;
}

bool is_killed(const void *thd) {
  return static_cast<const THD *>(thd)->killed != THD::NOT_KILLED;
}

}  // namespace memdiag::sql_function
