/*
  memdiag_hold_policies(hold), a loadable function for tests: each SET of a
  policy (mysys/memdiag/purging/policies.h) waits, until the same session calls
  the function with 0. Returns `hold`.
*/

#include <mysql/udf_registration_types.h>

#include <cstring>

#include "mysys/memdiag/purging/policies.h"

extern "C" bool memdiag_hold_policies_init(UDF_INIT *init, UDF_ARGS *args,
                                           char *message) {
  if (args->arg_count != 1) {
    strcpy(message, "it takes 0 or 1");
    return true;
  }
  args->arg_type[0] = INT_RESULT;
  init->const_item = false;
  return false;
}

extern "C" long long memdiag_hold_policies(UDF_INIT *, UDF_ARGS *args,
                                           unsigned char *, unsigned char *) {
  long long hold = 0;
  if (args->args[0] != nullptr) memcpy(&hold, args->args[0], sizeof hold);
  if (hold != 0)
    memdiag::policies::hold();
  else
    memdiag::policies::let_go();
  return hold;
}
