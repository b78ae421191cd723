/*
  The gate that statements pass before they run. The plugin decides
  (plugin/memdiag/server/threads/admission.h). This file lets small statements
  pass without asking it. Without a gate a statement pays one load and two
  branches. With a gate, a statement whose digest is known to be small pays one
  load and one branch more.

  Threads: any; set() from one at a time. Errors: the gate raises those of the
  session.
*/

#ifndef MEMDIAG_STATEMENT_GATE_H
#define MEMDIAG_STATEMENT_GATE_H

#include "mysys/memdiag/accounting/sessions.h"

namespace memdiag::statement_gate {

struct Gate {
  /** @param session  the THD of the calling thread
  @return true: the statement must not run, and an error was raised */
  bool (*refuses)(void *session, const sessions::Digest &digest);
  /** The calling thread's statement, noted as let through, has ended. */
  void (*ended)();
};

/** A thread may still be in the former gate's refuses(). The former gate's
ended() is called for each statement that it let through. While sessions are not
counted (sessions.h), the gate is not asked.
@param gate  lives for ever; nullptr: every statement runs */
void set(const Gate *gate) noexcept;

/** The calling thread's statement has a place behind the gate until it ends. */
void note_let_through(const Gate *gate) noexcept;

/** @name Events of the calling thread @{ */
bool refuses(void *session, const unsigned char *digest);
/** @return false: the gate refused it, so its memory says nothing about its
digest */
bool statement_ended() noexcept;
/** @} */

}  // namespace memdiag::statement_gate

#endif  // MEMDIAG_STATEMENT_GATE_H
