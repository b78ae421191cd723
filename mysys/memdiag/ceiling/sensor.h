/*
  The sensor of the ceiling: jemalloc calls it on a thread that has allocated
  64 KB more. It charges the account, lets one thread read the kernel when that
  is due, calls the giver when memory is short, and lets a statement's thread
  wait while the level is red.

  switch_on() installs it at first. jemalloc has no way to take it back, so
  after switch_off() each call returns at once. Before the first switch_on()
  there is no call.

  Only threads with a statement that may wait ever wait: begin() says so. They
  wait at two places:
  - in pools::allocate(), before it takes a turn or an arena's flag, for pools
    of statements and sessions. Pools of InnoDB never wait: their callers hold
    latches.
  - in jemalloc's callback, after malloc() has the block and before it returns.
    There the thread may be within pools::allocate() and hold a turn. It then
    only charges, and the next ask of the thread waits. While the attention bit
    is set, pools::allocate() marks the thread. A thread that entered it before
    has one event at most, so a thread's first event after the bit was set never
    waits.

  Ownership: a Taker is the calling thread's and lives until its end.
  Threads: any, unless said otherwise. Locks: the mutex of Rounds, to wait.
  Allocates nothing. errno stays.
  Errors: switch_on() returns an errno. Units: bytes; microseconds.
*/

#ifndef MEMDIAG_CEILING_SENSOR_H
#define MEMDIAG_CEILING_SENSOR_H

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "mysys/memdiag/ceiling/account.h"
#include "mysys/memdiag/ceiling/ask.h"
#include "mysys/memdiag/ceiling/rounds.h"
#include "mysys/memdiag/pools/pool.h"

namespace memdiag::ceiling {

/** A thread is seen after so many bytes. */
constexpr uint64_t interval_bytes = 64 << 10;

extern Account account;
extern Rounds rounds;
extern Tokens tokens;

/** Sums since the server started. */
struct Counters {
  /** Waits of running statements. */
  std::atomic<uint64_t> waits{0};
  std::atomic<uint64_t> wait_us{0};
  std::atomic<uint64_t> longest_wait_us{0};
  /** Waits that ended without room. */
  std::atomic<uint64_t> went_on{0};
  /** Statements that ended because of the ceiling. */
  std::atomic<uint64_t> ended{0};
  /** Statements that did not begin. */
  std::atomic<uint64_t> refused{0};
  /** Bytes of the buffer pool's frames that are given back now. */
  std::atomic<uint64_t> parked_bytes{0};
  /** True while a target is in use. */
  std::atomic<bool> on{false};
};
extern Counters counters;

/** The part of a thread that others read. */
struct Taker {
  /** Growth of the thread since its statement began, as of its last event. */
  std::atomic<int64_t> grown_bytes{0};
  std::atomic<bool> told_to_end{false};
};

/** @param call_giver  wakes the giver; it lives for ever, allocates nothing,
and is called from malloc()
@return 0, or an errno: there is no sensor. One thread at a time */
int switch_on(void (*call_giver)());
void switch_off();

/** The giver says whether threads are to ask: not while the level is green.
One thread at a time. */
void let_threads_ask(bool ask);

/** The calling thread's statement begins.
@param promised_bytes  what it will take at once */
Taker *begin(int64_t promised_bytes);
/** It has ended. Nothing happens if none has begun. */
void end();

/** @name What jemalloc and the pools call; for tests @{ */
void on_event(bool by_allocation, uint64_t allocated, uint64_t freed);
void on_ask(Pool pool, size_t size);
/** @} */

}  // namespace memdiag::ceiling

#endif  // MEMDIAG_CEILING_SENSOR_H
