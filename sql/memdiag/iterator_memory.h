/*
  An iterator's memory, beside its time: for EXPLAIN ANALYZE, while
  memdiag_sessions is ON.

  The server's clock of an iterator gives the time when a call of the iterator
  began. Here this time also holds what the thread had taken by then.

  Ownership: both classes are members or locals of upstream's. Threads: an
  iterator's own. Units: bytes. Iterators below are included, as in the times.
*/

#ifndef MEMDIAG_ITERATOR_MEMORY_H
#define MEMDIAG_ITERATOR_MEMORY_H

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "mysys/memdiag/upstream/interval_hooks.h"

namespace memdiag {

/** When a call began. Its end ends the interval in which memory is counted;
without the switch it is a time and nothing else. */
class Call_start : public std::chrono::steady_clock::time_point {
 public:
  // Implicit: upstream's clock returns a time.
  Call_start(time_point now) : time_point(now) {
    if (memdiag_counts_intervals.load(std::memory_order_relaxed))
      memdiag_interval_begins(&m_interval);
  }
  /** The copy knows the begin. Its end ends nothing. */
  Call_start(const Call_start &other)
      : time_point(other), m_interval(other.m_interval), m_is_copy(true) {}
  Call_start &operator=(const Call_start &) = delete;
  ~Call_start() {
    if (m_interval.statement != 0 && !m_is_copy)
      memdiag_interval_ends(&m_interval);
  }

  const Interval &interval() const { return m_interval; }

 private:
  Interval m_interval;
  bool m_is_copy = false;
};

/** Adds up the calls of one iterator. */
class Iterator_memory {
 public:
  /** A call ends. */
  void add(const Call_start &start) {
    Interval_memory memory;
    if (start.interval().statement == 0 ||
        !memdiag_interval_so_far(&start.interval(), &memory))
      return;
    m_is_counted = true;
    m_taken += memory.taken;
    m_peak = std::max(m_peak, m_held + memory.peak);
    m_held += memory.growth;
  }

  /** True if a call was counted. */
  bool is_counted() const { return m_is_counted; }
  /** Taken by all calls, freed or not. */
  uint64_t taken_bytes() const { return m_taken; }
  /** The most that was taken and not freed at a moment. */
  uint64_t peak_bytes() const { return static_cast<uint64_t>(m_peak); }

 private:
  bool m_is_counted = false;
  uint64_t m_taken = 0;
  int64_t m_held = 0;
  int64_t m_peak = 0;
};

}  // namespace memdiag

#endif  // MEMDIAG_ITERATOR_MEMORY_H
