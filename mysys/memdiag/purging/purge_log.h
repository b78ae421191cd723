/*
  The log of purges, one entry for each: when, of which pool, why, what it gave
  back, and how much of that the pool soon took again.

  Threads: any. purging::purge() adds each purge. The purger notes the bytes
  that were taken again, or the pool's next purge if that comes first. A mutex
  is held while an entry is copied. Memory: a fixed ring. Only all() allocates,
  for its caller. Units: bytes and microseconds as in purging::Receipt; times in
  microseconds since the epoch.
*/

#ifndef MEMDIAG_PURGE_LOG_H
#define MEMDIAG_PURGE_LOG_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "mysys/memdiag/pools/pool.h"
#include "mysys/memdiag/purging/receipt.h"

namespace memdiag::purge_log {

/** The oldest entry gives way to a new one. */
constexpr size_t max_purges = 1024;

struct Purge {
  /** When it ended. */
  uint64_t time_us;
  Pool pool;
  Purge_reason reason;
  purging::Receipt receipt;
  /** Counts all purges since the server started, from 1; given by add(). */
  uint64_t sequence{0};
  /** The part of the bytes given back that was taken again; see
  note_refault(). */
  std::optional<uint64_t> refaulted_bytes{};
};

/** @return its sequence */
uint64_t add(const Purge &purge) noexcept;

/** The last entry of a pool; empty if there was none, or if so many others came
since that it is gone. */
std::optional<Purge> last_of(Pool pool) noexcept;

/** Empty if so many others came since that it is gone. */
std::optional<Purge> of(uint64_t sequence) noexcept;

/** The arenas of the purge have taken `bytes` again of those that it gave back.
The first note stays. */
void note_refault(uint64_t sequence, uint64_t bytes) noexcept;

/** As shown in MEMDIAG_PURGES. RSS and released bytes are empty after an error;
RSS also where it is not known. refaulted_bytes is empty until note_refault(),
and stays so for a pool that uses_malloc(). error is empty if
there was none. Texts are constants. */
struct Row {
  uint64_t sequence;
  uint64_t time_us;
  const char *pool;
  const char *reason;
  std::optional<uint64_t> rss_before_bytes;
  std::optional<uint64_t> rss_after_bytes;
  std::optional<uint64_t> released_bytes;
  uint64_t duration_us;
  std::optional<uint64_t> refaulted_bytes;
  std::optional<int64_t> error;
};

/** The oldest first. @throws std::bad_alloc */
std::vector<Row> all();

/** Around fork(), see mysys/memdiag/fork.cc: the mutex is held. */
void hold() noexcept;
void let_go() noexcept;

}  // namespace memdiag::purge_log

#endif  // MEMDIAG_PURGE_LOG_H
