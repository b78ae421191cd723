#include "plugin/memdiag/server/functions/functions.h"

#include <strings.h>

#include <cstdio>
#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <string_view>

#include "my_sys.h"
#include "mysql_com.h"
#include "mysqld_error.h"
#include "mysys/memdiag/base/interruption.h"
#include "mysys/memdiag/purging/purge.h"
#include "plugin/memdiag/base/reason.h"
#include "plugin/memdiag/server/functions/sql_function.h"
#include "plugin/memdiag/server/tables/statement.h"
#include "plugin/memdiag/tables/purge_receipt.h"
#include "sql/current_thd.h"
#include "sql/derror.h"
#include "sql/sql_class.h"
#include "sql/sql_error.h"

namespace memdiag::purge_function {
namespace {

/** Longer than any receipt; the server's result buffer is at least this. */
constexpr unsigned long max_receipt_length = 512;
static_assert(max_receipt_length <= MAX_FIELD_WIDTH);

bool init(UDF_INIT *initid, UDF_ARGS *args, char *message) {
  if (args->arg_count != 1 || args->arg_type[0] != STRING_RESULT) {
    // The server cuts this message off where all names would not fit.
    snprintf(message, MYSQL_ERRMSG_SIZE, "%s",
             "it takes one argument, the name of a pool, or 'all'");
    return true;
  }
  if (!sql_function::set_charset(initid, args, message)) return true;
  initid->maybe_null = true;
  initid->max_length = max_receipt_length;
  // It acts, so it may not be evaluated ahead or only once: EXPLAIN must not
  // purge.
  initid->const_item = false;
  return false;
}

void raise_unknown_pool(const char *what) {
  const std::string text = std::string(what) +
                           " is not the name of a pool; the names are " +
                           purgeable_names();
  my_error(ER_UDF_ERROR, MYF(0), purge_function_name, text.c_str());
}

void warn_of_failure(THD *thd, int error) {
  push_warning_printf(thd, Sql_condition::SL_WARNING, ER_UDF_ERROR,
                      ER_THD(thd, ER_UDF_ERROR), purge_function_name,
                      ("error " + reason(error)).c_str());
}

bool is_all(std::string_view name) {
  return name.size() == strlen(all_pools_name) &&
         strncasecmp(name.data(), all_pools_name, name.size()) == 0;
}

/** @return whether the error was not raised: `json` is filled
@throws std::bad_alloc */
bool purge(UDF_ARGS *args, std::string *json) {
  THD *const thd = current_thd;
  // Asked for here rather than in init(): a prepared statement or a view may
  // run long after, and for another user.
  if (check_global_access(thd, RELOAD_ACL)) return false;
  if (args->args[0] == nullptr) {
    raise_unknown_pool("NULL");
    return false;
  }
  const std::string_view name(args->args[0], args->lengths[0]);
  const std::optional<Pool> pool = find_pool(name);
  if (!pool && !is_all(name)) {
    // Longer ones would not fit into the message.
    raise_unknown_pool(("'" + std::string(name.substr(0, 64)) + "'").c_str());
    return false;
  }
  statement_readings::end_group(thd);
  const Interruptible until_killed(sql_function::is_killed, thd);
  const purging::Receipt receipt =
      pool ? purging::purge(*pool) : purging::purge_all();
  if (sql_function::is_killed(thd)) {
    thd->send_kill_message();
    return false;
  }
  *json = to_json(pool ? spec_of(*pool).name : all_pools_name, receipt);
  if (receipt.error != 0) warn_of_failure(thd, receipt.error);
  return true;
}

char *execute(UDF_INIT *, UDF_ARGS *args, char *result, unsigned long *length,
              unsigned char *is_null, unsigned char *error) {
  // The server calls it as C: an exception would end it.
  try {
    std::string json;
    if (purge(args, &json) && json.size() <= max_receipt_length) {
      memcpy(result, json.data(), json.size());
      *length = json.size();
      return result;
    }
  } catch (const std::bad_alloc &) {
    my_error(ER_STD_BAD_ALLOC_ERROR, MYF(0), purge_function_name, "memdiag");
  }
  *is_null = 1;
  *error = 1;
  return nullptr;
}

}  // namespace

bool register_it() {
  return sql_function::register_it(purge_function_name,
                                   {execute, init, nullptr});
}

void unregister_it() { sql_function::unregister_it(purge_function_name); }

}  // namespace memdiag::purge_function
