/*
  The full-text caches that InnoDB's thread was asked to write. It writes one
  after the other, later, and a large one takes seconds; one that cannot be
  written stays. So a cache that is as large as when it was asked for is not
  asked for again for a minute, and what has left the caches is known at the
  next look.

  Ownership: the caller's. Threads: one at a time. Locks: none. Units: bytes;
  microseconds of the monotonic clock. Errors: see() throws std::bad_alloc.
*/

#ifndef MEMDIAG_ASKED_CACHES_H
#define MEMDIAG_ASKED_CACHES_H

#include <cstdint>
#include <map>
#include <utility>

namespace memdiag::innodb {

class Asked_caches {
 public:
  /** A look begins. What was asked long before is over: caches may have been
  written and filled since. */
  void begin(uint64_t now_us) {
    if (now_us - m_begun_us > longest_pause_us) m_asked.clear();
    m_begun_us = now_us;
    m_found.clear();
  }
  /** @return true: the cache should be asked for */
  bool see(uint64_t table, uint64_t bytes) {
    const auto asked = m_asked.find(table);
    const bool again = asked == m_asked.end() || asked->second.bytes != bytes ||
                       m_begun_us - asked->second.asked_us >= patient_us;
    m_found[table] = {bytes, again ? m_begun_us : asked->second.asked_us};
    return again;
  }
  /** @return the bytes that have left the caches since the look before */
  uint64_t end() {
    uint64_t gone = 0;
    for (const auto &[table, asked] : m_asked) {
      const auto found = m_found.find(table);
      const uint64_t still = found == m_found.end() ? 0 : found->second.bytes;
      if (still < asked.bytes) gone += asked.bytes - still;
    }
    m_asked.swap(m_found);
    return gone;
  }

 private:
  static constexpr uint64_t longest_pause_us = 30'000'000;
  /** One that is still as large was not written. */
  static constexpr uint64_t patient_us = 60'000'000;

  struct Asked {
    uint64_t bytes;
    uint64_t asked_us;
  };

  uint64_t m_begun_us{0};
  /** By the number of the table. */
  std::map<uint64_t, Asked> m_asked;
  std::map<uint64_t, Asked> m_found;
};

}  // namespace memdiag::innodb

#endif  // MEMDIAG_ASKED_CACHES_H
