#include "plugin/memdiag/server/functions/functions.h"

#include <strings.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "my_sys.h"
#include "mysql_com.h"
#include "mysqld_error.h"
#include "mysys/memdiag/base/interruption.h"
#include "plugin/memdiag/profile/reader.h"
#include "plugin/memdiag/server/functions/sql_function.h"
#include "plugin/memdiag/tables/profile_formats.h"
#include "sql/auth/auth_acls.h"
#include "sql/auth/auth_common.h"
#include "sql/current_thd.h"
#include "sql/sql_class.h"

namespace memdiag::profile_function {
namespace {

/** Longer results make the server's result column a LONGTEXT. */
constexpr unsigned long max_length = 64 << 20;

bool init(UDF_INIT *initid, UDF_ARGS *args, char *message) {
  if (args->arg_count < 1 || args->arg_count > 2 ||
      args->arg_type[0] != STRING_RESULT) {
    snprintf(message, MYSQL_ERRMSG_SIZE,
             "it takes the name of a format, and for a difference an earlier "
             "memdiag_profile('folded')");
    return true;
  }
  // Without a type of its own, as a NULL or a number: execute() says what is
  // wrong.
  if (args->arg_count == 2) args->arg_type[1] = STRING_RESULT;
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

/** In any letter case, as memdiag_purge() takes the name of a pool. */
const Profile_format *find_format(UDF_ARGS *args) {
  if (args->args[0] == nullptr) return nullptr;
  const std::string_view name(args->args[0], args->lengths[0]);
  const auto found = std::find_if(
      profile_formats.begin(), profile_formats.end(),
      [name](const Profile_format &format) {
        return name.size() == strlen(format.name) &&
               strncasecmp(name.data(), format.name, name.size()) == 0;
      });
  return found == profile_formats.end() ? nullptr : &*found;
}

/** For a message, which has no room for a long one. */
std::string first_argument(UDF_ARGS *args) {
  if (args->args[0] == nullptr) return "NULL";
  const std::string_view given(args->args[0], args->lengths[0]);
  return "'" + std::string(given.substr(0, 64)) + "'";
}

enum class Outcome { text, null, error };

Outcome refuse(const std::string &message) {
  my_error(ER_UDF_ERROR, MYF(0), profile_function_name, message.c_str());
  return Outcome::error;
}

/** The second argument. @return what is wrong with it; "": nothing */
std::string parse_earlier(UDF_ARGS *args, profile::Folded_bytes *stacks) {
  constexpr const char *wanted =
      "its second argument must be an earlier memdiag_profile('folded')";
  if (args->args[1] == nullptr) return std::string(wanted) + ", and is NULL";
  size_t line = 0;
  auto parsed = profile::parse_folded({args->args[1], args->lengths[1]}, &line);
  if (!parsed)
    return std::string(wanted) + ": line " + std::to_string(line) +
           " is not of that form, was cut off, or is one stack too many";
  *stacks = std::move(*parsed);
  return "";
}

/** @throws std::bad_alloc */
Outcome make_text(UDF_ARGS *args, std::string *text) {
  // Asked for here rather than in init(): a prepared statement or a view may
  // run long after, and for another user.
  THD *const thd = current_thd;
  if (check_global_access(thd, PROCESS_ACL)) return Outcome::error;
  const Profile_format *const format = find_format(args);
  if (format == nullptr)
    return refuse("its first argument must be one of these formats: " +
                  profile_format_names() + "; it is " + first_argument(args));
  const Interruptible until_killed(sql_function::is_killed, thd);
  profile::Folded_bytes earlier;
  if (args->arg_count == 2) {
    if (format->difference == nullptr)
      return refuse(std::string("format ") + format->name +
                    " has no difference: choose another format");
    if (const std::string wrong = parse_earlier(args, &earlier); !wrong.empty())
      return refuse(wrong);
  }
  const auto profile = profile::take_profile();
  if (!profile) return Outcome::null;
  const profile::Symbols symbols(*profile);
  *text = args->arg_count == 2 ? format->difference(earlier, *profile, symbols)
                               : format->text(*profile, symbols);
  if (sql_function::is_killed(thd)) {
    text->clear();
    thd->send_kill_message();
    return Outcome::error;
  }
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
