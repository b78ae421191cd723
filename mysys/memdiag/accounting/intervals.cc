#include "mysys/memdiag/accounting/intervals.h"

#include <algorithm>

#include "mysys/memdiag/accounting/thread_bytes.h"

constinit std::atomic<bool> memdiag_counts_intervals{false};

namespace memdiag::sessions {

// The peak of the statement is that of the innermost interval meanwhile.
// The end of an interval passes it to the next outer one.

void interval_begins(Interval *interval) noexcept {
  if (!count_thread()) return;
  const auto now = statement_bytes();
  // Counting began anew meanwhile.
  if (!now) return;
  *interval = {now->number, now->taken, now->growth, now->peak};
  set_statement_peak(now->growth);
}

bool interval_so_far(const Interval &interval,
                     Interval_memory *memory) noexcept {
  const auto now = statement_bytes();
  if (!now || interval.statement != now->number) return false;
  *memory = {now->taken - interval.taken, now->growth - interval.growth,
             now->peak - interval.growth};
  return true;
}

void interval_ends(const Interval &interval) noexcept {
  const auto now = statement_bytes();
  if (!now || interval.statement != now->number) return;
  set_statement_peak(std::max(now->peak, interval.outer_peak));
}

}  // namespace memdiag::sessions
