/*
  The bytes that the calling thread takes in an interval. The clocks of
  EXPLAIN ANALYZE call these functions (sql/memdiag/iterator_memory.h). Includes
  no header of the server or of this layer.

  Intervals of one thread nest: an interval ends before those that were open
  when it began. What one takes is also the outer ones'. Blocks are counted as
  in mysys/memdiag/accounting/thread_bytes.h: those of pools that have a route.

  Threads: an interval is its thread's. No lock but for a thread's first block
  or interval; nothing is allocated. Units: bytes.
*/

#ifndef MEMDIAG_INTERVAL_HOOKS_H
#define MEMDIAG_INTERVAL_HOOKS_H

#include <atomic>
#include <cstdint>

namespace memdiag {

/** The state of the running statement when an interval began. */
struct Interval {
  /** The thread's number of the statement; 0: the interval is not counted. */
  uint64_t statement = 0;
  uint64_t taken = 0;
  int64_t growth = 0;
  int64_t outer_peak = 0;
};

/** Bytes taken since the begin. */
struct Interval_memory {
  /** Freed or not. */
  uint64_t taken;
  /** Taken less freed; below 0 if more was freed that came before. */
  int64_t growth;
  /** The most that the growth was. */
  int64_t peak;
};

}  // namespace memdiag

extern "C" {
/** True if intervals are counted: the switch memdiag_sessions. While it is off
nothing else need be called. */
extern std::atomic<bool> memdiag_counts_intervals;

/** @param interval  a new one: if it is not counted, it stays as it is */
void memdiag_interval_begins(memdiag::Interval *interval);
/** Call it as often as is of use before the end.
@return false: not counted, or the statement has ended */
bool memdiag_interval_so_far(const memdiag::Interval *interval,
                             memdiag::Interval_memory *memory);
void memdiag_interval_ends(const memdiag::Interval *interval);
}

#endif  // MEMDIAG_INTERVAL_HOOKS_H
