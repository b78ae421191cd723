/*
  Statements that never wait for memory, at the gate of admission and at that of
  the ceiling.

  Threads: the session's own. Locks: none.
*/

#ifndef MEMDIAG_EXEMPT_H
#define MEMDIAG_EXEMPT_H

#include "my_sqlcommand.h"

class THD;

namespace memdiag::exempt {

/** Replication and all other system threads, administrators, statements within
stored programs, statements that end something, such as COMMIT and KILL
(admission.h has the list). */
bool never_waits(THD *thd);

/** @name The parts of it @{ */
/** Of the statement and its thread. Cheap. */
bool is_exempt(THD *thd);
/** Of the session's privileges. May take a lock of the privileges' cache. */
bool is_administrator(THD *thd);
/** The part of that which takes no lock and allocates nothing. */
bool has_static_privilege(THD *thd);
/** @} */

/** Others may wait for its session: it has an open transaction, also one of XA,
or locks of tables, of GET_LOCK() or of FLUSH TABLES WITH READ LOCK. */
bool holds_what_others_wait_for(THD *thd);

/** Ending it undoes it: it is neither DDL nor administration. CALL may contain
DDL, which is immune to KILL where it must be. */
bool may_end(enum_sql_command command);

}  // namespace memdiag::exempt

#endif  // MEMDIAG_EXEMPT_H
