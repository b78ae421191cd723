/*
  Collector: the server's sessions, as INFORMATION_SCHEMA.PROCESSLIST finds
  them, and the thread that each runs on. No text of statements.

  Locks: LOCK_thd_remove of one partition of the sessions at a time, so that
  none of them goes away while it is read; for names LOCK_thd_security_ctx of
  each.
  What Performance Schema knows is read without a lock (perfschema.h).
  A session that begins or ends meanwhile may be missing.
*/

#ifndef MEMDIAG_SERVER_SESSIONS_H
#define MEMDIAG_SERVER_SESSIONS_H

#include <functional>
#include <optional>
#include <vector>

#include "plugin/memdiag/history/history.h"
#include "plugin/memdiag/ledger/instruments.h"
#include "plugin/memdiag/ledger/session_rows.h"

namespace memdiag::sessions {

/** Each client's session has a thread until it ends. With a plugin that pools
threads, any of them serves any session. */
bool have_threads_of_their_own();

/** The sessions that are on a thread. @throws std::bad_alloc */
std::vector<Server_session> server_sessions();

/** Drops those that are on their thread no more: it may serve others now.
@throws std::bad_alloc */
void drop_ended(std::vector<Server_session> *sessions);

/** The session or background thread with most memory, as Performance Schema
counts it. Empty where that is off. */
std::optional<history::Holder> largest_session();

/** As perfschema::counted() has all of them. */
using Ask_counted = std::function<const std::vector<instruments::Counted> &()>;

struct Client {
  uint64_t processlist_id;
  /** The most of it that KILL can still free: without what it made that
  stays (advisor::ends_with_session()), and without strings, where it waits for
  a statement and has nothing that keeps some. */
  uint64_t bytes;
  /** The same by instrument. Empty: Performance Schema counts less than 16 MiB,
  and `bytes` may include what other threads freed. */
  std::vector<instruments::Held> held;
  /** The client with most of InnoDB's heaps, which Performance Schema counts as
  one instrument; 0 bytes: none has 16 MiB. */
  uint64_t heaps_processlist_id{0};
  uint64_t heaps_bytes{0};
  /** A transaction of several statements is open. */
  bool in_transaction{false};
  /** It waits for a statement; the same of the one with most heaps. */
  bool is_idle{false};
  bool heaps_are_idle{false};
};

/** The session of a client that can still hold most
(perfschema::held_at_most()). A replica's session, which sends the binary log,
is none.
@param counted  called only if a session may hold 16 MiB
@return empty: there is no client, or Performance Schema is off
@throws std::bad_alloc */
std::optional<Client> largest_client(const Ask_counted &counted);

struct Totals {
  /** Sessions of clients, and those whose memory Performance Schema counts. */
  uint64_t clients;
  uint64_t counted_clients;
  /** Those of them that wait for a statement, the memory that Performance
  Schema counts for them, and the part of those that have waited for a minute.
  */
  uint64_t idle_clients;
  uint64_t idle_bytes;
  uint64_t long_idle_bytes;
  /** What sessions of replicas, which send the binary log, can hold of
  memory/sql/String::value. */
  uint64_t dump_thread_bytes;
  /** The most that sessions can hold of memory/sql/String::value. One that
  waits for a statement, and has no temporary table, none prepared, no stored
  program and no optimizer trace, holds none. */
  uint64_t string_bytes;
  /** The same of clients that wait for a statement, without those of whom only
  temporary tables can keep some. */
  uint64_t idle_string_bytes;
  /** Warnings of those that wait for a statement. */
  uint64_t idle_warnings;
  /** Sessions, also of events and of replication, that have tables open between
  statements (HANDLER, LOCK TABLES), or that run a statement on tables for ten
  seconds already. */
  uint64_t table_keepers;
  /** Sessions of clients that may have locks of names without a row
  (perfschema::first_session_with_counts_of_locks()). */
  uint64_t clients_before_counts_of_locks;
};

/** @param counted  called only if a replica's session may hold 1 MiB
@param asks_strings  string_bytes are wanted, and counted() has been called
@throws std::bad_alloc */
Totals totals(const Ask_counted &counted, bool asks_strings);

}  // namespace memdiag::sessions

#endif  // MEMDIAG_SERVER_SESSIONS_H
