/*
  The giver's rounds. A thread that waits for memory sleeps until the giver has
  ended a round. A wait is bounded by rounds and by time: a quota of the CPU
  stops the giver and the waiting thread alike, and then time alone says
  nothing.

  Threads: any. Locks: one mutex, for a few instructions. Allocates nothing.
  Units: microseconds.
*/

#ifndef MEMDIAG_CEILING_ROUNDS_H
#define MEMDIAG_CEILING_ROUNDS_H

#include <pthread.h>

#include <atomic>
#include <cstdint>

namespace memdiag::ceiling {

class Rounds {
 public:
  uint64_t ended() const { return m_ended.load(std::memory_order_relaxed); }
  /** The giver has ended a round.
  @param wake  waiting threads look again: there is something to see. To wake
               them in each round would take the CPU from the giver */
  void end_one(bool wake = true);
  /** Wait until another round than `seen` has ended, for so long at most. */
  void wait(uint64_t seen, uint64_t us);

  /** @name Around fork(), see mysys/memdiag/fork.cc @{ */
  void hold() noexcept { pthread_mutex_lock(&m_mutex); }
  void let_go() noexcept { pthread_mutex_unlock(&m_mutex); }
  /** @} */

 private:
  std::atomic<uint64_t> m_ended{0};
  // Those of the C++ library are not initialised by constants.
  pthread_mutex_t m_mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t m_ended_one = PTHREAD_COND_INITIALIZER;
};

}  // namespace memdiag::ceiling

#endif  // MEMDIAG_CEILING_ROUNDS_H
