/*
  The advisor: findings about the server's memory, each with the figures that
  prove it and the statement or command that remedies it.

  A pure function from a situation to findings: tests use literal situations.
  An unknown figure proves nothing and makes no finding. The thresholds are in
  advisor.cc, each with its reason.

  Units: bytes, seconds.
*/

#ifndef MEMDIAG_ADVISOR_H
#define MEMDIAG_ADVISOR_H

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mysys/memdiag/pools/pools.h"
#include "plugin/memdiag/base/reading.h"
#include "plugin/memdiag/history/trend.h"
#include "plugin/memdiag/host/host.h"

namespace memdiag::advisor {

struct Pool_situation {
  Reading live_bytes;
  Reading active_bytes;
  Reading dirty_bytes;
  /** What of live_bytes is resident: the rest was never written. Empty: not
  known. */
  Reading resident_live_bytes;
  /** The trend of its live bytes. */
  std::optional<Trend> trend;
  /** Blocks that outlived their statement, transaction or session, and the
  route of most of them; 0 while memdiag_scope_survivors is off. Tables of the
  MEMORY engine do not count: they stay until they are dropped. */
  uint64_t survivors_bytes;
  std::string survivors_route;
};

/** A client's session, and the most that it can hold: what Performance Schema
counts for it, but no more of an instrument than lives of it at all. */
struct Session {
  uint64_t processlist_id;
  uint64_t bytes;
};

/** A variable, and the bytes that it may take of each connection. */
struct Buffer {
  const char *variable;
  uint64_t bytes;
};

struct Situation {
  host::Figures host;
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
  Reading max_connections;
  /** Most clients at one time within the last max_used_seconds: since the
  server started, or since FLUSH STATUS. */
  Reading max_used_connections;
  Reading max_used_seconds;
  /** Empty: not known. */
  std::optional<Buffer> largest_session_buffer;
  /** The process without the buffer pool, resident. Shares of holders are of
  this: the buffer pool is as large as its user made it. */
  Reading other_resident_bytes;
  /** Live blocks of sessions' prepared statements, and of stored programs:
  those that sessions have cached, and triggers of open tables. */
  uint64_t prepared_statements_bytes;
  uint64_t stored_programs_bytes;
  /** Live blocks of changes that sessions have not committed, without events
  that a replica has read. */
  uint64_t binlog_caches_bytes;
  /** The value of the variable: programs that a session caches. */
  Reading stored_program_cache;
  /** Values of the variables, for one session. */
  Reading binlog_cache_size;
  /** The session with most memory; empty where it is not known. */
  std::optional<Session> largest_session;
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
  /** What it is about, resident. */
  Reading bytes{};
  /** Empty: not known, or the same. */
  Reading allocated_bytes{};
  /** It runs as it stands and helps. One with a column RUN has the statements
  to run in its rows. */
  std::optional<std::string> statement{};

  const char *severity_name() const {
    constexpr const char *names[] = {"note", "warning", "critical"};
    return names[static_cast<size_t>(severity)];
  }
};

/** The most severe first. @throws std::bad_alloc */
std::vector<Finding> findings(const Situation &situation);

}  // namespace memdiag::advisor

#endif  // MEMDIAG_ADVISOR_H
