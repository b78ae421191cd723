/*
  memdiag_stop_clock(stop), a loadable function for tests: stops the clock of
  read groups (plugin/memdiag/base/read_group.h), or lets it go again if
  `stop` is 0. Returns `stop`.
*/

#include <mysql/udf_registration_types.h>

#include <cstring>

#include "plugin/memdiag/server/tables/statement.h"

extern "C" bool memdiag_stop_clock_init(UDF_INIT *init, UDF_ARGS *args,
                                        char *message) {
  if (args->arg_count != 1) {
    strcpy(message, "it takes 0 or 1");
    return true;
  }
  args->arg_type[0] = INT_RESULT;
  init->const_item = false;
  return false;
}

extern "C" long long memdiag_stop_clock(UDF_INIT *, UDF_ARGS *args,
                                        unsigned char *, unsigned char *) {
  long long stop = 0;
  if (args->args[0] != nullptr) memcpy(&stop, args->args[0], sizeof stop);
  memdiag::statement_readings::stop_clock_for_test(stop != 0);
  return stop;
}
