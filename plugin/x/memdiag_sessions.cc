/*
  A session of the X protocol that ends in its transaction rolls it back without
  a statement, and its thread goes on with other clients. What the ceiling
  promised to that transaction has to be free then.

  The linker redirects the plugin's calls of srv_session_close() to this file
  (--wrap, in cmake/upstream/product.cmake).

  Threads: the one that serves the client, but for a session of its own by which
  it ends another one. That session has no transaction. Errors: as the replaced
  function.
*/

#include "mysys/memdiag/upstream/message_hooks.h"
#include "sql/sql_class.h"
#include "sql/srv_session.h"

int close_of_server(Srv_session *session) asm(
    "__real__Z17srv_session_closeP11Srv_session");
int close_here(Srv_session *session) asm(
    "__wrap__Z17srv_session_closeP11Srv_session");

int close_here(Srv_session *session) {
  const bool in_transaction =
      session != nullptr && Srv_session::is_valid(session) &&
      session->get_thd()->in_active_multi_stmt_transaction();
  const int error = close_of_server(session);
  if (in_transaction && memdiag_transaction_ended != nullptr)
    memdiag_transaction_ended();
  return error;
}
