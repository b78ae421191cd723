/*
  The policy under memory pressure: which step is next, and when to pause.

  Steps go in the order of what they cost other threads. A step is taken only
  while the pressure lasts:
  1. Purge unused pages of the pools, the pool with most of them first. They are
     of no use to any thread, and cost a page fault each if they are needed
     again.
  2. Write full-text caches to their indexes. InnoDB would write them anyway.
  3. Close unused tables of the table cache. Tables cannot be opened meanwhile,
     and closed ones are opened anew when they are needed. A shrunk cache leaves
     unused pages in its pool, which is then purged once more.
  4. Make the buffer pool smaller by an eighth, only down to the size that the
     user allows: it is the user's setting, and only the user makes it larger
     again.
  A round takes each step once at most. A pause follows: one second if the round
  was of use, otherwise twice the last pause, up to a minute. A round was of use
  if what it gave back was not little and has not been allocated again. The
  buffer pool does not count here, so it shrinks ever more slowly.

  Pure functions; nothing is read and nothing done here.
  Units: bytes; microseconds of a clock that does not go back.
*/

#ifndef MEMDIAG_RELIEF_H
#define MEMDIAG_RELIEF_H

#include <array>
#include <cstdint>
#include <optional>

#include "mysys/memdiag/pools/pools.h"
#include "plugin/memdiag/host/pressure.h"

namespace memdiag::relief {

/** A pool with less is not purged. */
constexpr uint64_t worth_purging_bytes = 1 << 20;
/** A cache with less is not shrunk. */
constexpr uint64_t worth_shrinking_bytes = 8 << 20;
/** A round that gave back less was of no use. */
constexpr uint64_t little_bytes = 16 << 20;
/** The pressure has ended after this time without it. */
constexpr uint64_t calm_us = 1000000;
constexpr uint64_t min_pause_us = 1000000;
constexpr uint64_t max_pause_us = 60 * min_pause_us;

struct Settings {
  /** Percent of the limit that is used, and of the time that a task waited; 0:
  no threshold. */
  unsigned limit_percent;
  unsigned stall_percent;
  bool operator==(const Settings &) const = default;
};

/** The state between two calls. */
struct State {
  bool pressed{false};
  /** Without pressure since then. */
  std::optional<uint64_t> calm_since_us{};
  bool in_round{false};
  /** The round's steps so far: a bit for each pool and each cache. */
  uint32_t taken{0};
  /** The last round ended then. */
  std::optional<uint64_t> rest_since_us{};
  uint64_t pause_us{min_pause_us};
  /** pause_us considers the last round's use. */
  bool judged{true};
};

enum class Event {
  /** No step. */
  none,
  /** Call next_step(). */
  due,
  /** The pressure has ended. */
  ended
};

/** The result of a round's purges of a pool. */
struct Purged {
  uint64_t given_back_bytes;
  /** pools::allocated_bytes() after the last of them. */
  uint64_t allocated_bytes;
};

/** The part of the released bytes that the pools have not allocated again.
@param allocated_bytes  pools::allocated_bytes() now */
uint64_t kept_bytes(const std::array<Purged, pool_count> &purged,
                    const std::array<uint64_t, pool_count> &allocated_bytes);

/** @param kept_bytes  released by the last round and not allocated again
@param statements_wait  for memory, and have for long: that is pressure, too */
Event next_event(const Settings &settings, const pressure::Figures &figures,
                 uint64_t kept_bytes, uint64_t now_us, State *state,
                 bool statements_wait = false);

/** Memory that could be given back now; unknown is 0. */
struct Stock {
  std::array<uint64_t, pool_count> dirty_bytes{};
  uint64_t full_text_bytes{0};
  uint64_t table_cache_bytes{0};
  /** The buffer pool may be made smaller by this. */
  uint64_t buffer_pool_bytes{0};
};

struct Step {
  enum Kind {
    /** The round has ended. */
    none,
    purge,
    write_full_text_caches,
    close_unused_tables,
    shrink_buffer_pool
  } kind;
  /** The pool to purge, or the pool of the cache. */
  Pool pool;
  /** The amount in stock. */
  uint64_t bytes;
};

/** The next step of the round; the caller must take it. */
Step next_step(const Stock &stock, uint64_t now_us, State *state);

/** The amount by which one step shrinks the buffer pool.
@param size_bytes  its size, a multiple of the unit
@param min_bytes   its least size */
uint64_t buffer_pool_step(uint64_t size_bytes, uint64_t unit_bytes,
                          uint64_t min_bytes);

/** The round was only reported: pause for the longest time. */
void rest_long(State *state);

/** Settings have changed: the next round may begin at once. */
void end_pause(State *state);

}  // namespace memdiag::relief

#endif  // MEMDIAG_RELIEF_H
