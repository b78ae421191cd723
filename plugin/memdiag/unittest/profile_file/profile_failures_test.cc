/*
  The heap profiler without memory and with a full disk: each failure is
  reported, nothing is left half-done, and the next try works. And a fork while
  the flight recorder writes.
*/

#include <gtest/gtest.h>

#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <new>
#include <string>
#include <thread>

#include "mysys/memdiag/pages/regions.h"
#include "mysys/memdiag/pools/pools.h"
#include "mysys/memdiag/profiling/profiler.h"
#include "mysys/memdiag/unittest/file_tree.h"
#include "plugin/memdiag/profile/profile_rows.h"
#include "plugin/memdiag/profile/reader.h"
#include "plugin/memdiag/profile_file/file_reader.h"
#include "plugin/memdiag/profile_file/flight_recorder.h"
#include "plugin/memdiag/profile_file/record_rows.h"
#include "plugin/memdiag/tables/profile_formats.h"

namespace {

/** So many allocations of this thread succeed, then one fails; negative: all
succeed. */
thread_local int successes = -1;
/** The error of each write to a file. */
std::atomic<int> error_of_writes{0};
/** What happens during the next write to a file. */
std::atomic<void (*)()> during_a_write{nullptr};

}  // namespace

/** In place of the C library's. */
extern "C" ssize_t pwrite(int file, const void *bytes, size_t count,
                          off_t offset) {
  if (const auto body = during_a_write.exchange(nullptr)) body();
  if (error_of_writes != 0) {
    errno = error_of_writes;
    return -1;
  }
  return syscall(SYS_pwrite64, file, bytes, count, offset);
}

#if defined(__SANITIZE_ADDRESS__)
#include "plugin/memdiag/unittest/own_new.h"
bool memdiag_test::may_allocate() noexcept {
  return successes < 0 || successes-- != 0;
}
constexpr bool can_fail = true;
#else
constexpr bool can_fail = false;
#endif

namespace memdiag::profile {
namespace {

std::atomic<uint64_t> time_us{1'700'000'000'000'000};
uint64_t test_clock(clockid_t) { return time_us; }

size_t profiles_mapped() {
  return regions::totals()[static_cast<size_t>(Region_kind::profile)].count;
}

class Profile_failures : public testing::Test {
 protected:
  Profile_failures() {
    regions::add_stack_of_thread();
    switch_on();
    m_block = pools::allocate(Pool::session, block_bytes);
  }
  ~Profile_failures() override {
    profiling::switch_off();
    // A reader that was left behind would keep it.
    EXPECT_EQ(0u, profiles_mapped());
    pools::free(Pool::session, m_block, block_bytes);
  }

  static void switch_on() {
    EXPECT_EQ(0, profiling::switch_on({1, 64 << 20}).error);
    // This thread's first interval ends.
    pools::free(Pool::session, pools::allocate(Pool::session, 4 << 20),
                4 << 20);
  }

  /** Its first allocation fails, then its second, until all succeed.
  @return how many failed */
  static int fail_each_allocation(const std::function<void()> &step) {
    for (int n = 0;; ++n) {
      try {
        successes = n;
        step();
        const bool was_all = successes >= 0;
        successes = -1;
        // Else it went on without.
        if (was_all) return n;
      } catch (const std::bad_alloc &) {
        EXPECT_LT(successes, 0);
        successes = -1;
      }
    }
  }

  static constexpr size_t block_bytes = 100000;
  const memdiag_test::File_tree m_tree;
  const std::string m_path = m_tree.at("/memdiag_profile.bin");
  void *m_block;
};

TEST_F(Profile_failures, SwitchingOnNeedsNothingOfTheHeap) {
  if (!can_fail) GTEST_SKIP() << "operator new is jemalloc's";
  EXPECT_EQ(0, fail_each_allocation(
                   [] { (void)profiling::switch_on({1, 64 << 20}); }));
  EXPECT_TRUE(profiling::is_on());
}

TEST_F(Profile_failures, AReaderWithoutMemorySaysSoAndLeavesNothing) {
  if (!can_fail) GTEST_SKIP() << "operator new is jemalloc's";
  EXPECT_LT(0, fail_each_allocation([] { (void)take_samples(); }));
  EXPECT_LT(0, fail_each_allocation([] { (void)take_profile(); }));
  const auto profile = take_profile();
  ASSERT_TRUE(profile);
  // Names are read from the files of the program: one symbol table will do.
  Profile small = *profile;
  small.entries.resize(1);
  EXPECT_LT(0, fail_each_allocation([&small] { (void)Symbols(small); }));
  const Symbols symbols(small);
  const Folded_bytes earlier{{"session;main;f", 1}};
  for (const Profile_format &format : profile_formats) {
    SCOPED_TRACE(format.name);
    EXPECT_LT(0,
              fail_each_allocation([&] { (void)format.text(small, symbols); }));
    if (format.difference == nullptr) continue;
    EXPECT_LT(0, fail_each_allocation([&] {
                (void)format.difference(earlier, small, symbols);
              }));
  }
  EXPECT_LT(0, fail_each_allocation([] {
              size_t line;
              (void)parse_folded("session;main;a_function 10\n", &line);
            }));
  EXPECT_LT(0,
            fail_each_allocation([&] { (void)profile_rows(small, symbols); }));
  EXPECT_LT(0, fail_each_allocation([&] { (void)stack_rows(small, symbols); }));
}

TEST_F(Profile_failures, ARecorderThatGotNoMemoryBeginsAtTheNextTry) {
  if (!can_fail) GTEST_SKIP() << "operator new is jemalloc's";
  Flight_recorder recorder(test_clock);
  recorder.set_file(m_path, {time_us, 1, 90704});
  EXPECT_LT(
      0, fail_each_allocation([&recorder] { EXPECT_EQ(0, recorder.begin()); }));
  // Near the limit there is no memory, and none is needed.
  successes = 0;
  EXPECT_EQ(0, recorder.tick(1 << 30));
  EXPECT_EQ(0, successes);
  successes = -1;
  EXPECT_LT(0, fail_each_allocation([&recorder] { (void)recorder.runs(); }));
  // Each reads the file anew, 17 MB: the rows are of one of them.
  const auto run = recorder.runs().latest;
  ASSERT_TRUE(run);
  EXPECT_EQ(1u, run->history.size());
  EXPECT_LT(
      0, fail_each_allocation([&run] { (void)last_run_profile_rows(*run); }));
  EXPECT_EQ(0, recorder.end());
  Flight_recorder next(test_clock);
  next.set_file(m_path, {time_us, 2, 90704});
  EXPECT_LT(0, fail_each_allocation([&next] { (void)next.runs(); }));
  EXPECT_TRUE(next.runs().former);
}

TEST_F(Profile_failures, AFullDiskCostsOneSnapshotAndIsTold) {
  Flight_recorder recorder(test_clock);
  recorder.set_file(m_path, {time_us, 1, 90704});
  error_of_writes = ENOSPC;
  EXPECT_EQ(ENOSPC, recorder.begin());
  EXPECT_NE(0, access(m_path.c_str(), F_OK));
  error_of_writes = 0;
  ASSERT_EQ(0, recorder.begin());
  EXPECT_EQ(0, recorder.tick(1 << 30));
  error_of_writes = ENOSPC;
  time_us += 61'000'000;
  EXPECT_EQ(ENOSPC, recorder.tick(1 << 30));
  error_of_writes = 0;
  // It is tried again at once, not a minute later.
  time_us += 1'000'000;
  EXPECT_EQ(0, recorder.tick(1 << 30));
  ASSERT_TRUE(recorder.runs().latest);
  EXPECT_EQ(2u, recorder.runs().latest->history.size());
}

TEST_F(Profile_failures, TheProfilesMemoryCanGoWhileTheDiskIsSlow) {
  Flight_recorder recorder(test_clock);
  recorder.set_file(m_path, {time_us, 1, 90704});
  ASSERT_EQ(0, recorder.begin());
  // With a View the profiler would wait for it, and leave the memory mapped.
  during_a_write = [] {
    profiling::switch_off();
    EXPECT_EQ(0u, profiles_mapped());
  };
  EXPECT_EQ(0, recorder.tick(1 << 30));
  EXPECT_EQ(nullptr, during_a_write.load());
  ASSERT_TRUE(recorder.runs().latest);
  EXPECT_FALSE(recorder.runs().latest->sites.empty());
}

TEST_F(Profile_failures, AForkWhileItRecordsHarmsNeitherSide) {
  Flight_recorder recorder(test_clock);
  recorder.set_file(m_path, {time_us, 1, 90704});
  ASSERT_EQ(0, recorder.begin());
  std::atomic<bool> stop{false};
  std::atomic<int> failed{0};
  std::atomic<int> ticks{0};
  std::thread writer([&] {
    while (!stop) {
      time_us += 61'000'000;
      if (recorder.tick(1 << 30) != 0) ++failed;
      ++ticks;
      ticks.notify_one();
    }
  });
  for (int i = 0; i < 50; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      // The writer's view of the profile does not go on here.
      alarm(600);
      pools::free(Pool::session, pools::allocate(Pool::session, 5000), 5000);
      profiling::switch_off();
      _exit(profiling::is_on() || profiles_mapped() != 0 ? 1 : 0);
    }
    int status = 0;
    ASSERT_EQ(child, waitpid(child, &status, 0));
    EXPECT_EQ(0, status);
  }
  ticks.wait(0);
  stop = true;
  writer.join();
  EXPECT_EQ(0, failed);
  Contents contents;
  EXPECT_EQ("", load(m_path, 0, &contents));
  EXPECT_EQ(0u, contents.damaged);
  ASSERT_TRUE(contents.latest);
  EXPECT_FALSE(contents.latest->history.empty());
}

}  // namespace
}  // namespace memdiag::profile
