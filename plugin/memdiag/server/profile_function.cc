#include "plugin/memdiag/server/profile_function.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <new>
#include <string>
#include <string_view>

#include "my_sys.h"
#include "mysql_com.h"
#include "mysqld_error.h"
#include "plugin/memdiag/profile/reader.h"
#include "plugin/memdiag/server/sql_function.h"
#include "plugin/memdiag/tables/profile_formats.h"
#include "sql/auth/auth_acls.h"
#include "sql/auth/auth_common.h"
#include "sql/current_thd.h"

namespace memdiag::profile_function {
namespace {

/** Longer results make the server's result column a LONGTEXT. */
constexpr unsigned long max_length = 64 << 20;

bool init(UDF_INIT *initid, UDF_ARGS *args, char *message) {
  if (args->arg_count != 1 || args->arg_type[0] != STRING_RESULT) {
    snprintf(message, MYSQL_ERRMSG_SIZE,
             "it takes one argument, the name of a format");
    return true;
  }
  if (!sql_function::set_charset(initid, args, message)) return true;
  // The result of the last call: the server copies it before the next one.
  initid->ptr = reinterpret_cast<char *>(new (std::nothrow) std::string);
  if (initid->ptr == nullptr) {
    snprintf(message, MYSQL_ERRMSG_SIZE, "there is no memory for its result");
    return true;
  }
  initid->maybe_null = true;
  initid->max_length = max_length;
  initid->const_item = false;
  return false;
}

std::string *result_of(UDF_INIT *initid) {
  return reinterpret_cast<std::string *>(initid->ptr);
}

void deinit(UDF_INIT *initid) { delete result_of(initid); }

const Profile_format *find_format(UDF_ARGS *args) {
  if (args->args[0] == nullptr) return nullptr;
  const std::string_view name(args->args[0], args->lengths[0]);
  const auto found = std::find_if(
      profile_formats.begin(), profile_formats.end(),
      [name](const Profile_format &format) { return name == format.name; });
  return found == profile_formats.end() ? nullptr : &*found;
}

enum class Outcome { text, null, error };

/** @throws std::bad_alloc */
Outcome make_text(UDF_ARGS *args, std::string *text) {
  // Asked for here rather than in init(): a prepared statement or a view may
  // run long after, and for another user.
  if (check_global_access(current_thd, PROCESS_ACL)) return Outcome::error;
  const Profile_format *const format = find_format(args);
  if (format == nullptr) {
    const std::string message =
        "its argument must be one of these formats: " + profile_format_names();
    my_error(ER_UDF_ERROR, MYF(0), profile_function_name, message.c_str());
    return Outcome::error;
  }
  const auto profile = profile::take_profile();
  if (!profile) return Outcome::null;
  *text = format->text(*profile, profile::Symbols(*profile));
  return Outcome::text;
}

char *execute(UDF_INIT *initid, UDF_ARGS *args, char *, unsigned long *length,
              unsigned char *is_null, unsigned char *error) {
  // The server calls it as C: an exception would end it.
  Outcome outcome = Outcome::error;
  try {
    outcome = make_text(args, result_of(initid));
  } catch (const std::bad_alloc &) {
    my_error(ER_STD_BAD_ALLOC_ERROR, MYF(0), profile_function_name, "memdiag");
  }
  if (outcome == Outcome::text) {
    *length = result_of(initid)->size();
    return result_of(initid)->data();
  }
  *is_null = 1;
  if (outcome == Outcome::error) *error = 1;
  return nullptr;
}

}  // namespace

bool register_it() {
  return sql_function::register_it(profile_function_name,
                                   {execute, init, deinit});
}

void unregister_it() { sql_function::unregister_it(profile_function_name); }

}  // namespace memdiag::profile_function
