/*
  The unit tests share this: statistics of a pool's arenas, and processes of
  their own for steps that one process can do only once.

  Tests state relations and differences, so that they hold in any order, in one
  process or each in its own. Pool blocks must be freed by the test that made
  them.
*/

#ifndef MEMDIAG_TEST_H
#define MEMDIAG_TEST_H

#include <gtest/gtest.h>

#include <sched.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "mysys/memdiag/base/clock.h"
#include "mysys/memdiag/jemalloc/mallctl.h"
#include "mysys/memdiag/pools/arenas.h"
#include "mysys/memdiag/pools/bound_threads.h"
#include "mysys/memdiag/pools/failures_for_test.h"
#include "mysys/memdiag/pools/pools.h"
#include "mysys/memdiag/pools/sharing.h"
#include "mysys/memdiag/purging/purge.h"

namespace memdiag_test {

using memdiag::Ctl;
using memdiag::Pool;
namespace mallctl = memdiag::mallctl;
namespace pools = memdiag::pools;
namespace purging = memdiag::purging;

constexpr Pool pool = Pool::fts_query;
/** The first pool that callers ask the layer for. */
constexpr size_t first_pool = static_cast<size_t>(Pool::group_replication) + 1;
static_assert(uses_malloc(static_cast<Pool>(first_pool - 1)) &&
              !uses_malloc(static_cast<Pool>(first_pool)));

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif
#if defined(__SANITIZE_THREAD__)
constexpr bool thread_sanitized = true;
#else
constexpr bool thread_sanitized = false;
#endif

/** The address sanitizer finds nothing in how threads meet, and is slow. Tests
that let them meet often do so in other builds: without a sanitizer, and under
that of threads. */
constexpr bool address_sanitized = sanitized && !thread_sanitized;

/** True if malloc() may be used in the child of a process with threads: those
of the address and the thread sanitizer do not look after their locks over a
fork() (GCC 12), and the child waits for one for ever, now and then. */
constexpr bool malloc_after_fork = !sanitized;

#if defined(__SANITIZE_THREAD__)
/** fork() takes all of jemalloc's mutexes, more than the sanitizer's search for
deadlocks can follow. */
extern "C" [[gnu::used]] inline const char *__tsan_default_options() {
  return "detect_deadlocks=0";
}
#endif

/** The index of a size class of small blocks; if there is none, an index that
reads as an error. */
inline unsigned bin_of(size_t size) {
  unsigned bin = 0;
  while (mallctl::read<Ctl::arenas_bin_size>(0, bin).value_or(size) != size)
    ++bin;
  return bin;
}

inline uint64_t now_us(clockid_t clock = CLOCK_REALTIME) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000 + now.tv_nsec / 1000;
}

inline pools::Live live_of(pools::Account account) {
  return pools::live_of_first(size_t{account} + 1)[account];
}

/** The calling thread keeps its CPU, and with it the arenas that it uses: what
a purge gave back there is taken again there. */
inline void stay_on_this_cpu() {
  cpu_set_t here;
  CPU_ZERO(&here);
  CPU_SET(static_cast<unsigned>(sched_getcpu()), &here);
  EXPECT_EQ(0, sched_setaffinity(0, sizeof here, &here));
}

/** The layer's clock, which stands still until the test moves it. */
class Test_clock {
 public:
  Test_clock() {
    time_us = now_us();
    memdiag::set_clock_for_test([](clockid_t) { return time_us.load(); });
  }
  ~Test_clock() { memdiag::set_clock_for_test(nullptr); }
  Test_clock(const Test_clock &) = delete;
  Test_clock &operator=(const Test_clock &) = delete;

  static uint64_t now() { return time_us; }
  static void advance_ms(uint64_t ms) { time_us += ms * 1000; }

 private:
  static inline std::atomic<uint64_t> time_us;
};

/** As in a server that has started. */
inline const bool has_started = (pools::share_one_arena(false), true);

inline void sleep_ms(unsigned ms) { usleep(ms * 1000); }

inline unsigned narenas() {
  return mallctl::read<Ctl::arenas_narenas>().value();
}

inline std::vector<unsigned> arenas_of_pool() {
  std::vector<unsigned> arenas;
  pools::for_each_arena(pool, [&](unsigned arena) { arenas.push_back(arena); });
  return arenas;
}

/** Sum of a statistic over all arenas of one owner. Call refresh() before. */
template <Ctl ctl>
uint64_t sum_over(Pool owner) {
  uint64_t sum = 0;
  for (unsigned arena = 0; arena < narenas(); ++arena)
    if (pools::owner_of_arena(arena) == owner)
      sum += mallctl::read<ctl>(arena).value_or(0);
  return sum;
}

/** Bytes allocated in the pool's arenas now, as jemalloc counts them. */
inline uint64_t allocated_in_pool() {
  EXPECT_EQ(0, mallctl::refresh());
  return sum_over<Ctl::stats_arena_small_allocated>(pool) +
         sum_over<Ctl::stats_arena_large_allocated>(pool);
}

inline uint64_t dirty_pages(Pool owner) {
  EXPECT_EQ(0, mallctl::refresh());
  return sum_over<Ctl::stats_arena_pdirty>(owner) +
         sum_over<Ctl::stats_arena_pmuzzy>(owner);
}

/** True if a block lies in an arena that belongs to the pool. */
inline bool lies_in_pool(const void *block) {
  const auto arena = mallctl::arena_of(block);
  return arena && pools::owner_of_arena(arena.value()) == pool;
}

/** A block and its size, filled so that an overlap is found. */
struct Block {
  void *memory;
  size_t size;
  unsigned char mark;

  static Block make(size_t size, unsigned char mark) {
    Block block{pools::allocate(pool, size), size, mark};
    if (block.memory != nullptr) memset(block.memory, mark, size);
    return block;
  }
  bool intact() const {
    const auto *bytes = static_cast<const unsigned char *>(memory);
    // Each byte is the one before it. A sanitizer watches one call, not a loop.
    return size == 0 ||
           (bytes[0] == mark && memcmp(bytes, bytes + 1, size - 1) == 0);
  }
  void free() const { pools::free(pool, memory, size); }
};

/** Small, page-sized, larger than any thread's cache, and huge. */
constexpr size_t sizes[] = {1,      8,       48,      256,    1000,
                            4096,   8192,    16384,   32768,  40000,
                            100000, 1 << 20, 3 << 20, 4 << 20};

/** SIGALRM ends a child that hangs, and a deadlock becomes a failure. No child
takes so long, even on a machine that stalls for many seconds. ctest ends the
whole program after 600 s. Its output would not name the test. */
constexpr unsigned seconds_until_a_hang = 250;

/** Run `body` in a forked child, which never returns to gtest.
@param in_parent  runs in this process when the child has begun
@return the child's exit code, or 1000 + the signal that ended it */
template <typename Body, typename In_parent = decltype([] {})>
int in_child(Body body, In_parent in_parent = {}) {
  fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    alarm(seconds_until_a_hang);
    _exit(body());
  }
  in_parent();
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

constexpr const char *fresh_variable = "MEMDIAG_TEST_FRESH";

/** The exit code of such a process whose test was skipped. */
constexpr int skipped_in_fresh_process = 77;

inline bool in_fresh_process() { return getenv(fresh_variable) != nullptr; }

/** Run the current test again in a process that has done nothing yet. */
inline int run_in_fresh_process() {
  const auto *test = testing::UnitTest::GetInstance()->current_test_info();
  const std::string filter = std::string("--gtest_filter=") +
                             test->test_suite_name() + "." + test->name();
  fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    setenv(fresh_variable, "1", 1);
    // The outer test's result files are not this process's to write.
    unsetenv("GTEST_OUTPUT");
    unsetenv("XML_OUTPUT_FILE");
    alarm(2 * seconds_until_a_hang);
    execl("/proc/self/exe", "memdiag_test", filter.c_str(), "--gtest_brief=1",
          nullptr);
    _exit(127);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

}  // namespace memdiag_test

/** A test whose body runs in a process where no pool has been used before. */
#define FRESH_TEST(suite, name)                                \
  static void suite##_##name##_body();                         \
  TEST(suite, name) {                                          \
    using namespace memdiag_test;                              \
    if (in_fresh_process()) {                                  \
      suite##_##name##_body();                                 \
      if (IsSkipped()) _exit(skipped_in_fresh_process);        \
      return;                                                  \
    }                                                          \
    const int status = run_in_fresh_process();                 \
    if (status == skipped_in_fresh_process)                    \
      GTEST_SKIP() << "as the process says that ran its body"; \
    EXPECT_EQ(0, status);                                      \
  }                                                            \
  static void suite##_##name##_body()

#endif  // MEMDIAG_TEST_H
