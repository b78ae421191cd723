/*
  A part of a long parameter that the ceiling refused. Upstream keeps the error
  until the client resets the statement, and answers each EXECUTE with it. That
  suits a parameter that is too long for good. Memory comes back, so the
  statement that has told the error begins anew: the parts that are here go, and
  the client can send them again.

  The linker redirects the server's call of mysqld_stmt_execute() to this file
  (--wrap, in cmake/upstream/product.cmake).

  Threads: the session's. Errors: as the replaced function.
*/

#include "mysqld_error.h"
#include "sql/sql_class.h"
#include "sql/sql_error.h"
#include "sql/sql_prepare.h"

void execute(THD *thd, Prepared_statement *statement, bool has_new_types,
             ulong flags, PS_PARAM *parameters) asm(  //
    "__real__Z19mysqld_stmt_executeP3THDP18Prepared_statementbmP8PS_PARAM");
void execute_and_forget_refusal(THD *thd, Prepared_statement *statement,
                                bool has_new_types, ulong flags,
                                PS_PARAM *parameters) asm(  //
    "__wrap__Z19mysqld_stmt_executeP3THDP18Prepared_statementbmP8PS_PARAM");

void execute_and_forget_refusal(THD *thd, Prepared_statement *statement,
                                bool has_new_types, ulong flags,
                                PS_PARAM *parameters) {
  execute(thd, statement, has_new_types, flags, parameters);
  const Diagnostics_area &told = *thd->get_stmt_da();
  if (statement->m_arena.get_state() != Query_arena::STMT_ERROR ||
      !told.is_error() || told.mysql_errno() != ER_CAPACITY_EXCEEDED)
    return;
  reset_stmt_parameters(statement);
  statement->m_arena.set_state(Query_arena::STMT_PREPARED);
}
