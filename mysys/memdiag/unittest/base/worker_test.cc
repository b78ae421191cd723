/* Threads of the layer's own. */

#include "mysys/memdiag/base/worker.h"

#include <signal.h>

#include <atomic>

#include "mysys/memdiag/unittest/test.h"

namespace memdiag_test {

using memdiag::Worker;

/** Signals for the server go to its own thread; a fault reaches the handler
that writes the stack, in the thread that it happened in. */
TEST(Worker, TakesOnlyTheSignalsOfItsFaults) {
  static std::atomic<bool> seen;
  static sigset_t mask;
  seen = false;
  Worker worker;
  ASSERT_EQ(0, worker.start("test", [](Worker *self) {
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    seen = true;
    seen.notify_one();
    while (self->wait_ms(0)) {
    }
  }));
  seen.wait(false);
  worker.stop();
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
    EXPECT_FALSE(sigismember(&mask, fault)) << fault;
  for (const int other : {SIGTERM, SIGHUP, SIGINT, SIGUSR1, SIGALRM, SIGPIPE})
    EXPECT_TRUE(sigismember(&mask, other)) << other;
}

}  // namespace memdiag_test
