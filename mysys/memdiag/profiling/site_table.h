/*
  The distinct sites of samples, numbered from 1. A site is a stack, a pool and
  a route. The same addresses are another stack where another library has them.
  Sites are only added, so a number is valid as long as the table
  exists.

  Ownership: the memory is the caller's, zeroed, and must outlive the table.
  Threads: any, without a lock. If two threads add the same site at once, the
  room of one site may be wasted. Errors: add() returns 0 if there is no room.
  Units: bytes of size classes.
*/

#ifndef MEMDIAG_SITE_TABLE_H
#define MEMDIAG_SITE_TABLE_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "mysys/memdiag/pools/pool.h"

namespace memdiag::profiling {

struct Stack {
  /** Return addresses, the allocation first. */
  std::span<const uintptr_t> frames;
  /** The latest of the looks that found their code (code_ranges.h). */
  uint32_t youngest;
  /** The look at which the stack was walked. */
  uint32_t look;
};

struct Site {
  uint32_t number;
  Pool pool;
  /** The route's number; 0: malloc(). */
  pools::Account account;
  /** Return addresses, the allocation first; they live as long as the table. */
  std::span<const uintptr_t> frames;
  /** The look at which the first sample was taken. All of the code was there
  then. */
  uint32_t look;
  /** Estimates of all that was allocated since the profiler was switched on. */
  uint64_t allocated_bytes;
  double allocated_objects;
};

class Site_table {
 public:
  /** The number of sites for which so many bytes have room, with 40 frames
  each; 0: too few bytes. */
  static size_t sites_in(size_t bytes);

  /** @param bytes  of the memory; sites_in(bytes) is not 0 */
  Site_table(void *memory, size_t bytes);

  /** The number of a site, added if it is new; 0: no room.
  @param objects  the estimated number of allocated objects of `size` bytes */
  uint32_t add(Pool pool, pools::Account account, const Stack &stack,
               uint64_t size, double objects) noexcept;

  /** Calls visit(const Site &) for each, in ascending order. */
  template <typename Visitor>
  void for_each(Visitor visit) const {
    for (uint32_t number = 1; number <= m_room; ++number) {
      const Entry &entry = m_entries[number];
      if (entry.ready.load(std::memory_order_acquire))
        visit(site_of(number, entry));
    }
  }

 private:
  /** The mean depth for which the room is divided. Stacks of a point select are
  20 deep, those of a trigger 70. */
  static constexpr size_t frames_of_a_site = 40;
  /** Places of the index that a search looks at. */
  static constexpr size_t longest_search = 64;
  /** Objects are counted in fractions: a large block stands for 1.5, say. */
  static constexpr double parts_of_an_object = 1024;

  struct Entry {
    uint64_t hash;
    uint32_t first_frame;
    uint32_t youngest;
    uint32_t look;
    uint16_t frames;
    pools::Account account;
    Pool pool;
    /** Set after the members above are written. They never change again. */
    std::atomic<bool> ready;
    std::atomic<uint64_t> allocated_bytes;
    std::atomic<uint64_t> allocated_object_parts;
  };

  Site site_of(uint32_t number, const Entry &entry) const;
  bool is_same(const Entry &entry, uint64_t hash, Pool pool,
               pools::Account account, const Stack &stack) const;
  uint32_t make(uint64_t hash, Pool pool, pools::Account account,
                const Stack &stack) noexcept;
  uint32_t find_or_make(Pool pool, pools::Account account,
                        const Stack &stack) noexcept;

  struct Counters {
    std::atomic<uint32_t> sites;
    std::atomic<uint32_t> frames;
  };

  /** Sites, index entries and frames that there is room for. */
  const size_t m_room;
  const size_t m_index_size;
  const size_t m_frame_room;
  Counters *const m_used;
  /** Entry 0 is not used. */
  Entry *const m_entries;
  std::atomic<uint32_t> *const m_index;
  uintptr_t *const m_frames;
};

}  // namespace memdiag::profiling

#endif  // MEMDIAG_SITE_TABLE_H
