/*
  Statements that never wait for memory at the gate of the ceiling: those of
  replication, those that give something back, and those by which an
  administrator sees and mends a server that is short of memory. Others of an
  administrator are like everybody's: applications use such accounts too.

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
/** Of replication, or another thread of the server. */
bool is_of_system(const THD *thd);
/** An administrator shows the server's state, or reads nothing but tables of
the server itself. May take a lock of the privileges' cache. */
bool administers(THD *thd);

/** Others may wait for its session: it has an open transaction, also one of XA,
or locks of tables, of GET_LOCK() or of FLUSH TABLES WITH READ LOCK. */
bool holds_what_others_wait_for(THD *thd);

/** Ending it undoes it: it is neither DDL nor administration. CALL may contain
DDL, which is immune to KILL where it must be. */
bool may_end(enum_sql_command command);

}  // namespace memdiag::exempt

#endif  // MEMDIAG_EXEMPT_H
