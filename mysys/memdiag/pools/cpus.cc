#include "mysys/memdiag/pools/cpus.h"

#include <unistd.h>

#include <algorithm>

namespace memdiag::pools {
namespace {

constinit unsigned cpus = 1;

void map_cpu(unsigned cpu, unsigned number) {
  __atomic_store_n(&detail::shard_of_cpu[cpu],
                   static_cast<uint8_t>(number % max_shards), __ATOMIC_RELAXED);
}

[[gnu::constructor]] void at_start() { map_allowed_cpus(); }

}  // namespace

constinit uint8_t detail::shard_of_cpu[max_cpus]{};
constinit unsigned detail::own_shards = 1;
constinit unsigned detail::used_shards = 1 + stand_ins;

unsigned allowed_cpus() { return __atomic_load_n(&cpus, __ATOMIC_RELAXED); }

void map_cpus(const cpu_set_t *set, size_t bytes, unsigned most) {
  const unsigned limit =
      std::min(detail::max_cpus, static_cast<unsigned>(8 * bytes));
  const unsigned count = std::clamp(
      static_cast<unsigned>(CPU_COUNT_S(bytes, set)), 1U, std::max(most, 1U));
  // Before a thread can use them.
  const unsigned own = std::min(count, max_shards);
  const unsigned used = std::min(own * (1 + stand_ins), max_shards);
  __atomic_store_n(&detail::used_shards, std::max(detail::used_shards, used),
                   __ATOMIC_RELAXED);
  __atomic_store_n(&detail::own_shards, own, __ATOMIC_RELAXED);
  __atomic_store_n(&cpus, count, __ATOMIC_RELAXED);
  unsigned next = 0;
  for (unsigned cpu = 0; cpu < detail::max_cpus; ++cpu)
    if (cpu < limit && CPU_ISSET_S(cpu, bytes, set))
      map_cpu(cpu, next++ % count);
    else
      map_cpu(cpu, cpu % count);
}

void map_allowed_cpus() {
  const unsigned most = cpus_of_quota();
  // The kernel refuses a set that is smaller than its own.
  cpu_set_t sets[detail::max_cpus / CPU_SETSIZE];
  CPU_ZERO_S(sizeof sets, sets);
  if (sched_getaffinity(0, sizeof sets, sets) == 0) {
    map_cpus(sets, sizeof sets, most);
    return;
  }
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  for (unsigned cpu = 0; cpu < std::max(online, 1L) && cpu < detail::max_cpus;
       ++cpu)
    CPU_SET_S(cpu, sizeof sets, sets);
  map_cpus(sets, sizeof sets, most);
}

}  // namespace memdiag::pools
