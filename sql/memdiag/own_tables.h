/*
  What a statement that reads a MEMDIAG_ table leaves in the binary log.

  Another server may not have the table. With binlog_format = MIXED, such a
  statement is logged as rows; with STATEMENT, it has warning 1592. Upstream
  treats performance_schema's tables that way when it has opened them
  (THD::decide_logging_format()), and skips those of INFORMATION_SCHEMA. A view
  or a function of the user that reads one is not looked into.

  Cost: a load and a branch with binlog_format = ROW, the default.
  Threads: the session's own. Errors: none.
*/

#ifndef MEMDIAG_OWN_TABLES_H
#define MEMDIAG_OWN_TABLES_H

#include <string_view>

#include "mysys/memdiag/upstream/scope_hooks.h"
#include "sql/sql_class.h"
#include "sql/sql_lex.h"
#include "sql/table.h"

namespace memdiag {

/** Before the statement opens its tables. */
inline void log_own_tables_as_rows(THD *thd) {
  if (thd->variables.binlog_format == BINLOG_FORMAT_ROW) [[likely]]
    return;
  LEX *const lex = thd->lex;
  for (const Table_ref *table = lex->query_tables; table != nullptr;
       table = table->next_global)
    if (table->schema_table != nullptr &&
        std::string_view(table->schema_table->table_name)
            .starts_with("MEMDIAG_"))
      lex->set_stmt_unsafe(LEX::BINLOG_STMT_UNSAFE_SYSTEM_TABLE);
}

/** Before a statement runs. @return true: it must not, and an error was raised
@param first_level  it is not a routine's, an event's or a trigger's */
inline bool may_not_run(THD *thd, bool first_level) {
  log_own_tables_as_rows(thd);
  return is_refused(thd, first_level);
}

}  // namespace memdiag

#endif  // MEMDIAG_OWN_TABLES_H
