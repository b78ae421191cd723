/*
  A value that is expensive to find, shared by threads that ask for it often.

  Rules, with `took` the time that finding the last value needed:
  - For 100 * took after a find, the last value serves. Finding thus costs at
    most 1% of the time.
  - After that, and until a minute after the find, it serves while the caller
    says that it still fits.
  - Otherwise the caller finds a new one. For a minute at most, other threads
    use the last value meanwhile, whether or not it fits. A finder that throws
    leaves it so. Without a last value, each caller finds one.

  Ownership: a Recent owns its value and returns copies.
  Threads: any; a mutex is held while the value is copied and while the
  caller's predicate runs.
  Units: microseconds of a clock that does not go back.
*/

#ifndef MEMDIAG_RECENT_H
#define MEMDIAG_RECENT_H

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <optional>

namespace memdiag::ledger {

template <typename T>
class Recent {
 public:
  static constexpr uint64_t keep_us = 60'000'000;
  static constexpr uint64_t rest_times = 100;

  /** Take the value, or the duty to find a new one.
  @param fits  called as fits(value): whether the value still describes the
  present
  @return empty: this caller must find a new value and then call keep() or
  forget() */
  template <typename Fits>
  std::optional<T> take(uint64_t now_us, Fits fits) {
    const std::lock_guard<std::mutex> guard(m_mutex);
    if (serves(now_us, fits)) return m_value;
    m_rests_until_us = m_stale_at_us = now_us + keep_us;
    return std::nullopt;
  }

  /** Look at the value without the duty to find a new one.
  @return empty: there is none that serves */
  template <typename Fits>
  std::optional<T> peek(uint64_t now_us, Fits fits) {
    const std::lock_guard<std::mutex> guard(m_mutex);
    return serves(now_us, fits) ? m_value : std::nullopt;
  }

  /** @param began_us, ended_us  when finding the value began and ended */
  void keep(const T &value, uint64_t began_us, uint64_t ended_us) {
    const std::lock_guard<std::mutex> guard(m_mutex);
    m_value = value;
    m_rests_until_us = began_us + (ended_us - began_us) * rest_times;
    m_stale_at_us = std::max(began_us + keep_us, m_rests_until_us);
  }

  /** Finding it failed: drop the last value too. */
  void forget() {
    const std::lock_guard<std::mutex> guard(m_mutex);
    m_value.reset();
  }

 private:
  template <typename Fits>
  bool serves(uint64_t now_us, Fits fits) const {
    return m_value && (now_us < m_rests_until_us ||
                       (now_us < m_stale_at_us && fits(*m_value)));
  }

  std::mutex m_mutex;
  std::optional<T> m_value;
  uint64_t m_rests_until_us = 0;
  uint64_t m_stale_at_us = 0;
};

}  // namespace memdiag::ledger

#endif  // MEMDIAG_RECENT_H
