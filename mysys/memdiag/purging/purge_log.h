/*
  The last purges, one entry for each: when, of which pool, why, what it gave
  back, and what of that the pool soon had to take again. And what else was done
  so that a pool has pages to give back.

  Threads: any adds: pools::purge() each purge, the watcher its other steps. The
  purger notes what was taken again. A mutex is held for as long as copying
  takes. Over a fork() the pools hold it, together with their own.
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

#include "mysys/memdiag/pools/pools.h"

namespace memdiag::purge_log {

/** What is older gives way. */
constexpr size_t max_purges = 1024;

enum class Action : uint8_t {
  purge,
  write_full_text,
  close_tables,
  shrink_buffer_pool
};

struct Purge {
  /** When it ended. */
  uint64_t time_us;
  Pool pool;
  Purge_reason reason;
  /** Of anything but a purge: its duration and error. */
  pools::Receipt receipt;
  /** pools::allocated_bytes() at its end. */
  uint64_t allocated_bytes;
  /** Counts all purges since the server started, from 1; given by add(). */
  uint64_t sequence{0};
  /** What of the bytes given back was allocated again; see note_refault(). */
  std::optional<uint64_t> refaulted_bytes{};
  Action action{Action::purge};
  /** See Row. */
  std::optional<uint64_t> freed_bytes{};
};

void add(const Purge &purge) noexcept;

/** The last purge of a pool, which no other action is; empty if there was none,
or so many others since that it is gone. */
std::optional<Purge> last_of(Pool pool) noexcept;

/** Of what that purge gave back, so much was allocated again. */
void note_refault(uint64_t sequence, uint64_t bytes) noexcept;

/** As shown in MEMDIAG_PURGES. */
struct Row {
  uint64_t sequence;
  uint64_t time_us;
  const char *pool;
  const char *reason;
  const char *action;
  /** What an action other than a purge took of the pool's live bytes, or asked
  InnoDB to take, which does it in the background. */
  std::optional<uint64_t> freed_bytes;
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
