/*
  What the advisor judges, a situation, and what it says, findings. Both own all
  that is in them.

  Units: bytes, seconds.
*/

#ifndef MEMDIAG_FINDING_H
#define MEMDIAG_FINDING_H

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mysys/memdiag/ceiling/levels.h"
#include "mysys/memdiag/pools/pools.h"
#include "plugin/memdiag/advice/holdings.h"
#include "plugin/memdiag/base/reading.h"
#include "plugin/memdiag/history/trend.h"
#include "plugin/memdiag/host/host.h"

namespace memdiag::advisor {

/** Less in one place is no reason to act. */
inline constexpr uint64_t worth_bytes = 64 << 20;

/** Locks of rows that lie in the buffer pool. */
struct Row_locks {
  uint64_t bytes;
  /** The session that has most of them. */
  Session largest;
  /** XA transactions that are prepared and whose session is gone have these. */
  uint64_t prepared_bytes = 0;
};

struct Pool_situation {
  Reading live_bytes;
  Reading active_bytes;
  Reading dirty_bytes;
  /** The resident part of live_bytes: the rest was never written. Empty: not
  known. */
  Reading resident_live_bytes;
  /** Free parts of resident pages that hold something. Empty: not known. */
  Reading resident_free_bytes;
  /** The trend of its live bytes. */
  std::optional<Trend> trend;
  /** Blocks that outlived their statement, transaction or session, and the
  route of most of them; 0 while memdiag_scope_survivors is off. Tables of the
  MEMORY engine do not count: they stay until they are dropped. */
  uint64_t survivors_bytes;
  std::string survivors_route;

  /** The part of live_bytes that is resident. Empty: it is not known. */
  std::optional<double> resident_part() const {
    if (!live_bytes || !resident_live_bytes) return std::nullopt;
    return *resident_live_bytes >= *live_bytes
               ? 1.0
               : static_cast<double>(*resident_live_bytes) /
                     static_cast<double>(*live_bytes);
  }
};

/** Clients' sessions that wait for a statement, what they can still hold, and
the part of those that have waited for a minute. */
struct Idle_sessions {
  uint64_t count;
  uint64_t bytes;
  uint64_t long_idle_bytes;
};

/** The bytes of a holder that one session has. */
struct Held_part {
  const Holder *holder;
  uint64_t bytes;
};

/** A variable, and the bytes that it may take of each connection. */
struct Buffer {
  const char *variable;
  uint64_t bytes;
};

/** A folder in a file system that lies in memory. */
struct Folder_in_memory {
  std::string path;
  /** By all files of the file system. */
  uint64_t used_bytes;
};

/** The ceiling while memdiag_memory_target is not OFF. */
struct Ceiling_situation {
  /** False: memdiag_memory_target is WATCH. */
  bool acts;
  ceiling::Level level;
  ceiling::Marks marks;
  /** The kernel counts so much as kept. */
  int64_t kept_bytes;
  /** Frames of the buffer pool whose memory the system has, and those that the
  pool can still give. */
  uint64_t parked_bytes;
  uint64_t parkable_bytes;
  /** Waits of running statements that ended without room. */
  uint64_t went_on;
  /** Since the last of them. Empty: it is not among the actions that are kept.
   */
  Reading went_on_seconds;
  uint64_t longest_wait_us;
  /** Since its last action. Empty: it never did anything. */
  Reading quiet_seconds;
};

struct Situation {
  host::Figures host;
  /** The server's, by a clock that does not jump. */
  Reading up_seconds;
  std::array<Pool_situation, pool_count> pools;
  /** The trend of the resident memory outside the buffer pool, which grows to
  its configured size and no further. */
  std::optional<Trend> trend_without_buffer_pool;
  std::optional<bool> background_threads;
  /** As other_allocators() (preload.h), but empty where there is none. */
  std::optional<std::string> preloaded;
  /** jemalloc's option thp. */
  std::optional<std::string> allocator_huge_pages;
  /** Buffers that are allocated at their full size: the server's, and those of
  one session (MEMDIAG_BUDGET, kind "buffer"). */
  Reading global_buffers_bytes;
  Reading session_buffers_bytes;
  /** The configured size. */
  Reading buffer_pool_bytes;
  /** The size that the options had when the server started. InnoDB rounds it up
  to a multiple of the unit. Empty: no option had one. */
  Reading buffer_pool_asked_bytes;
  Reading buffer_pool_unit_bytes;
  /** tmpdir, if it lies in memory. */
  std::optional<Folder_in_memory> tmpdir_in_memory;
  /** Empty: memdiag_memory_target is OFF. */
  std::optional<Ceiling_situation> ceiling;
  Reading max_connections;
  /** Most clients at one time within the last max_used_seconds: since the
  server started, or since FLUSH STATUS. */
  Reading max_used_connections;
  Reading max_used_seconds;
  /** SET GLOBAL can lower it. Empty: not known. */
  std::optional<Buffer> largest_session_buffer;
  /** The process without the buffer pool, resident. Shares of holders are of
  this: the buffer pool is as large as its user made it. */
  Reading other_resident_bytes;
  std::vector<Holding> holdings;
  /** Empty: not known, or less than worth_bytes. */
  std::optional<Row_locks> row_locks;
  /** Values of the variables that statements of holders name. */
  std::map<std::string_view, uint64_t> variables;
  /** Definitions of tables that InnoDB has, but for temporary ones. */
  Reading table_definitions;
  /** The data dictionary's objects: copies in its caches and in open views. */
  uint64_t data_dictionary_bytes;
  /** The session with most memory; empty where it is not known. */
  std::optional<Session> largest_session;
  /** The session that asks. */
  Reading reader_processlist_id;
  /** The resident bytes of holders that the largest session has. The rest of
  its bytes belongs to no holder. */
  std::vector<Held_part> held_by_largest;
  /** The resident bytes that it has in the pool of sessions, less values of
  expressions, which open tables may keep; 0: not known. */
  uint64_t largest_in_session_pool;
  std::optional<Idle_sessions> idle_sessions;
  /** Performance Schema counts memory by session: it is on, with instruments of
  the server and for half of the sessions at least. Statements that end those
  which hold most find none without it. */
  bool sessions_are_counted;
  /** The same for documents of JSON. */
  bool documents_are_counted;
  /** It counts locks of names, has lost none, and has counted them for as long
  as each session is connected. Statements that end sessions could not leave out
  those that keep some without it. */
  bool locks_are_counted;
  /** Sessions of clients. */
  Reading clients;
  /** Programs of triggers have so much. */
  uint64_t trigger_bytes;
  /** So much of strings at least no session can have. Open tables keep it, if
  there are some that can. */
  uint64_t kept_string_bytes;
  /** Sessions of clients that are idle can hold so much of strings, in prepared
  statements, in programs that they called and in optimizer traces. */
  uint64_t idle_string_bytes;
  /** Open tables that can keep large values of expressions (holder_list.h), and
  those of ENGINE=CSV, which keep a row as a string. What a session took may be
  theirs. 0 unless asks_for_tables(). */
  uint64_t value_tables;
  uint64_t csv_tables;
  /** Warnings of sessions that wait for a statement. */
  uint64_t idle_warnings;
  /** Sessions that keep tables open between statements, or for long. FLUSH
  would wait for them, and all statements on their tables for the FLUSH. */
  uint64_t table_keepers;
  /** super_read_only is ON. */
  bool is_read_only;
  /** The server started with --skip-grant-tables, and finds no function of
   * ours.
   */
  bool lacks_functions;
};

enum class Severity : uint8_t { note, warning, critical };

struct Finding {
  Severity severity;
  /** A pool, session, server, allocator, machine or cgroup. */
  std::string subsystem;
  /** leak, growth, fragmentation, cache, misconfiguration or host. */
  const char *verdict;
  std::string evidence;
  /** In words. */
  std::string remedy;
  /** The rule's name. It stays the same in later versions. */
  std::string rule{};
  /** The name in holder_list.h; empty: the finding is about none. */
  std::optional<std::string> holder{};
  /** The finding is about so many bytes, resident. */
  Reading bytes{};
  /** Empty: not known, or the same. */
  Reading allocated_bytes{};
  /** It runs as it stands and helps. One with a column RUN has the statements
  to run in its rows. */
  std::optional<std::string> statement{};
  /** The session that has most of it, with its part. */
  std::optional<Session> owner{};

  const char *severity_name() const {
    constexpr const char *names[] = {"note", "warning", "critical"};
    return names[static_cast<size_t>(severity)];
  }
};

}  // namespace memdiag::advisor

#endif  // MEMDIAG_FINDING_H
