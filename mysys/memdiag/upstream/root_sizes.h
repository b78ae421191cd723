/*
  The sizes of memory roots, by the text that filled them.

  Sessions of a pool prepare the same statements. The same text fills each
  memory root in the same order, so the roots reach the same size. A root takes
  its last block accordingly (sql/memdiag/known_root.h).

  A table of fixed size has the sizes, by the hash of the text. Texts that share
  an entry replace each other. The size is a forecast: a table or a variable may
  have changed, and two texts may have the same hash. A root then takes a block
  that is too large, or small blocks beyond it.

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
