/*
  Statements that never wait for memory at the gate of the ceiling: those of
  replication, those that give something back, and those by which an
  administrator sees and mends a server that is short of memory. Other
  statements of an administrator wait like everybody's, because applications use
  such accounts too.

  Threads: the session's own. Locks: none.
*/

#ifndef MEMDIAG_EXEMPT_H
#define MEMDIAG_EXEMPT_H

#include "my_sqlcommand.h"

class THD;
struct LEX;

namespace memdiag::exempt {

/** Of the statement and its thread: replication and all other system threads,
statements within stored programs, and must_run(), such as COMMIT and KILL.
Cheap. */
bool is_exempt(THD *thd);
/** The command gives something back, begins replication, or asks again. Part of
is_exempt(). */
bool must_run(enum_sql_command command);
/** Replication runs the thread, or the server or a plugin runs it for itself.
 */
bool is_of_system(const THD *thd);
/** The statement is a SHOW, or a SELECT from nothing but the server's own
schemas. Cheap. */
bool looks_at_server(const LEX &lex);
/** An administrator looks at the server. May take a lock of the privileges'
cache. */
bool administers(THD *thd);

/** Others may wait for its session: it has an open transaction, also one of XA,
or locks of tables, of GET_LOCK() or of FLUSH TABLES WITH READ LOCK. Within
malloc(), the answer is right as well. */
bool holds_what_others_wait_for(THD *thd);

/** Ending it undoes it: it is neither DDL nor administration. CALL may contain
DDL, which is immune to KILL where it must be. */
bool may_end(enum_sql_command command);

/** The statement commits its changes. Within malloc(), the answer is right as
well.
@param thd  of the calling thread; or of one whose plan is locked, and then the
            answer may be old */
bool commits(const THD *thd);
/** It may commit them: commits() is true of no other.
@param thd  of the calling thread; or of one that does not end meanwhile */
bool may_commit(const THD *thd);

/** The binary log may have the statement as a text. If KILL ends it after it
has changed a table without transactions, the log has the error with it, and
each replica stops there for good. */
bool may_be_logged_as_text(const THD *thd);
/** It has changed such a table. Within malloc(), the answer is right as well.
 */
bool has_changed_for_good(const THD *thd);

/** The statement is a short SELECT or SET without a table, of nothing but
constants, system variables, short variables of the session, and functions of
the server without arguments. By such ones, a
replica learns what the source can do, and says what it can do itself; and so
does any client when it connects. At an error, the replica's I/O thread would
stop for good. The parsed items tell, and not the text, because other receivers
of the binary log write it otherwise.
Or it is a DROP TABLE or a TRUNCATE of few tables: they may be tables in memory,
whose rows come back. */
bool takes_little(THD *thd);

/** The statement is an INSERT or a REPLACE of such values into one table. */
bool inserts_little(THD *thd);

/** The statement deletes all rows of one table. If that is of the engine
MEMORY, which is not known yet, they come back. */
bool deletes_all(const THD *thd);

/** What the statement takes may stay when it has ended: a variable of the
session, a prepared statement, rows of a table in memory. But not a variable
that is set to NULL, nor the few bytes of a SET that takes little, in a session
that may be a replica's. Allocates nothing. */
bool may_keep(THD *thd, bool takes_little);

}  // namespace memdiag::exempt

#endif  // MEMDIAG_EXEMPT_H
