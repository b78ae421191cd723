#ifndef MEMDIAG_UNITTEST_PURGING_LONE_PURGER_H
#define MEMDIAG_UNITTEST_PURGING_LONE_PURGER_H

/* For tests that count purges: jemalloc's decay is never first with a page. */

#include "mysys/memdiag/purging/policies.h"
#include "mysys/memdiag/purging/purger.h"
#include "mysys/memdiag/unittest/test.h"

namespace memdiag_test {

/** Unused pages stay until a purge. It lasts for the rest of the process: see
FRESH_TEST. */
inline void leave_pages_to_purges() {
  EXPECT_EQ("",
            memdiag::policies::set(memdiag::Policy::dirty_decay_ms, "all=-1"));
}

/** A purger that alone gives pages back. */
struct Lone_purger : memdiag::purger::Watch {
  Lone_purger() { leave_pages_to_purges(); }
};

}  // namespace memdiag_test

#endif  // MEMDIAG_UNITTEST_PURGING_LONE_PURGER_H
