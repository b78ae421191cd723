/*
  Tells which blocks of a pool the general allocator may have served, without
  asking jemalloc for the arena of each: a counter for each hash of an address.
  While one such block lives, one of 256 others has its counter.

  Threads: any, without a lock. A block is added before other threads know it,
  and removed by the thread that frees it.
  Ownership: the filter knows addresses and touches no block.
*/

#ifndef MEMDIAG_FALLBACK_FILTER_H
#define MEMDIAG_FALLBACK_FILTER_H

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace memdiag::pools {

class Fallback_filter {
 public:
  void add(const void *block) noexcept {
    counter_of(block).fetch_add(1, std::memory_order_relaxed);
  }

  /** The block was added, or happens to share the counter of one that was: no
  counter falls below 0. */
  void remove(const void *block) noexcept {
    std::atomic<uint32_t> &counter = counter_of(block);
    uint32_t now = counter.load(std::memory_order_relaxed);
    while (now != 0 && !counter.compare_exchange_weak(
                           now, now - 1, std::memory_order_relaxed)) {
    }
  }

  /** @return false: the block was not added, or was removed */
  bool may_have(const void *block) const noexcept {
    return m_counters[index_of(block)].load(std::memory_order_relaxed) != 0;
  }

 private:
  static constexpr unsigned bits = 8;

  /** Neighbours are multiples of a size apart; the product spreads them. */
  static size_t index_of(const void *block) noexcept {
    constexpr uint64_t golden_ratio = 0x9e3779b97f4a7c15;
    return (reinterpret_cast<uintptr_t>(block) >> 4) * golden_ratio >>
           (64 - bits);
  }

  std::atomic<uint32_t> &counter_of(const void *block) noexcept {
    return m_counters[index_of(block)];
  }

  std::atomic<uint32_t> m_counters[1 << bits]{};
};

}  // namespace memdiag::pools

#endif  // MEMDIAG_FALLBACK_FILTER_H
