/*
  Threads whose wait was as long as it may be go on one by one: together they
  would take at once what they waited for. The one that has waited for longest
  is first. So of n such threads, each goes on after n pauses, or twice as many
  where each of them got room or ended before its turn.

  Threads: any. Locks: none. Works within malloc(): it allocates nothing.
  Units: microseconds.
*/

#ifndef MEMDIAG_CEILING_GOING_ON_H
#define MEMDIAG_CEILING_GOING_ON_H

#include <atomic>
#include <cstdint>

namespace memdiag::ceiling {

class Going_on {
 public:
  static constexpr uint64_t pause_us = 250'000;

  constexpr explicit Going_on(uint64_t each_us = pause_us)
      : m_each_us(each_us) {}

  /** A thread whose wait is over asks several times in each pause.
  @param began_us  its wait
  @return true: it goes on now, and the next one pauses */
  bool may_go_on(uint64_t began_us, uint64_t now_us) {
    uint64_t first = m_first_us.load(std::memory_order_relaxed);
    while (began_us < first &&
           !m_first_us.compare_exchange_weak(first, began_us,
                                             std::memory_order_relaxed)) {
    }
    // If the first one asks no more, any other goes on.
    const uint64_t pauses = began_us <= first ? 1 : 2;
    uint64_t last = m_last_us.load(std::memory_order_relaxed);
    // The last one may have gone on after the caller's look at the clock.
    if (now_us < last + pauses * m_each_us ||
        !m_last_us.compare_exchange_strong(last, now_us,
                                           std::memory_order_relaxed))
      return false;
    m_first_us.store(UINT64_MAX, std::memory_order_relaxed);
    return true;
  }

 private:
  const uint64_t m_each_us;
  std::atomic<uint64_t> m_last_us{0};
  /** The begin of the longest wait of those that asked since the last one went
  on. */
  std::atomic<uint64_t> m_first_us{UINT64_MAX};
};

}  // namespace memdiag::ceiling

#endif  // MEMDIAG_CEILING_GOING_ON_H
