/*
  A giver of the ceiling's tests: it ends rounds until it is destroyed, and the
  clock of the test goes on with each. No round ends before another thread has
  looked at the clock: on a busy machine it would be hours ahead.
*/

#ifndef MEMDIAG_UNITTEST_GIVER_H
#define MEMDIAG_UNITTEST_GIVER_H

#include <atomic>
#include <cstdint>
#include <thread>

#include "mysys/memdiag/ceiling/taker.h"

namespace memdiag_test {

class Giver {
 public:
  /** @param now_us  the clock
      @param looks   counts the looks at it
      @param us      of the clock for each round
      @param gives   is called in each round */
  template <typename Gives>
  Giver(std::atomic<uint64_t> *now_us, const std::atomic<uint64_t> *looks,
        uint64_t us, Gives gives)
      : m_thread([this, now_us, looks, us, gives] {
          while (!m_stop) {
            gives();
            *now_us += us;
            const uint64_t before = *looks;
            memdiag::ceiling::rounds.end_one();
            while (!m_stop && *looks == before) std::this_thread::yield();
          }
        }) {}
  ~Giver() {
    m_stop = true;
    m_thread.join();
  }
  Giver(const Giver &) = delete;
  Giver &operator=(const Giver &) = delete;

 private:
  std::atomic<bool> m_stop{false};
  std::thread m_thread;
};

}  // namespace memdiag_test

#endif  // MEMDIAG_UNITTEST_GIVER_H
