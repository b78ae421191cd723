/*
  The gate that statements pass before they run. The plugin decides: the ceiling
  (plugin/memdiag/server/threads/ceiling.h), by the room that is left. Without a
  gate a statement pays one load and two branches.

  Threads: any; set() from one at a time. Errors: the gate raises those of the
  session.
*/

#ifndef MEMDIAG_STATEMENT_GATE_H
#define MEMDIAG_STATEMENT_GATE_H

#include "mysys/memdiag/accounting/digests.h"

namespace memdiag::statement_gate {

struct Gate {
  /** @param session  the THD of the calling thread
  @return true: the statement must not run, and an error was raised */
  bool (*refuses)(void *session, const sessions::Digest &digest);
  /** The calling thread's statement, noted as let through, has ended. */
  void (*ended)();
};

/** A thread may still be in the former gate's refuses(). The former gate's
ended() is called for each statement that it let through.
@param gate  lives for ever; nullptr: every statement runs */
void set(const Gate *gate) noexcept;

/** The calling thread's statement has a place behind the gate until it ends.
@param asks_again  the statement has not passed the gate yet, or a part of it
                   passes it once more */
void note_let_through(const Gate *gate, bool asks_again) noexcept;

/** @name Events of the calling thread @{ */
bool refuses(void *session, const unsigned char *digest);
/** @return false: the gate refused it, so its memory says nothing about its
digest */
bool statement_ended() noexcept;
/** @} */

}  // namespace memdiag::statement_gate

#endif  // MEMDIAG_STATEMENT_GATE_H
