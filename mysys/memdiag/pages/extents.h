/*
  Which pages of the allocator's are really there: jemalloc counts a page as
  resident that was never written, and the kernel does not.

  The extents are walked in the order of their addresses, from one's end to the
  next, and the kernel is asked for their pages. No lock of the allocator's is
  held over it, nothing stops, and what others change meanwhile is counted as it
  was or as it is. The cost is that of the number of extents: some 10 ms for 200
  MB in small blocks, and half of that in blocks of all sizes. Where the
  allocator never had an extent, steps are of a gigabyte, because others reserve
  addresses by the terabyte.

  Threads: any. Nothing of the pools is allocated. Units: bytes.
*/

#ifndef MEMDIAG_EXTENTS_H
#define MEMDIAG_EXTENTS_H

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "mysys/memdiag/pages/presence.h"
#include "mysys/memdiag/pools/pools.h"

namespace memdiag::extents {

/** Bytes of a pool's extents in physical memory. */
struct Present {
  /** Bytes of slabs, shared out by how many of their regions are used and free.
   */
  uint64_t small_live_bytes;
  uint64_t small_free_bytes;
  uint64_t large_bytes;
  /** Pages that wait to be used again, and were written once. */
  uint64_t dirty_bytes;
  /** The same, after the kernel was told that it may take them. */
  uint64_t muzzy_bytes;
  /** The part of all these that is in huge pages. */
  uint64_t huge_bytes;
  uint64_t total() const {
    return small_live_bytes + small_free_bytes + large_bytes + dirty_bytes +
           muzzy_bytes;
  }
};

struct Walk {
  std::array<Present, pool_count> pools;
  /** In no extent: the allocator's metadata, and what is not its own. */
  uint64_t unowned_bytes;
  /** True if the kernel tells of huge pages. */
  bool huge_known;
  uint64_t total() const {
    uint64_t sum = unowned_bytes;
    for (const Present &pool : pools) sum += pool.total();
    return sum;
  }
};

/** @param ranges  where extents may lie: mapped, and of no other use
@return empty: the kernel did not tell, which errno explains */
std::optional<Walk> walk(std::span<const Address_range> ranges);

}  // namespace memdiag::extents

#endif  // MEMDIAG_EXTENTS_H
