/*
  What patched files of the SQL layer call when a connection's thread begins,
  and when a statement, a transaction or a session has ended. Weak, as
  mysys/memdiag/routes/hooks.h has it, and free of any header.

  A digest is 32 bytes, all of them 0 where Performance Schema computed none.
  Whoever counts it makes it 0, so that a command without one, which leaves it
  as it is, is not taken for the statement before it.
*/

#ifndef MEMDIAG_SCOPE_HOOKS_H
#define MEMDIAG_SCOPE_HOOKS_H

extern "C" {
/** @param in_transaction  whether a transaction goes on after it */
[[gnu::weak]] void memdiag_statement_ended(bool in_transaction,
                                           unsigned char *digest);
/** A statement has ended whose packet has more: the next one goes on with its
memory. */
[[gnu::weak]] void memdiag_part_ended(unsigned char *digest);
/** The calling thread begins to serve connections, one after the other. */
[[gnu::weak]] void memdiag_connection_thread();
/** A session has connected; statements will follow. */
[[gnu::weak]] void memdiag_session_began();
/** The session's objects are gone, and its thread will serve another. */
[[gnu::weak]] void memdiag_session_ended();
}

namespace memdiag {

inline void statement_ended(bool in_transaction, unsigned char *digest) {
  if (memdiag_statement_ended != nullptr)
    memdiag_statement_ended(in_transaction, digest);
}
inline void part_ended(unsigned char *digest) {
  if (memdiag_part_ended != nullptr) memdiag_part_ended(digest);
}
inline void connection_thread() {
  if (memdiag_connection_thread != nullptr) memdiag_connection_thread();
}
inline void session_began() {
  if (memdiag_session_began != nullptr) memdiag_session_began();
}
inline void session_ended() {
  if (memdiag_session_ended != nullptr) memdiag_session_ended();
}

}  // namespace memdiag

#endif  // MEMDIAG_SCOPE_HOOKS_H
