#include "mysys/memdiag/accounting/tracking.h"

#include "mysys/memdiag/accounting/digests.h"
#include "mysys/memdiag/accounting/scopes.h"
#include "mysys/memdiag/accounting/thread_bytes.h"
#include "mysys/memdiag/upstream/interval_hooks.h"

namespace memdiag::tracking {

Options options{false, false};

void apply_options() {
  if (options.survivors) scopes::track(true);
  if (options.sessions) sessions::track(true);
}

}  // namespace memdiag::tracking

namespace memdiag::sessions {

void track(bool on) {
  track_threads(on);
  if (on) forget_digests();
  memdiag_counts_intervals.store(on, std::memory_order_relaxed);
}

}  // namespace memdiag::sessions
