/*
  Large blocks of threads that run no statement. One thread of a replica reads
  an event, and another one applies and frees it: no statement's end tells when
  the pages of a block are touched.

  A block is promised until its pages are touched, but for longest_us at most:
  some pages are never touched. Beside the block of an event goes a promise for
  what a worker will take to apply it. It ends with the block, after longest_us,
  or when workers have taken so much.

  Ownership: none. Threads: any. Locks: one mutex, for a few instructions for
  each place. Works within malloc(): it allocates nothing. Costs: a look at
  most_blocks places for each block of pools::watched_size that such a thread
  allocates and, while there is one, that any thread frees.
  Errors: without a place, a block is charged, and nothing is promised.
  Units: bytes; microseconds.
*/

#ifndef MEMDIAG_CEILING_LOOSE_BLOCKS_H
#define MEMDIAG_CEILING_LOOSE_BLOCKS_H

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "mysys/memdiag/ceiling/taken.h"

namespace memdiag::ceiling {

class Loose_blocks {
 public:
  static constexpr size_t most_blocks = 64;
  static constexpr uint64_t longest_us = 5'000'000;

  /** @param size, later_bytes  are promised by the caller */
  void add(const void *block, size_t size, Replica_block kind,
           int64_t later_bytes);
  /** The block is about to be freed. */
  void remove(const void *block);
  /** @return the promise beside the block of an event, which is the caller's
  now; 0: there is no such block */
  int64_t take_later(const void *block);
  /** A worker takes so much of what was promised beside the blocks. */
  void note_taken(int64_t bytes);
  /** There is a block of an event: its end will bring room. */
  bool has_event();
  /** Workers hold so much although their events are applied. 0: there is
  another event, which will have its room. */
  int64_t applied_bytes();
  /** The kernel counts the pages that were touched meanwhile. */
  void see();
  void clear();

  /** @name Around fork(), see mysys/memdiag/fork.cc @{ */
  void hold() { m_mutex.lock(); }
  void let_go() { m_mutex.unlock(); }
  /** @} */

 private:
  struct Place {
    /** Its address is 0: the place is free. */
    Block block{};
    /** Those that are applied stay until they are freed. Those of an event do,
    too, but for longest_us at most. */
    Replica_block kind{Replica_block::other};
    int64_t later_bytes{0};
    uint64_t since_us{0};
  };

  /** @return nullptr: there is none. Caller holds the mutex. */
  Place *find(const void *block);
  /** Caller holds the mutex. */
  void forget(Place *place);
  void see(Place *place, uint64_t now_us);

  std::array<Place, most_blocks> m_places;
  std::atomic<size_t> m_count{0};
  std::mutex m_mutex;
};

extern constinit Loose_blocks loose_blocks;

}  // namespace memdiag::ceiling

#endif  // MEMDIAG_CEILING_LOOSE_BLOCKS_H
