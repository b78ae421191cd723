/*
  The stored programs that each session keeps for its next calls, parsed for it
  alone: stored_program_cache of them, 256 by default. A pool of 150 connections
  whose clients call sixty procedures keeps more than a gigabyte. Upstream drops
  them when there are more, or when a routine is changed.

  While the giver has used up pages and frames, a session drops its programs
  before a statement that has to wait, and while its client is idle. It parses
  those that it calls again. A session that LOCK TABLES holds, or that runs a
  routine, keeps them.

  Threads: drop() and when_idle() are the session's own; call_idle() is the
  giver's. Locks: none. Units: none.
*/

#ifndef MEMDIAG_KEPT_PROGRAMS_H
#define MEMDIAG_KEPT_PROGRAMS_H

class THD;

namespace memdiag::ceiling::kept_programs {

/** The thread opens no table and runs no routine. @return true: it had some */
bool drop(THD *thd);

/** The calling thread has waited for its client for some time.
@param drops  the programs are to be dropped now
@return a file descriptor that can be read as soon as they are to be dropped;
        -1: there are none, or nothing calls */
int when_idle(bool drops);

/** Before the first session. Without a file descriptor to be had, idle sessions
are not called, and drop their programs when they wait next. */
void begin();

/** Calls sessions whose clients are idle, or does so no longer. */
void call_idle(bool drops);

}  // namespace memdiag::ceiling::kept_programs

#endif  // MEMDIAG_KEPT_PROGRAMS_H
