/*
  The rows of MEMDIAG_SESSIONS: which session has the thread that holds what
  (mysys/memdiag/accounting/sessions.h). A pure function; nothing is shared, nothing fails but
  allocating.
*/

#ifndef MEMDIAG_SESSION_ROWS_H
#define MEMDIAG_SESSION_ROWS_H

#include <pthread.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mysys/memdiag/accounting/sessions.h"

namespace memdiag::sessions {

/** A session of the server, and the thread that it runs on. */
struct Server_session {
  pthread_t thread;
  uint64_t processlist_id;
  std::string user;
  std::string host;
  std::optional<std::string> program;
  /** Of the statement that it runs. */
  std::optional<std::string> digest;
};

/** As shown in MEMDIAG_SESSIONS. */
struct Row {
  const char *holder;
  std::optional<uint64_t> processlist_id;
  std::optional<std::string> user;
  std::optional<std::string> host;
  std::optional<std::string> program;
  std::optional<std::string> digest;
  const char *pool;
  int64_t bytes;
};

/** A row for each session and pool with something, and for the sum of all
threads without a session, and of those that are gone. Where two sessions have
one thread, because one runs within the other, it is the older one's.
@throws std::bad_alloc */
std::vector<Row> rows(const Holdings &holdings,
                      std::span<const Server_session> sessions);

}  // namespace memdiag::sessions

#endif  // MEMDIAG_SESSION_ROWS_H
