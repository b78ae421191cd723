/*
  The gates that statements pass before they run. The plugin decides: admission
  (plugin/memdiag/server/threads/admission.h) by what a digest needs, and the
  ceiling (plugin/memdiag/server/threads/ceiling.h) by the room that is left.
  This file lets small statements pass without asking admission. Without a gate
  a statement pays one load and two branches. With a gate, a statement whose
  digest is known to be small pays one load and one branch more.

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
ended() is called for each statement that it let through. While sessions are not
counted (tracking.h), the gate is not asked.
@param gate  lives for ever; nullptr: every statement runs */
void set(const Gate *gate) noexcept;

/** The gate of the ceiling, which each statement asks, whether sessions are
counted or not. It is asked first. A statement that it lets through has ended
when ended() is called. A thread may still be in refuses() of the former gate.
@param gate  lives for ever; nullptr: none */
void set_ceiling(const Gate *gate) noexcept;
/** As note_let_through(), of the ceiling's gate.
@param asks_again  the statement has not passed the gate yet, or a part of it
                   passes it once more */
void note_below_ceiling(const Gate *gate, bool asks_again) noexcept;

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
