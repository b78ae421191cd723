/*
  No text that another server may read names a table, a variable or a function
  that only this server has.

  A view, a routine, a trigger and an event keep their text. Stock does not know
  MEMDIAG_POOLS or @@memdiag_profile: a replica stops at such a definition, a
  dump that has it does not load, and on the same data a trigger's table takes
  no row. So such a definition is refused, with the number of the error that
  stock raises. The text of a PREPARE is not looked at: it is read when it runs.
  memdiag_purge() and memdiag_profile() are refused in views alone: stock takes
  a routine that calls a function which does not exist.

  Statements that change data are logged as rows if binlog_format is ROW. With
  MIXED one that reads an own table is marked for that, as upstream marks those
  that read performance_schema's tables, variables or loadable functions. With
  STATEMENT it is refused, as one that writes a table which only logs rows.

  Threads that apply another server's log are not asked.

  Cost: two loads and branches for a statement that defines nothing, with
  binlog_format = ROW, the default. Threads: the session's own. Errors: one is
  raised when the answer is true.
*/

#ifndef MEMDIAG_OWN_NAMES_H
#define MEMDIAG_OWN_NAMES_H

#include "mysys/memdiag/upstream/scope_hooks.h"
#include "sql/sql_class.h"
#include "sql/sql_lex.h"

namespace memdiag {

/** A statement that defines a view, a routine, a trigger or an event.
@return true: it names what other servers do not have */
bool is_refused_definition(THD *thd);

/** A statement of a session that does not log rows.
@return true: its text would be logged, and names what others do not have */
bool is_refused_text(THD *thd);

/** Before a statement opens its tables.
@param first_level  it is not a routine's, an event's or a trigger's
@return true: it must not run, and an error was raised */
inline bool may_not_run(THD *thd, bool first_level) {
  switch (thd->lex->sql_command) {
    case SQLCOM_CREATE_VIEW:
    case SQLCOM_CREATE_PROCEDURE:
    case SQLCOM_CREATE_SPFUNCTION:
    case SQLCOM_CREATE_TRIGGER:
    case SQLCOM_CREATE_EVENT:
    case SQLCOM_ALTER_EVENT:
      if (is_refused_definition(thd)) return true;
      break;
    default:
      if (thd->variables.binlog_format != BINLOG_FORMAT_ROW &&
          is_refused_text(thd))
        return true;
  }
  return is_refused(thd, first_level);
}

}  // namespace memdiag

#endif  // MEMDIAG_OWN_NAMES_H
