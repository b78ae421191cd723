/*
  Memory of pools by thread: bytes that each thread allocated minus those it
  freed, by pool, and the same for its running statement. The counts begin when
  they are switched on (tracking.h).

  Blocks are counted for the thread that allocates them and against the thread
  that frees them: a thread that freed more than it allocated is below 0. The
  sum over live and ended threads is exactly the bytes allocated since counting
  began minus the bytes freed since. Counted are blocks of pools that have a
  route, not malloc()'s, nor those that malloc() served for a pool.

  A statement is what the session's own thread does from the end of the one
  before: reading the packet is in it, what other threads do for it is not.

  Threads: any. A thread counts in memory that no other thread writes;
  a mutex is taken when a thread first counts and when a session ends. After a
  fork() the child has one thread; the others have ended. Memory: nothing is
  allocated but by holdings(), for the caller. Units: bytes of size classes.
*/

#ifndef MEMDIAG_THREAD_BYTES_H
#define MEMDIAG_THREAD_BYTES_H

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "mysys/memdiag/pools/pool.h"

namespace memdiag::sessions {

/** Begin to count, with none, or end it. Part of track(), see tracking.h. */
void track_threads(bool on);

/** @name Events of the calling thread, while counting is on @{ */
/** Listens to block events. */
void note(Pool pool, pools::Account account, int64_t bytes) noexcept;
/** Blocks that came before belong to no statement. */
void session_began() noexcept;
/** Blocks that the thread still holds belong to no thread from now on. */
void session_ended() noexcept;
/** @} */

/** By pool: taken less freed. */
using Nets = std::array<int64_t, pool_count>;

struct Thread_nets {
  pthread_t thread;
  Nets nets;
};
struct Holdings {
  std::vector<Thread_nets> threads;
  /** Sums of threads and sessions that ended. */
  Nets gone;
};

/** None while counting is off, because frees are not counted then.
@throws std::bad_alloc */
Holdings holdings();

/** @name The calling thread's statement, for digests.h and intervals.h @{ */
struct Statement_bytes {
  /** The thread's number of the statement, above 0. */
  uint64_t number;
  /** Freed or not. */
  uint64_t taken;
  /** Taken less freed: below 0 if more was freed that came before. */
  int64_t growth;
  /** The most that the growth was, or what set_statement_peak() made of it. */
  int64_t peak;
};

/** Makes the thread count, from 0, if it has not since counting began.
@return false: the thread ends, or the system has no room for its end to be
noted */
bool count_thread() noexcept;

/** @return empty: the thread has not counted since counting began */
std::optional<Statement_bytes> statement_bytes() noexcept;

/** The peak goes on from there. */
void set_statement_peak(int64_t peak) noexcept;

/** The next statement begins. The thread counts, see count_thread().
@return the one that ended */
Statement_bytes end_statement() noexcept;
/** @} */

/** Around fork(), see mysys/memdiag/fork.cc: the mutex is held. */
void hold_threads() noexcept;
void let_go_of_threads(bool in_child) noexcept;

}  // namespace memdiag::sessions

#endif  // MEMDIAG_THREAD_BYTES_H
