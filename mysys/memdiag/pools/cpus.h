/*
  The CPUs that the process may run on, numbered densely from 0: a process on
  the CPUs 8, 16 and 24 has 0, 1 and 2.

  The numbers are given at start-up, by sched_getaffinity(). CPUs outside that
  set, which the process may be moved to later, share numbers with it. A CPU
  quota limits the numbers (pools/cpu_quota.h): further CPUs share them. A quota
  that changes later has no effect. Before the first constructors have run, all
  CPUs have number 0.

  Threads: any. map_cpus() by one thread at a time.
  Errors: where the kernel does not say which CPUs or which CPU, the numbers
  are the kernel's, or 0.
*/

#ifndef MEMDIAG_CPUS_H
#define MEMDIAG_CPUS_H

#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "mysys/memdiag/pools/cpu_quota.h"
#include "mysys/memdiag/pools/pool.h"

namespace memdiag::pools {

namespace detail {
/** The kernel's highest limit of CPUs (CONFIG_NR_CPUS of x86-64). */
constexpr unsigned max_cpus = 8192;
extern uint8_t shard_of_cpu[max_cpus] __attribute__((visibility("hidden")));
extern unsigned own_shards __attribute__((visibility("hidden")));
extern unsigned used_shards __attribute__((visibility("hidden")));
}  // namespace detail
static_assert(max_shards <= UINT8_MAX + 1);

/** The shard of the calling thread's CPU: its number, and modulo max_shards
where there are more. */
inline unsigned current_shard() {
  const auto cpu = static_cast<unsigned>(sched_getcpu());
  // sched_getcpu() fails with -1.
  return cpu < detail::max_cpus
             ? __atomic_load_n(&detail::shard_of_cpu[cpu], __ATOMIC_RELAXED)
             : 0;
}

/** The number of shards that stand in for a CPU's own, one after the other,
while an interrupted thread holds the one before. With the CPU's own shard there
are four, jemalloc's number of arenas for a CPU. */
constexpr unsigned stand_ins = 3;

/** The shards that a thread may take in place of its CPU's own: every
`distance`-th shard after it, below `end`. The more CPUs, the fewer each has.
*/
struct Stand_ins {
  unsigned distance;
  unsigned end;
};
inline Stand_ins stand_in_shards() {
  const unsigned own = __atomic_load_n(&detail::own_shards, __ATOMIC_RELAXED);
  return {own, std::min(own * (1 + stand_ins), max_shards)};
}

/** Shards that any thread may have used so far: those from 0 on. */
inline unsigned used_shards() {
  return __atomic_load_n(&detail::used_shards, __ATOMIC_RELAXED);
}

/** The number of CPUs that the process may run on, at least 1. With a CPU quota
at most cpus_of_quota(). */
unsigned allowed_cpus();

/** Number the CPUs of a set. It runs at start-up; tests call it with other
sets.
@param most  numbers, at least 1: as from cpus_of_quota() */
void map_cpus(const cpu_set_t *set, size_t bytes, unsigned most = no_quota);

/** Number the CPUs that the kernel allows now, by the quota of now. */
void map_allowed_cpus();

}  // namespace memdiag::pools

#endif  // MEMDIAG_CPUS_H
