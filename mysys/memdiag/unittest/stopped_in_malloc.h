/*
  Shows whether a function allocates while it holds a mutex. Below the ceiling,
  a statement's thread may wait in malloc(), and then others would wait with it.
  A thread with a No_wait never waits there.

  Threads: one at a time calls others_go_on(). Where another malloc() than
  jemalloc's serves the process, it sees nothing.
*/

#ifndef MEMDIAG_TEST_STOPPED_IN_MALLOC_H
#define MEMDIAG_TEST_STOPPED_IN_MALLOC_H

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <thread>

#include "mysys/memdiag/ceiling/taken.h"
#include "mysys/memdiag/unittest/test.h"

namespace memdiag_test {

namespace stopped_in_malloc {
inline constinit thread_local bool stops{false};
inline constinit std::atomic<unsigned> stopped{0};
inline constinit std::atomic<unsigned> answered{0};
inline constinit std::atomic<bool> goes_on{true};

inline void on_event(bool, uint64_t, uint64_t) {
  if (!stops || memdiag::ceiling::thread.busy) return;
  const unsigned number = ++stopped;
  for (int ms = 0; answered != number && ms < 60'000; ++ms) usleep(1000);
  stops = goes_on = answered == number;
}
}  // namespace stopped_in_malloc

/** Calls read(), whose thread is stopped at each kilobyte of malloc()'s until
another thread has called ask().
@return false: once ask() did not come back meanwhile */
template <typename Read, typename Ask>
bool others_go_on(Read read, Ask ask) {
  using namespace stopped_in_malloc;
  EXPECT_EQ(0, mallctl::write<memdiag::Ctl::hook_thread_event>(
                   {on_event, 1024, true}));
  std::atomic<bool> ends{false};
  std::thread other([&ends, &ask] {
    for (; !ends; usleep(100)) {
      const unsigned number = stopped;
      ask();
      answered = number;
    }
  });
  goes_on = stops = true;
  read();
  stops = false;
  ends = true;
  other.join();
  return goes_on;
}

}  // namespace memdiag_test

#endif  // MEMDIAG_TEST_STOPPED_IN_MALLOC_H
