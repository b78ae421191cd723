/*
  Loadable functions that the plugin itself registers.

  A function is known from the plugin's start to its end, without a row in
  mysql.func, so it works on a read-only server too. With --skip-grant-tables
  the server looks up no loadable function, and it is not there.

  Threads: register and unregister from the plugin's start and end;
  set_charset() from a session's thread.
*/

#ifndef MEMDIAG_SQL_FUNCTION_H
#define MEMDIAG_SQL_FUNCTION_H

#include <mysql/udf_registration_types.h>

namespace memdiag::sql_function {

/** The three entry points, as the server calls them. */
struct Entry_points {
  Udf_func_string execute;
  Udf_func_init init;
  /** nullptr: none. */
  Udf_func_deinit deinit;
};

/** @return whether SQL knows it now; false when the name is taken */
bool register_it(const char *name, const Entry_points &entry_points);
void unregister_it(const char *name);

/** Have the server convert the arguments to, and take the result as, utf8mb4.
@return false: it cannot be done, and the message says so */
bool set_charset(UDF_INIT *initid, UDF_ARGS *args, char *message);

/** The session's statement is to end: by KILL, or because max_execution_time
has passed. An Interruptible's predicate. @param thd  THD */
bool is_killed(const void *thd);

}  // namespace memdiag::sql_function

#endif  // MEMDIAG_SQL_FUNCTION_H
