/*
  The last purges, one entry for each: when, of which pool, why, what it gave
  back, and what of that the pool soon had to take again.

  Threads: pools::purge() adds, one purge at a time; the purger notes what was
  taken again; anybody reads. A mutex is held for as long as copying takes. Over
  a fork() the pools hold it, together with their own.
  Memory: a fixed ring; nothing is allocated but by all(), for its caller.
  Units: bytes and microseconds as in pools::Receipt; moments in microseconds
  since the epoch.
*/

#ifndef MEMDIAG_PURGE_LOG_H
#define MEMDIAG_PURGE_LOG_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "memdiag_pools.h"

namespace memdiag::purge_log {

/** What is older gives way. */
constexpr size_t max_purges = 1024;

struct Purge {
  /** When it ended. */
  uint64_t time_us;
  Pool pool;
  Purge_reason reason;
  pools::Receipt receipt;
  /** pools::allocated_bytes() at its end. */
  uint64_t allocated_bytes;
  /** Counts all purges since the server started, from 1; given by add(). */
  uint64_t sequence{0};
  /** What of the bytes given back was allocated again; see note_refault(). */
  std::optional<uint64_t> refaulted_bytes{};
};

void add(const Purge &purge) noexcept;

/** The last purge of a pool; empty if there was none, or so many others since
that it is gone. */
std::optional<Purge> last_of(Pool pool) noexcept;

/** Of what that purge gave back, so much was allocated again. */
void note_refault(uint64_t sequence, uint64_t bytes) noexcept;

/** As shown in MEMDIAG_PURGES. */
struct Row {
  uint64_t sequence;
  uint64_t time_us;
  const char *pool;
  const char *reason;
  std::optional<uint64_t> resident_before_bytes;
  std::optional<uint64_t> resident_after_bytes;
  std::optional<uint64_t> released_bytes;
  uint64_t duration_us;
  std::optional<uint64_t> refaulted_bytes;
  std::optional<int64_t> error;
};

/** The oldest first. @throws std::bad_alloc */
std::vector<Row> all();

/** Around a fork(): the child would find the mutex locked for ever. The purge
mutex is taken before. */
void hold() noexcept;
void let_go() noexcept;

}  // namespace memdiag::purge_log

#endif  // MEMDIAG_PURGE_LOG_H
