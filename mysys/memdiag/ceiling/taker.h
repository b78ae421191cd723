/*
  The sensor and the giver share these: the account, the rounds, the tokens,
  sums, and the part of each thread that the giver reads.

  Ownership: a Taker is its thread's and lives until its end. Threads: any.
  Units: bytes; microseconds.
*/

#ifndef MEMDIAG_CEILING_TAKER_H
#define MEMDIAG_CEILING_TAKER_H

#include <atomic>
#include <cstdint>

#include "mysys/memdiag/ceiling/account.h"
#include "mysys/memdiag/ceiling/ask.h"
#include "mysys/memdiag/ceiling/rounds.h"

namespace memdiag::ceiling {

extern Account account;
extern Rounds rounds;
extern Tokens tokens;

/** Sums since the server started. */
struct Counters {
  /** Waits of running statements, of packets and messages before they are read,
  and of threads that read an event. */
  std::atomic<uint64_t> waits{0};
  std::atomic<uint64_t> wait_us{0};
  std::atomic<uint64_t> longest_wait_us{0};
  /** Waits that ended without room. */
  std::atomic<uint64_t> went_on{0};
  /** Statements that were told to end. */
  std::atomic<uint64_t> ended{0};
  /** Statements that did not begin, blocks and values that were refused, and
  messages that were not read. */
  std::atomic<uint64_t> refused{0};
  /** Bytes of the buffer pool's frames that are given back now. */
  std::atomic<uint64_t> parked_bytes{0};
  /** memdiag_memory_target is not OFF. */
  std::atomic<bool> on{false};
  /** Nor is it WATCH. */
  std::atomic<bool> acts{false};
};
extern Counters counters;

/** The part of a thread that others read. */
struct Taker {
  /** Growth of the thread since its statement began, as of its last event. */
  std::atomic<int64_t> grown_bytes{0};
  std::atomic<bool> told_to_end{false};
  /** It waits for memory. */
  std::atomic<bool> waits{false};
  /** In malloc(), where a block cannot be refused. To end the statement brings
  nothing before it has the block. */
  std::atomic<bool> waits_in_malloc{false};
  /** For so much. */
  std::atomic<int64_t> asks_bytes{0};

  /** The thread took the first figure and waits for the second. A block that is
  larger than the room would wait for ever if it did not count. */
  int64_t wants_bytes() const {
    return grown_bytes.load(std::memory_order_relaxed) +
           asks_bytes.load(std::memory_order_relaxed);
  }
};

/** A statement that grew so much is told to the owner. */
constexpr int64_t large_bytes = 1 << 20;
/** A statement that grew less does not wait while it is less than a quarter of
the reserve beyond the target, unless it asks for a large block. */
constexpr int64_t small_bytes = 256 << 10;

}  // namespace memdiag::ceiling

#endif  // MEMDIAG_CEILING_TAKER_H
