/*
  The figures of the ceiling, as others show them: the account, and the sensor's
  counters.

  Threads: any. No locks, so the figures may be of slightly different moments.
  Errors: without a level, amounts of the account are empty.
  Units: bytes; microseconds.
*/

#ifndef MEMDIAG_CEILING_FIGURES_H
#define MEMDIAG_CEILING_FIGURES_H

#include <algorithm>
#include <cstdint>
#include <optional>

#include "mysys/memdiag/ceiling/sensor.h"

namespace memdiag::ceiling {

struct Figures {
  /** False: memdiag_memory_target is OFF. */
  bool on;
  /** False: it is OFF or WATCH. */
  bool acts;
  Level level;
  Marks marks;
  int64_t kept_bytes;
  int64_t left_bytes;
  int64_t charged_bytes;
  int64_t promised_bytes;
  uint64_t parked_bytes;
  uint64_t waits;
  uint64_t wait_us;
  uint64_t longest_wait_us;
  uint64_t went_on;
  uint64_t ended;
  uint64_t refused;
  uint64_t kernel_reads;
  uint64_t rounds;

  bool is_known() const { return level != Level::unknown; }

  /** Of an amount of the account. A negative one is shown as 0. */
  std::optional<uint64_t> shown(int64_t bytes) const {
    if (!is_known()) return std::nullopt;
    return static_cast<uint64_t>(std::max<int64_t>(bytes, 0));
  }
};

inline Figures figures() {
  return {.on = counters.on.load(),
          .acts = counters.acts.load(),
          .level = account.level(),
          .marks = account.marks(),
          .kept_bytes = account.kept_bytes(),
          .left_bytes = account.left_bytes(),
          .charged_bytes = account.charged_bytes(),
          .promised_bytes = account.promised_bytes(),
          .parked_bytes = counters.parked_bytes.load(),
          .waits = counters.waits.load(),
          .wait_us = counters.wait_us.load(),
          .longest_wait_us = counters.longest_wait_us.load(),
          .went_on = counters.went_on.load(),
          .ended = counters.ended.load(),
          .refused = counters.refused.load(),
          .kernel_reads = account.readings(),
          .rounds = rounds.ended()};
}

}  // namespace memdiag::ceiling

#endif  // MEMDIAG_CEILING_FIGURES_H
