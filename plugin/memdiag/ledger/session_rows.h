/*
  The rows of MEMDIAG_SESSIONS: the session of each thread that holds memory
  (mysys/memdiag/accounting/thread_bytes.h). A pure function that throws
  std::bad_alloc only.
*/

#ifndef MEMDIAG_SESSION_ROWS_H
#define MEMDIAG_SESSION_ROWS_H

#include <pthread.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mysys/memdiag/accounting/thread_bytes.h"

namespace memdiag::sessions {

/** A session of the server, and the thread that it runs on. */
struct Server_session {
  pthread_t thread;
  uint64_t processlist_id;
  std::string user;
  std::string host;
  std::optional<std::string> program;
  /** The running statement's. */
  std::optional<std::string> digest;
};

/** One row of MEMDIAG_SESSIONS. */
struct Row {
  /** session, background (all threads without a session) or ended. Only
  "session" has the members up to the digest. */
  const char *holder;
  std::optional<uint64_t> processlist_id;
  std::optional<std::string> user;
  std::optional<std::string> host;
  std::optional<std::string> program;
  std::optional<std::string> digest;
  const char *pool;
  /** Below 0 if its threads freed more than they took: blocks of others. */
  int64_t bytes;
};

/** A row for each session and pool with bytes, and rows for the sums of threads
without a session and of ended threads. If two sessions share a thread, because
one runs within the other, the bytes are the older one's.
@throws std::bad_alloc */
std::vector<Row> rows(const Holdings &holdings,
                      std::span<const Server_session> sessions);

}  // namespace memdiag::sessions

#endif  // MEMDIAG_SESSION_ROWS_H
