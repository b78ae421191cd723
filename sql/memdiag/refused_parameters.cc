/*
  A part of a long parameter that the ceiling refused. Upstream keeps the error
  until the client resets the statement, and answers each EXECUTE with it. That
  suits a parameter that is too long for good. Memory comes back, so the
  statement that has told the error begins anew: the parts that are here go, and
  the client can send them again. They wait again then.

  Where the first part was refused, upstream does not know that the parameter is
  a long one. It would look for the value in the packet of EXECUTE, and call
  that malformed instead of telling the error.

  The linker redirects the server's calls of mysql_stmt_get_longdata() and
  mysqld_stmt_execute() to this file (--wrap, in cmake/upstream/product.cmake).

  Threads: the session's. Errors: as the replaced function.
*/

#include "mysqld_error.h"
#include "mysys/memdiag/ceiling/sensor.h"
#include "sql/item.h"
#include "sql/sql_class.h"
#include "sql/sql_error.h"
#include "sql/sql_prepare.h"

void take_part(THD *thd, Prepared_statement *statement, uint parameter,
               uchar *part, ulong length) asm(  //
    "__real__Z23mysql_stmt_get_longdataP3THDP18Prepared_statementjPhm");
void take_part_of_long_one(THD *thd, Prepared_statement *statement,
                           uint parameter, uchar *part,
                           ulong length) asm(  //
    "__wrap__Z23mysql_stmt_get_longdataP3THDP18Prepared_statementjPhm");
void execute(THD *thd, Prepared_statement *statement, bool has_new_types,
             ulong flags, PS_PARAM *parameters) asm(  //
    "__real__Z19mysqld_stmt_executeP3THDP18Prepared_statementbmP8PS_PARAM");
void execute_and_forget_refusal(THD *thd, Prepared_statement *statement,
                                bool has_new_types, ulong flags,
                                PS_PARAM *parameters) asm(  //
    "__wrap__Z19mysqld_stmt_executeP3THDP18Prepared_statementbmP8PS_PARAM");

void take_part_of_long_one(THD *thd, Prepared_statement *statement,
                           uint parameter, uchar *part, ulong length) {
  take_part(thd, statement, parameter, part, length);
  if (statement->m_arena.get_state() == Query_arena::STMT_ERROR &&
      statement->m_last_errno == ER_CAPACITY_EXCEEDED)
    statement->m_param_array[parameter]->set_param_state(
        Item_param::LONG_DATA_VALUE);
}

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
  (void)memdiag::ceiling::value_dropped();
}
