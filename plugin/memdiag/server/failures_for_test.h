/*
  Failures that tests inject with SET debug, such as '+d,memdiag_fail_host'.
*/

#ifndef MEMDIAG_FAILURES_FOR_TEST_H
#define MEMDIAG_FAILURES_FOR_TEST_H

namespace memdiag {

/** Turns on the failures that the session's debug settings name, for all
sessions; 'memdiag_fail_nothing' turns all of them off. Does nothing in a
server without debug settings. */
void set_failures_for_test();

}  // namespace memdiag

#endif  // MEMDIAG_FAILURES_FOR_TEST_H
