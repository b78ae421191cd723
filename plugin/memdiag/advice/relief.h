/*
  What to do when memory is short: which step is next, and when to let be.

  Steps go in order of what they cost others, and one is taken only while the
  pressure lasts:
  1. unused pages of the pools, the pool with most of them first: they are of no
     use to anybody, and cost a page fault each if they are wanted again;
  2. full-text caches, which are written to their indexes, as they will be
     anyway: work for the disk;
  3. the cache of open tables: those that nobody uses are closed, and opened
  anew when somebody does. Tables cannot be opened meanwhile. What a cache frees
  are unused pages of its pool, which is purged once more then;
  4. the buffer pool, by an eighth, and only where the user has said how small
  it may become: it is a setting of the user's, which nobody but the user makes
  larger again.
  A round takes each of them at most once. Then there is a pause, of a second
  where it was of use, and twice as long as the one before, up to a minute,
  where what it gave back was little, or has been taken again. The buffer pool
  counts for nothing in that: it becomes smaller ever more slowly, because what
  is left of it is worth ever more.

  Pure functions of what they are given; nothing is read and nothing done here.
  Units: bytes; microseconds of any clock that does not go back.
*/

#ifndef MEMDIAG_RELIEF_H
#define MEMDIAG_RELIEF_H

#include <array>
#include <cstdint>
#include <optional>

#include "mysys/memdiag/pools/pools.h"
#include "plugin/memdiag/host/pressure.h"

namespace memdiag::relief {

/** A purge of less is not worth it. */
constexpr uint64_t worth_purging_bytes = 1 << 20;
/** Nor is shrinking a cache that has less. */
constexpr uint64_t worth_shrinking_bytes = 8 << 20;
/** A round that gave back less was of no use. */
constexpr uint64_t little_bytes = 16 << 20;
/** Pressure has ended when it was away for so long. */
constexpr uint64_t calm_us = 1000000;
constexpr uint64_t min_pause_us = 1000000;
constexpr uint64_t max_pause_us = 60 * min_pause_us;

struct Settings {
  /** Percent of the limit, and of time that some task waited; 0: is not heeded.
   */
  unsigned limit_percent;
  unsigned stall_percent;
  bool operator==(const Settings &) const = default;
};

/** What is remembered from look to look. */
struct State {
  bool pressed{false};
  /** Since when there is no pressure any more. */
  std::optional<uint64_t> calm_since_us{};
  bool in_round{false};
  /** Steps that the round has taken: a bit for each pool and each cache. */
  uint32_t taken{0};
  /** When the last round ended. */
  std::optional<uint64_t> rest_since_us{};
  uint64_t pause_us{min_pause_us};
  /** Whether the last round's use is in pause_us. */
  bool judged{true};
};

enum class Event {
  /** Nothing is to be done. */
  none,
  /** A step is to be taken: next_step(). */
  due,
  /** There is no pressure any more. */
  ended
};

/** What a round's purges of a pool gave back. */
struct Purged {
  uint64_t released_bytes;
  /** pools::allocated_bytes() after the last of them. */
  uint64_t allocated_bytes;
};

/** What of that the pools have not allocated again.
@param allocated_bytes  pools::allocated_bytes() now */
uint64_t kept_bytes(const std::array<Purged, pool_count> &purged,
                    const std::array<uint64_t, pool_count> &allocated_bytes);

/** @param kept_bytes  what the last round gave back and nobody has taken again
 */
Event next_event(const Settings &settings, const pressure::Figures &figures,
                 uint64_t kept_bytes, uint64_t now_us, State *state);

/** What could be given back now; unknown is 0. */
struct Stock {
  std::array<uint64_t, pool_count> dirty_bytes{};
  uint64_t full_text_bytes{0};
  uint64_t table_cache_bytes{0};
  /** By which the buffer pool may be made smaller. */
  uint64_t buffer_pool_bytes{0};
};

struct Step {
  enum Kind {
    /** There is none, and the round has ended. */
    none,
    purge,
    write_full_text_caches,
    close_unused_tables,
    shrink_buffer_pool
  } kind;
  /** Whose pages, or where the cache lies. */
  Pool pool;
  /** How much there is of it. */
  uint64_t bytes;
};

/** The next step of the round, which the caller is to take. */
Step next_step(const Stock &stock, uint64_t now_us, State *state);

/** What a step takes of the buffer pool.
@param size_bytes  its size, a multiple of the unit
@param min_bytes   what it may not be smaller than */
uint64_t buffer_pool_step(uint64_t size_bytes, uint64_t unit_bytes,
                          uint64_t min_bytes);

/** Nothing was really done: ask again after the longest pause. */
void rest_long(State *state);

/** Settings have changed: the next round may begin at once. */
void end_pause(State *state);

}  // namespace memdiag::relief

#endif  // MEMDIAG_RELIEF_H
