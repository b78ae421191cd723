#include "mysys/memdiag/ceiling/rounds.h"

#include "mysys/memdiag/base/clock.h"

namespace memdiag::ceiling {

void Rounds::end_one(bool wake) {
  hold();
  m_ended.fetch_add(1, std::memory_order_relaxed);
  let_go();
  if (wake) pthread_cond_broadcast(&m_ended_one);
}

void Rounds::wait(uint64_t seen, uint64_t us) {
  // The system's clock: a test's clock may stand still.
  const uint64_t until_us = system_clock_us(CLOCK_MONOTONIC) + us;
  const timespec until{static_cast<time_t>(until_us / 1'000'000),
                       static_cast<long>(until_us % 1'000'000) * 1000};
  hold();
  while (ended() == seen &&
         pthread_cond_clockwait(&m_ended_one, &m_mutex, CLOCK_MONOTONIC,
                                &until) == 0) {
  }
  let_go();
}

}  // namespace memdiag::ceiling
