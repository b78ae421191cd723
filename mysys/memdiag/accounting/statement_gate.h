/*
  The gate that statements pass before they run. The plugin decides: the ceiling
  (plugin/memdiag/server/threads/ceiling.h), by the room that is left. Without a
  gate a statement pays one load and two branches.

  Threads: any; set() from one at a time. Errors: the gate raises those of the
  session.
*/

#ifndef MEMDIAG_STATEMENT_GATE_H
#define MEMDIAG_STATEMENT_GATE_H

namespace memdiag::statement_gate {

struct Gate {
  /** @param session  the THD of the calling thread
  @param digest  of Digest's size
  @return true: the statement must not run, and an error was raised */
  bool (*refuses)(void *session, const unsigned char *digest);
  /** The calling thread's statement, noted as let through, has ended, or was
  refused when it asked again. nullptr: it is of no interest. */
  void (*ended)();
};

/** A thread may still be in the former gate's refuses(). The former gate's
ended() is called for each statement that it let through.
@param gate  lives for ever; nullptr: every statement runs */
void set(const Gate *gate) noexcept;

namespace detail {
struct Passed {
  /** That let the thread's statement through, or stands for one that refused
  it. */
  const Gate *gate;
  bool asks_again;
};
inline constinit thread_local Passed passed{nullptr, false};
}  // namespace detail

/** The calling thread's statement has a place behind the gate until it ends.
@param asks_again  the statement has not passed the gate yet, or a part of it
                   passes it once more */
inline void note_let_through(const Gate *gate, bool asks_again) noexcept {
  detail::passed = {gate, asks_again};
}
/** It has such a place, and does not ask again. */
bool is_let_through() noexcept;

/** @name Events of the calling thread @{ */
bool refuses(void *session, const unsigned char *digest);
/** @return false: the gate refused it, so its memory says nothing about its
digest */
bool statement_ended() noexcept;
/** @} */

}  // namespace memdiag::statement_gate

#endif  // MEMDIAG_STATEMENT_GATE_H
