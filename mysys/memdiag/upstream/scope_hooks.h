/*
  The functions that patched files of the SQL layer call when a connection's
  thread begins, before a statement runs, while it takes a step that looks for
  no KILL, and when a statement, a transaction or a session has ended. They are
  weak, as in mysys/memdiag/upstream/hooks.h. The session's own thread calls
  them. They keep no pointer that they get.

  A digest is 32 bytes. All of them are 0 if Performance Schema computed none.
  The function that counts a statement sets its digest to 0. A command without a
  digest leaves the bytes as they are, and would be taken for the statement
  before it otherwise.

  Code that runs within a statement may run statements of another session on the
  same thread (the service of plugins and components that run SQL). They are a
  part of the outer statement, which alone is counted.

  Ownership: the caller's; nothing is kept. Locks: the end of a statement takes
  a mutex while memdiag_sessions or the profiler is ON, and where it leaves
  survivors.
*/

#ifndef MEMDIAG_SCOPE_HOOKS_H
#define MEMDIAG_SCOPE_HOOKS_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

extern "C" {
/** Statements pass a gate: memdiag_memory_target is at work. */
[[gnu::weak]] extern std::atomic<bool> memdiag_has_gate;
/** @param session  its THD
@return true: the statement must not run, and an error was raised */
[[gnu::weak]] bool memdiag_gate_refuses(void *session,
                                        const unsigned char *digest);
/** The ceiling told the calling thread's statement to end. Its error is raised
then. A load and a branch otherwise. */
[[gnu::weak]] bool memdiag_statement_ends();
/** There is so much room that the calling thread's transaction may take this
when it commits, or the thread never waits. */
[[gnu::weak]] bool memdiag_commit_is_small(int64_t bytes);
/** The calling thread's statement waits for what its transaction will take when
it commits.
@return true: it must end, and its error was raised */
[[gnu::weak]] bool memdiag_refuses_commit(int64_t bytes);
/** A statement has ended. @param in_transaction  its transaction goes on */
[[gnu::weak]] void memdiag_statement_ended(bool in_transaction,
                                           unsigned char *digest);
/** A statement has ended, and its packet has more statements. The next one goes
on with the memory of this one. */
[[gnu::weak]] void memdiag_part_ended(unsigned char *digest);
/** The calling thread begins to serve connections, one after the other. */
[[gnu::weak]] void memdiag_connection_thread();
/** A session has connected; statements will follow. */
[[gnu::weak]] void memdiag_session_began();
/** The session's objects are gone, and its thread will serve another. */
[[gnu::weak]] void memdiag_session_ended();
}

namespace memdiag {

constexpr size_t digest_size = 32;

inline bool is_refused(void *session, const unsigned char *digest) {
  return &memdiag_has_gate != nullptr &&
         memdiag_has_gate.load(std::memory_order_relaxed) &&
         memdiag_gate_refuses(session, digest);
}
inline bool statement_ends() {
  return memdiag_statement_ends != nullptr && memdiag_statement_ends();
}
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

/** The statements that run on the calling thread, one within the other. */
inline constinit thread_local unsigned running_statements = 0;

/** The same of a session. The gate has answered for the outer statement.
Statements of an event have none.
@param first_level  it is not a routine's, an event's or a trigger's
@tparam Session  THD */
template <typename Session>
bool is_refused(Session *session, bool first_level) {
  return running_statements == (first_level ? 1 : 0) &&
         is_refused(static_cast<void *>(session),
                    session->m_digest_state.m_digest_storage.m_hash);
}

/** The statement that the thread runs while this lives. */
template <typename Session>
class Statement {
 public:
  explicit Statement(Session *session) : m_session(session) {
    ++running_statements;
  }
  ~Statement() {
    unsigned char *const digest =
        m_session->m_digest_state.m_digest_storage.m_hash;
    if (--running_statements == 0)
      statement_ended(m_session->in_active_multi_stmt_transaction(), digest);
    else
      std::memset(digest, 0, digest_size);
  }
  Statement(const Statement &) = delete;
  Statement &operator=(const Statement &) = delete;

 private:
  Session *const m_session;
};

template <typename Session>
void part_ended(Session *session) {
  if (running_statements == 1)
    part_ended(session->m_digest_state.m_digest_storage.m_hash);
}

}  // namespace memdiag

#endif  // MEMDIAG_SCOPE_HOOKS_H
