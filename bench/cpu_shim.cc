/*
  Makes a process see another number of processors than the machine has, to
  count what grows with them: arenas, caches, collisions of shards. It says
  nothing about time: the threads still share the machine's own processors.

    MEMDIAG_SHIM_CPUS=64 LD_PRELOAD=.../libmemdiag_cpu_shim.so mysqld ...

  MEMDIAG_SHIM_CPUS   the CPUs that the process may run on: a number, of the
                      first ones, or a list such as 0,8,16-23
  MEMDIAG_SHIM_NODES  nodes of memory that getcpu() tells, of equally many CPUs
                      each; 1 if it is not set. /sys and the system calls of
                      libnuma still show the machine's own.
  MEMDIAG_SHIM_STAY   a thread goes on on another CPU after so many questions
                      for it; 100000 if it is not set, 0: never

  mysqld can load the same file as functions without arguments
  (CREATE FUNCTION ... RETURNS INTEGER SONAME), each of which counts since the
  start:

    memdiag_shim_questions   how often a thread asked for its CPU. The layer
                             asks when a pool's block comes and when it goes;
                             InnoDB asks for each page that it reads or makes.
    memdiag_shim_bypasses    how often one found its CPU's shard taken, in all
                             pools
    memdiag_shim_refreshes   refreshes of jemalloc's statistics

  Threads: any. It allocates nothing, because jemalloc asks for the processors
  while it starts.
*/

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>

#include "mysys/memdiag/jemalloc/mallctl.h"
#include "mysys/memdiag/pools/pools.h"

// mysqld has these; other programs have not.
namespace memdiag {
namespace pools {
[[gnu::weak]] Counters counters(Pool pool);
}
namespace mallctl {
[[gnu::weak]] int read_raw(Ctl ctl, unsigned arena, void *value, size_t size,
                           unsigned index);
}
}  // namespace memdiag

namespace {

constexpr unsigned max_cpus = 4096;

struct Machine {
  unsigned count = 0;
  unsigned highest = 0;
  unsigned nodes = 1;
  unsigned stay = 100000;
  uint16_t cpus[max_cpus];

  void add(unsigned long first, unsigned long last) {
    for (unsigned long cpu = first; cpu <= last && cpu < max_cpus; ++cpu) {
      if (count == max_cpus) return;
      cpus[count++] = static_cast<uint16_t>(cpu);
      if (cpu > highest) highest = static_cast<unsigned>(cpu);
    }
  }

  Machine() {
    const char *text = getenv("MEMDIAG_SHIM_CPUS");
    if (text == nullptr || *text == '\0') text = "1";
    if (strpbrk(text, ",-") == nullptr) {
      const unsigned long number = strtoul(text, nullptr, 10);
      add(0, number == 0 ? 0 : number - 1);
    } else {
      while (*text != '\0') {
        char *end;
        const unsigned long first = strtoul(text, &end, 10);
        const unsigned long last =
            *end == '-' ? strtoul(end + 1, &end, 10) : first;
        add(first, last);
        if (*end != ',') break;
        text = end + 1;
      }
    }
    if (count == 0) add(0, 0);
    if (const char *value = getenv("MEMDIAG_SHIM_NODES"); value != nullptr)
      nodes = static_cast<unsigned>(strtoul(value, nullptr, 10));
    if (nodes == 0 || nodes > count) nodes = 1;
    if (const char *value = getenv("MEMDIAG_SHIM_STAY"); value != nullptr)
      stay = static_cast<unsigned>(strtoul(value, nullptr, 10));
  }
};

const Machine &machine() {
  static const Machine instance;
  return instance;
}

/** Threads share these, so that they seldom share a cache line. */
struct alignas(64) Questions {
  std::atomic<uint64_t> count{0};
};
constinit Questions questions[64];

/** The place of the calling thread's CPU among those of the process. */
unsigned place_of_thread() {
  // A number of the linear congruential generator of Numerical Recipes.
  static constinit std::atomic<uint32_t> seed{12345};
  static constinit thread_local uint32_t random = 0;
  static constinit thread_local unsigned asked = 0;
  static constinit thread_local unsigned part = 0;
  const Machine &all = machine();
  if (random == 0) {
    random = seed.fetch_add(2654435769U) | 1;
    part = random >> 26;
  }
  questions[part].count.fetch_add(1, std::memory_order_relaxed);
  if (all.stay != 0 && ++asked > all.stay) {
    asked = 0;
    random = (random * 1664525 + 1013904223) | 1;
  }
  return static_cast<unsigned>((uint64_t{random} * all.count) >> 32);
}

int affinity(size_t bytes, cpu_set_t *set) {
  const Machine &all = machine();
  if (bytes * 8 <= all.highest) return EINVAL;
  CPU_ZERO_S(bytes, set);
  for (unsigned i = 0; i < all.count; ++i) CPU_SET_S(all.cpus[i], bytes, set);
  return 0;
}

}  // namespace

extern "C" {

int sched_getcpu() noexcept { return machine().cpus[place_of_thread()]; }

int getcpu(unsigned *cpu, unsigned *node) noexcept {
  const unsigned place = place_of_thread();
  if (cpu != nullptr) *cpu = machine().cpus[place];
  if (node != nullptr) *node = place * machine().nodes / machine().count;
  return 0;
}

int sched_getaffinity(pid_t, size_t bytes, cpu_set_t *set) noexcept {
  const int error = affinity(bytes, set);
  if (error == 0) return 0;
  errno = error;
  return -1;
}

int pthread_getaffinity_np(pthread_t, size_t bytes, cpu_set_t *set) noexcept {
  return affinity(bytes, set);
}

// The processors of the process are not the machine's.
int sched_setaffinity(pid_t, size_t, const cpu_set_t *) noexcept { return 0; }
int pthread_setaffinity_np(pthread_t, size_t, const cpu_set_t *) noexcept {
  return 0;
}

int get_nprocs() noexcept { return static_cast<int>(machine().count); }
int get_nprocs_conf() noexcept {
  return static_cast<int>(machine().highest + 1);
}

long sysconf(int name) noexcept {
  if (name == _SC_NPROCESSORS_ONLN) return get_nprocs();
  if (name == _SC_NPROCESSORS_CONF) return get_nprocs_conf();
  using Sysconf = long (*)(int);
  static const auto next =
      reinterpret_cast<Sysconf>(dlsym(RTLD_NEXT, "sysconf"));
  return next(name);
}

bool memdiag_shim_questions_init(void *, void *, char *) { return false; }
long long memdiag_shim_questions(void *, void *, unsigned char *,
                                 unsigned char *) {
  uint64_t sum = 0;
  for (const Questions &part : questions) sum += part.count.load();
  return static_cast<long long>(sum);
}

bool memdiag_shim_bypasses_init(void *, void *, char *) {
  return memdiag::pools::counters == nullptr;
}
long long memdiag_shim_bypasses(void *, void *, unsigned char *,
                                unsigned char *) {
  uint64_t sum = 0;
  for (size_t i = 0; i < memdiag::pool_count; ++i)
    sum += memdiag::pools::counters(static_cast<memdiag::Pool>(i)).bypasses;
  return static_cast<long long>(sum);
}

bool memdiag_shim_refreshes_init(void *, void *, char *) {
  return memdiag::mallctl::read_raw == nullptr;
}
long long memdiag_shim_refreshes(void *, void *, unsigned char *,
                                 unsigned char *error) {
  uint64_t epoch = 0;
  *error = memdiag::mallctl::read_raw(memdiag::Ctl::epoch, 0, &epoch,
                                      sizeof epoch, 0) != 0;
  return static_cast<long long>(epoch);
}
}
