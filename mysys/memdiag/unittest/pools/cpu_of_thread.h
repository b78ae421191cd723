/*
  The tests of shards share this: sched_getcpu() is the test's, so that a thread
  is on whichever CPU the test wants, of as many as it wants.
*/

#ifndef MEMDIAG_CPU_OF_THREAD_H
#define MEMDIAG_CPU_OF_THREAD_H

#include <sched.h>

#include <vector>

#include "mysys/memdiag/pools/cpus.h"
#include "mysys/memdiag/unittest/test.h"

namespace memdiag_test {

inline constinit thread_local int cpu_of_thread = 0;

/** The process may run on these CPUs, until the end of the test. */
class Allowed_cpus {
 public:
  explicit Allowed_cpus(const std::vector<unsigned> &cpus) {
    cpu_set_t sets[4096 / CPU_SETSIZE];
    CPU_ZERO_S(sizeof sets, sets);
    for (const unsigned cpu : cpus) CPU_SET_S(cpu, sizeof sets, sets);
    pools::map_cpus(sets, sizeof sets);
  }
  ~Allowed_cpus() {
    cpu_of_thread = 0;
    pools::map_allowed_cpus();
  }
};

inline std::vector<unsigned> first_cpus(unsigned count) {
  std::vector<unsigned> cpus;
  for (unsigned cpu = 0; cpu < count; ++cpu) cpus.push_back(cpu);
  return cpus;
}

}  // namespace memdiag_test

/** Takes the C library's place. */
extern "C" int sched_getcpu() noexcept { return memdiag_test::cpu_of_thread; }

#endif  // MEMDIAG_CPU_OF_THREAD_H
