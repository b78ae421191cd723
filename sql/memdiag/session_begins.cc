/*
  A session begins once its client has an account: the memory that connecting
  takes is not the first statement's.

  The linker redirects the call of thd_prepare_connection() to this file
  (--wrap, in cmake/upstream/product.cmake).

  Threads: the session's. Errors: as the replaced function.
*/

#include "mysys/memdiag/upstream/scope_hooks.h"

class THD;

bool prepare_by_server(THD *thd) asm("__real__Z22thd_prepare_connectionP3THD");
bool prepare_and_begin(THD *thd) asm("__wrap__Z22thd_prepare_connectionP3THD");

bool prepare_and_begin(THD *thd) {
  const bool is_refused = prepare_by_server(thd);
  if (!is_refused) memdiag::session_began();
  return is_refused;
}
