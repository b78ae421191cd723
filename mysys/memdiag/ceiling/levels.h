/*
  The numbers of the ceiling: how much room a limit leaves, and what the room
  means.

  left = target - kept - charged - promised (account.h).
  Green: left >= plenty. Yellow: reserve <= left < plenty. Red: left < reserve.
  Unknown: no limit, or the kernel's figures could not be read. The ceiling then
  does nothing.

  These numbers were chosen: a plenty of 1/16 of the limit, 64 MB at least; a
  reserve of 1/32, 16 MB at least; a target that is 1/32 below a control group's
  limit, 32 MB at least; and 4 GB a second, the most that memory which no
  malloc() takes is thought to grow.

  Pure functions. Threads: any. Units: bytes; microseconds. No errors.
*/

#ifndef MEMDIAG_CEILING_LEVELS_H
#define MEMDIAG_CEILING_LEVELS_H

#include <cstdint>

namespace memdiag::ceiling {

/** A thread is seen after so many bytes. */
constexpr uint64_t interval_bytes = 64 << 10;

enum class Level : uint8_t { unknown, green, yellow, red };
inline constexpr const char *level_names[] = {"UNKNOWN", "GREEN", "YELLOW",
                                              "RED"};

struct Marks {
  /** The server's memory stays below this. */
  int64_t target_bytes;
  /** Statements begin while so much is left. */
  int64_t plenty_bytes;
  /** Running statements go on while so much is left. */
  int64_t reserve_bytes;
  /** Beyond so much more than the target, no statement begins whose session may
  keep what it takes. */
  int64_t beyond_bytes{reserve_bytes / 2};
  /** Until so much more than the target, one statement after the other comes to
  its end that was told to end, or that was killed. */
  int64_t ending_bytes{reserve_bytes / 2};
  bool operator==(const Marks &) const = default;
};

/** A control group's limit: the target is 1/32 below it, 32 MB at least.
@param running  statements that run: each may allocate interval_bytes before its
                thread is seen */
Marks marks_of_limit(uint64_t limit_bytes, uint64_t running);
/** A target that the administrator gave. */
Marks marks_of_target(uint64_t target_bytes, uint64_t running);

/** @return green, yellow or red */
Level level_of(int64_t left_bytes, const Marks &marks);

/** The time until the giver looks at the kernel again by itself: memory that no
malloc() takes may grow by 4 GB a second. Within 1 and 250 ms. */
uint64_t next_look_us(int64_t left_bytes, const Marks &marks);

}  // namespace memdiag::ceiling

#endif  // MEMDIAG_CEILING_LEVELS_H
