/* The sampler: what it takes, when, and what a next start has of it. */

#include "plugin/memdiag/history/history.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <thread>

#include "mysys/memdiag/unittest/test.h"
#include "plugin/memdiag/allocator/allocator_snapshot.h"
#include "mysys/memdiag/pages/regions.h"

namespace memdiag {
namespace {

using black_box::Sample;
using black_box::unknown;
using memdiag_test::sleep_ms;

/** Set: the path that AProcessThatIsKilled is to write to, for ever. */
constexpr const char *file_variable = "MEMDIAG_TEST_HISTORY";

class History : public testing::Test {
 protected:
  History() {
    char name[] = "/tmp/memdiag_history.XXXXXX";
    m_folder = mkdtemp(name);
    m_path = m_folder + "/" + history::file_name;
    history::interval_ms = 10;
    history::capacity = 100;
  }
  ~History() override {
    history::stop();
    std::filesystem::remove_all(m_folder);
  }

  history::Started start() { return history::start(m_path, 90704); }

  /** Waits until the last sample is as wanted. */
  template <typename Wanted>
  static Sample last_when(Wanted wanted) {
    for (int i = 0; i < 1000; ++i) {
      const auto samples = history::this_run();
      if (!samples.empty() && wanted(samples.back())) return samples.back();
      sleep_ms(10);
    }
    ADD_FAILURE() << "in vain";
    return {};
  }
  /** A sample that is taken from now on. */
  static Sample next() {
    const auto samples = history::this_run();
    const uint64_t last = samples.empty() ? 0 : samples.back().sequence;
    return last_when(
        [last](const Sample &sample) { return sample.sequence > last + 1; });
  }

  std::string m_folder;
  std::string m_path;
};

TEST_F(History, NothingBeforeTheStart) {
  EXPECT_TRUE(history::this_run().empty());
  EXPECT_TRUE(history::former_runs().empty());
  history::stop();
  history::interval_changed();
}

TEST_F(History, SamplesAreTaken) {
  const uint64_t begin = memdiag_test::now_us();
  const history::Started started = start();
  EXPECT_EQ(0, started.thread_error);
  EXPECT_EQ(0, started.file_error);
  EXPECT_EQ("", started.remark);
  const Sample sample = next();
  EXPECT_GE(sample.time_us, begin);
  EXPECT_LE(sample.time_us, memdiag_test::now_us());
  EXPECT_GE(sample.run_us, begin);
  EXPECT_EQ(static_cast<uint32_t>(getpid()), sample.process);
  EXPECT_EQ(90704u, sample.version);
  EXPECT_EQ(0u, sample.ended);
  EXPECT_LT(1u << 20, sample.rss_bytes);
  EXPECT_NE(unknown, sample.swap_bytes);
  EXPECT_NE(unknown, sample.rss_peak_bytes);
  EXPECT_GE(sample.rss_peak_us, begin);
  EXPECT_LE(sample.rss_peak_us, sample.time_us);
  EXPECT_LT(0u, sample.metadata_bytes);
  EXPECT_GE(sample.resident_bytes, sample.active_bytes);
  EXPECT_EQ(0u, sample.buffer_pool_bytes);
  uint64_t live = 0;
  uint64_t dirty = 0;
  for (const auto &pool : sample.pools) {
    live += pool.live_bytes;
    dirty += pool.dirty_bytes;
  }
  EXPECT_EQ(sample.allocated_bytes, live);
  EXPECT_EQ(sample.dirty_bytes, dirty);
}

TEST_F(History, ABlockOfAPoolIsInThatPool) {
  constexpr size_t size = 16 << 20;
  constexpr size_t ddl = static_cast<size_t>(Pool::ddl);
  (void)start();
  const Sample before = next();
  void *const block = pools::allocate(Pool::ddl, size);
  const Sample with = next();
  pools::free(Pool::ddl, block, size);
  const Sample after = next();
  EXPECT_EQ(before.pools[ddl].live_bytes + size, with.pools[ddl].live_bytes);
  EXPECT_EQ(before.pools[ddl].live_bytes, after.pools[ddl].live_bytes);
  const uint64_t purges = after.purges;
  (void)purging::purge(Pool::ddl);
  EXPECT_EQ(purges + 1, next().purges);
}

TEST_F(History, PeaksBetweenTwoSamplesAreNotMissed) {
  history::interval_ms = 3600 * 1000;
  (void)start();
  const Sample before =
      last_when([](const Sample &sample) { return sample.sequence == 1; });
  constexpr size_t size = 200 << 20;
  void *const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  ASSERT_NE(MAP_FAILED, memory);
  munmap(memory, size);
  history::interval_changed();
  const Sample after =
      last_when([](const Sample &sample) { return sample.sequence == 2; });
  EXPECT_LT(after.rss_bytes, before.rss_bytes + size / 2);
  EXPECT_GT(after.rss_peak_bytes, before.rss_bytes + size / 2);
  EXPECT_EQ(after.time_us, after.rss_peak_us);
}

constinit std::atomic<unsigned> asked{0};
constinit std::atomic<bool> somebody_knows{true};

std::optional<history::Holder> answer() {
  ++asked;
  if (!somebody_knows) return std::nullopt;
  memdiag::sessions::Digest digest;
  digest.fill(5);
  return history::Holder{11, 12, digest};
}

TEST_F(History, WhoHasMostIsAskedAtAPeak) {
  EXPECT_EQ(0, history::start(m_path, 90704, answer).file_error);
  const Sample first = next();
  EXPECT_EQ(11u, first.rss_peak_processlist_id);
  EXPECT_EQ(12u, first.rss_peak_session_bytes);
  EXPECT_EQ(5u, first.rss_peak_digest.back());
  EXPECT_NE(unknown, first.limit_bytes);
  EXPECT_LT(first.rss_bytes, first.limit_bytes);
  // Without a new one nobody is asked: it is the same peak's.
  for (int i = 0; i < 10; ++i) EXPECT_EQ(11u, next().rss_peak_processlist_id);
  EXPECT_GT(next().sequence, asked);
  const unsigned asked_before = asked;
  somebody_knows = false;
  const size_t size = first.rss_peak_bytes + (100 << 20);
  void *const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  ASSERT_NE(MAP_FAILED, memory);
  const Sample higher = last_when([&first](const Sample &sample) {
    return sample.rss_peak_bytes > first.rss_peak_bytes + (50 << 20);
  });
  EXPECT_EQ(unknown, higher.rss_peak_processlist_id);
  EXPECT_EQ(unknown, higher.rss_peak_session_bytes);
  EXPECT_LT(asked_before, asked);
  munmap(memory, size);
}

TEST_F(History, TheBufferPool) {
  constexpr size_t size = 100 << 12;
  void *const memory = mmap(nullptr, 2 * size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(MAP_FAILED, memory);
  (void)madvise(memory, 2 * size, MADV_NOHUGEPAGE);
  memset(memory, 1, size);
  regions::add(Region_kind::buffer_pool, memory, 2 * size);
  (void)start();
  EXPECT_EQ(size, next().buffer_pool_bytes);
  memdiag::Presence::fail_for_test(true);
  (void)last_when(
      [](const Sample &sample) { return sample.buffer_pool_bytes == unknown; });
  memdiag::Presence::fail_for_test(false);
  regions::remove(memory);
  (void)last_when(
      [](const Sample &sample) { return sample.buffer_pool_bytes == 0; });
  munmap(memory, 2 * size);
}

TEST_F(History, AFailedReadIsUnknown) {
  (void)start();
  fail_reads_for_test(Ctl::stats_arena_pdirty);
  const Sample sample = next();
  fail_reads_for_test(Ctl::count);
  EXPECT_EQ(unknown, sample.dirty_bytes);
  EXPECT_EQ(unknown, sample.pools[0].dirty_bytes);
  EXPECT_NE(unknown, sample.pools[0].live_bytes);
  EXPECT_NE(unknown, sample.rss_bytes);
  EXPECT_NE(unknown, next().dirty_bytes);
}

TEST_F(History, TheIntervalCanBeChanged) {
  history::interval_ms = 0;
  (void)start();
  sleep_ms(50);
  EXPECT_TRUE(history::this_run().empty());
  const auto set = [](unsigned ms) {
    __atomic_store_n(&history::interval_ms, ms, __ATOMIC_RELAXED);
    history::interval_changed();
  };
  set(5);
  (void)next();
  set(0);
  sleep_ms(100);
  const size_t count = history::this_run().size();
  sleep_ms(100);
  EXPECT_EQ(count, history::this_run().size());
  // From an hour to five milliseconds at once.
  set(3600 * 1000);
  set(5);
  (void)next();
}

TEST_F(History, NoSamplesNoEnd) {
  history::interval_ms = 0;
  (void)start();
  history::stop();
  history::interval_ms = 10;
  EXPECT_EQ("", start().remark);
  EXPECT_TRUE(history::former_runs().empty());
}

TEST_F(History, AShutdownIsSeenByTheNextStart) {
  (void)start();
  (void)next();
  const auto run = history::this_run();
  history::stop();
  EXPECT_TRUE(history::this_run().empty());
  EXPECT_EQ("", start().remark);
  const auto former = history::former_runs();
  ASSERT_GT(former.size(), run.size());
  for (size_t i = 0; i < former.size(); ++i)
    EXPECT_EQ(i + 1 == former.size() ? 1u : 0u, former[i].ended);
  EXPECT_EQ(0, memcmp(&former[0], &run[0], sizeof run[0]));
}

TEST_F(History, OnlyTheLastAreKept) {
  history::capacity = 10;
  history::interval_ms = 1;
  (void)start();
  (void)last_when([](const Sample &sample) { return sample.sequence > 30; });
  const auto run = history::this_run();
  ASSERT_EQ(10u, run.size());
  for (size_t i = 1; i < run.size(); ++i) {
    EXPECT_EQ(run[i - 1].sequence + 1, run[i].sequence);
    EXPECT_GE(run[i].time_us, run[i - 1].time_us);
  }
}

TEST_F(History, WithoutAFile) {
  const history::Started started =
      history::start(m_folder + "/none/" + history::file_name, 90704);
  EXPECT_EQ(ENOENT, started.file_error);
  EXPECT_EQ(0, started.thread_error);
  EXPECT_LT(1u << 20, next().rss_bytes);
}

TEST_F(History, AForeignFileIsReplaced) {
  std::ofstream(m_path) << "nothing of ours";
  const history::Started started = start();
  EXPECT_NE(std::string::npos, started.remark.find("is not of this build"));
  EXPECT_EQ(0, started.file_error);
  (void)next();
  history::stop();
  EXPECT_EQ("", start().remark);
  EXPECT_FALSE(history::former_runs().empty());
}

TEST_F(History, AProcessThatIsKilled) {
  // This test is also what that process runs.
  if (const char *const path = getenv(file_variable); path != nullptr) {
    std::filesystem::remove_all(m_folder);
    history::interval_ms = 1;
    ASSERT_EQ(0, history::start(path, 90704).file_error);
    for (;;) pause();
  }
  const pid_t killed = fork();
  if (killed == 0) {
    setenv(file_variable, m_path.c_str(), 1);
    unsetenv("GTEST_OUTPUT");
    unsetenv("XML_OUTPUT_FILE");
    alarm(60);
    execl("/proc/self/exe", "history_test",
          "--gtest_filter=History.AProcessThatIsKilled", "--gtest_brief=1",
          nullptr);
    _exit(127);
  }
  black_box::Contents contents;
  for (int i = 0; i < 3000 && contents.samples.size() < 20; ++i) {
    sleep_ms(10);
    (void)black_box::load(m_path, &contents);
  }
  ASSERT_EQ(0, kill(killed, SIGKILL));
  ASSERT_EQ(killed, waitpid(killed, nullptr, 0));
  ASSERT_LE(20u, contents.samples.size());

  EXPECT_NE(std::string::npos, start().remark.find("was not shut down"));
  const auto former = history::former_runs();
  ASSERT_LE(contents.samples.size(), former.size());
  for (const Sample &sample : former) {
    EXPECT_EQ(static_cast<uint32_t>(killed), sample.process);
    EXPECT_EQ(0u, sample.ended);
    EXPECT_LT(1u << 20, sample.rss_bytes);
  }
  // The next run ends well, and what the killed one left is still there.
  (void)next();
  history::stop();
  EXPECT_EQ("", start().remark);
  const auto both = history::former_runs();
  EXPECT_EQ(static_cast<uint32_t>(killed), both.front().process);
  EXPECT_EQ(static_cast<uint32_t>(getpid()), both.back().process);
  EXPECT_EQ(1u, both.back().ended);
}

TEST_F(History, ReadWhileSamplesAreTaken) {
  history::interval_ms = 1;
  (void)start();
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&stop] {
      while (!stop) {
        const auto run = history::this_run();
        for (size_t j = 1; j < run.size(); ++j)
          ASSERT_EQ(run[j - 1].sequence + 1, run[j].sequence);
        (void)history::former_runs();
        history::interval_changed();
      }
    });
  (void)last_when([](const Sample &sample) { return sample.sequence > 300; });
  for (int i = 0; i < 10; ++i) {
    history::stop();
    (void)start();
  }
  stop = true;
  for (std::thread &thread : threads) thread.join();
}

}  // namespace
}  // namespace memdiag
