/*
  How the allocator's resident pages are shared out among pools and states.

  jemalloc counts a page as resident before the process writes to it; the
  kernel does not. A walk (mysys/memdiag/pages/extents.h) tells which pages of
  each pool the kernel has. Between two walks, a pool is expected to have the
  pages that jemalloc counts now, less those that the last walk found to be
  never written. Unused pages count in the same way: a freed block leaves its
  pages dirty, written or not. If the kernel has more pages than expected, the
  pools that have grown since get them first. All pools share any other
  difference.

  Assumption:
  - Pages in no extent are the allocator's metadata, up to what it counts as
    metadata. It counts unwritten pages of it too, so this is an upper bound.

  Threads: pure functions. Units: bytes.
*/

#ifndef MEMDIAG_POOL_SHARES_H
#define MEMDIAG_POOL_SHARES_H

#include <array>
#include <cstdint>

#include "mysys/memdiag/pages/extents.h"
#include "mysys/memdiag/pools/pools.h"

namespace memdiag::ledger {

/** Statistics of jemalloc, summed over a pool's arenas. */
struct Pool_figures {
  uint64_t live_bytes;
  uint64_t active_bytes;
  uint64_t dirty_bytes;
  uint64_t muzzy_bytes;
  uint64_t metadata_bytes;
};
using All_pools = std::array<Pool_figures, pool_count>;

/** A walk, and jemalloc's statistics of the same moment. */
struct Walked {
  extents::Walk walk;
  All_pools pools;
  /** Counted by mincore() and not by the walk: pages that were read and never
  written, which map the kernel's page of zeros. */
  uint64_t only_read_bytes;
};

/** Resident bytes of a pool, by state. */
struct Pool_split {
  uint64_t live;
  uint64_t fragmentation;
  uint64_t dirty;
  uint64_t muzzy;
  uint64_t metadata;
};

struct Shared_out {
  std::array<Pool_split, pool_count> pools;
  /** Not the allocator's. */
  uint64_t other;
};

/** The shares at the moment of a walk. */
Shared_out shared_out_exactly(const Walked &walked);

/** The same bytes now.
@param bytes  resident anonymous memory, without only_read_bytes
@param now    jemalloc's statistics now
@param walked the last walk */
Shared_out shared_out(uint64_t bytes, const All_pools &now,
                      const Walked &walked);

/** The anonymous memory that mincore() is expected to count now: that of the
last walk, corrected by how jemalloc's statistics have changed since. */
uint64_t expected_anonymous(const All_pools &now, const Walked &walked);

}  // namespace memdiag::ledger

#endif  // MEMDIAG_POOL_SHARES_H
