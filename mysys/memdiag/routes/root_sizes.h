/*
  How much a memory root needed when it was filled for the same text before.

  Sessions of a pool prepare the same statements. The memory root of each is
  filled in the same order by the same text, so it needs the same bytes. It
  takes its last block accordingly (sql/memdiag_known_root.h).

  A number is found by the hash of the text. A table of fixed size has it; a
  text takes the entry of another one. What it says is only expected: a text
  that needs less or more this time, because a table or a variable has changed
  or another text has the same hash, gets a block too large or small blocks
  more.

  Threads: any, without locks. Units: bytes. Memory: 32 KB in all.
*/

#ifndef MEMDIAG_ROOT_SIZES_H
#define MEMDIAG_ROOT_SIZES_H

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace memdiag {

class Root_sizes {
 public:
  /** @param text  its hash
      @return the bytes; 0: unknown */
  size_t find(uint64_t text) const {
    const uint64_t entry =
        m_entries[text % entries].load(std::memory_order_relaxed);
    return (entry ^ text) >> 32 == 0 ? entry & UINT32_MAX : 0;
  }

  void note(uint64_t text, size_t bytes) {
    if (bytes > UINT32_MAX) return;
    const uint64_t entry = (text & ~uint64_t{UINT32_MAX}) | bytes;
    auto &where = m_entries[text % entries];
    // Mostly it is the same: the line stays in the caches of all processors.
    if (where.load(std::memory_order_relaxed) != entry)
      where.store(entry, std::memory_order_relaxed);
  }

 private:
  static constexpr size_t entries = 4096;

  std::atomic<uint64_t> m_entries[entries]{};
};

}  // namespace memdiag

#endif  // MEMDIAG_ROOT_SIZES_H
