/*
  What patched files of the SQL layer call when a statement, a transaction or a
  session has ended. Weak, as memdiag_hooks.h has it, and free of any header.
*/

#ifndef MEMDIAG_SCOPE_HOOKS_H
#define MEMDIAG_SCOPE_HOOKS_H

extern "C" {
/** @param in_transaction  whether a transaction goes on after it */
[[gnu::weak]] void memdiag_statement_ended(bool in_transaction);
/** The session's objects are gone, and its thread will serve another. */
[[gnu::weak]] void memdiag_session_ended();
}

namespace memdiag {

inline void statement_ended(bool in_transaction) {
  if (memdiag_statement_ended != nullptr)
    memdiag_statement_ended(in_transaction);
}
inline void session_ended() {
  if (memdiag_session_ended != nullptr) memdiag_session_ended();
}

}  // namespace memdiag

#endif  // MEMDIAG_SCOPE_HOOKS_H
