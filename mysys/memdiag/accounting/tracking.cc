#include "mysys/memdiag/accounting/tracking.h"

#include "mysys/memdiag/accounting/scopes.h"
#include "mysys/memdiag/accounting/sessions.h"

namespace memdiag::tracking {

Options options{false, false};

void apply_options() {
  if (options.survivors) scopes::track(true);
  if (options.sessions) sessions::track(true);
}

}  // namespace memdiag::tracking
