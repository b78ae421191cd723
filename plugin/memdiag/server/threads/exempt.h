/*
  Statements that never wait for memory at the gate of the ceiling: those of
  replication and administrators, and those that give something back.

  Threads: the session's own. Locks: none.
*/

#ifndef MEMDIAG_EXEMPT_H
#define MEMDIAG_EXEMPT_H

#include "my_sqlcommand.h"

class THD;

namespace memdiag::exempt {

/** Of the statement and its thread: replication and all other system threads,
statements within stored programs, statements that end something, such as COMMIT
and KILL. Cheap. */
bool is_exempt(THD *thd);
/** Of the session's privileges. May take a lock of the privileges' cache. */
bool is_administrator(THD *thd);
/** The part of that which takes no lock and allocates nothing. */
bool has_static_privilege(THD *thd);

/** Others may wait for its session: it has an open transaction, also one of XA,
or locks of tables, of GET_LOCK() or of FLUSH TABLES WITH READ LOCK. */
bool holds_what_others_wait_for(THD *thd);

/** Ending it undoes it: it is neither DDL nor administration. CALL may contain
DDL, which is immune to KILL where it must be. */
bool may_end(enum_sql_command command);

}  // namespace memdiag::exempt

#endif  // MEMDIAG_EXEMPT_H
