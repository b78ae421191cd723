/*
  The sampler and the recorder, driven by tick() and a clock that the tests set;
  and the thread that drives the server's.
*/

#include "plugin/memdiag/history/history.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <span>
#include <thread>

#include "mysys/memdiag/base/fault.h"
#include "mysys/memdiag/pages/regions.h"
#include "mysys/memdiag/profiling/code_ranges.h"
#include "mysys/memdiag/profiling/profiler.h"
#include "mysys/memdiag/unittest/file_tree.h"
#include "mysys/memdiag/unittest/test.h"
#include "plugin/memdiag/allocator/allocator_snapshot.h"
#include "plugin/memdiag/history/recorder.h"

namespace memdiag {
namespace {

using black_box::Sample;
using black_box::unknown;
using history::Recorder;

/** The error of each write to a file, and of each read; 0: they work. */
int write_error = 0;
int read_error = 0;
/** Writes to files, for threads that wait for the next one. */
std::atomic<unsigned> writes{0};

}  // namespace
}  // namespace memdiag

/** In place of the C library's. */
extern "C" ssize_t pwrite(int file, const void *bytes, size_t count,
                          off_t offset) {
  if (memdiag::write_error != 0) {
    errno = memdiag::write_error;
    return -1;
  }
  const ssize_t written = syscall(SYS_pwrite64, file, bytes, count, offset);
  ++memdiag::writes;
  memdiag::writes.notify_all();
  return written;
}

extern "C" ssize_t pread(int file, void *to, size_t count, off_t offset) {
  if (memdiag::read_error == 0)
    return syscall(SYS_pread64, file, to, count, offset);
  errno = memdiag::read_error;
  return -1;
}

namespace memdiag {
namespace {

/** Set: the path that AProcessThatIsKilled is to write to, for ever. */
constexpr const char *file_variable = "MEMDIAG_TEST_HISTORY";
constexpr unsigned version = 90704;

uint64_t clock_now_us;
/** The clock moves on by this with each reading. */
uint64_t clock_step_us;
uint64_t test_clock(clockid_t) { return clock_now_us += clock_step_us; }

std::vector<std::string> warnings;
void warn(const std::string &text) { warnings.push_back(text); }

class History : public testing::Test {
 protected:
  History() {
    warnings.clear();
    clock_now_us = memdiag_test::now_us();
    clock_step_us = 0;
    history::capacity = 100;
  }
  ~History() override { history::stop(); }

  Recorder::Opened open(size_t capacity = 100,
                        history::Largest_session largest_session = nullptr,
                        history::Log_buffer log_buffer = nullptr) {
    return m_recorder.open(m_path, version, 0, capacity, largest_session, warn,
                           log_buffer);
  }
  /** One second later. */
  Sample next() {
    clock_now_us += 1'000'000;
    EXPECT_EQ(1000u, m_recorder.tick(1000));
    return m_recorder.this_run().back();
  }
  void end() {
    (void)m_recorder.tick(1);
    m_recorder.close();
    m_recorder.end();
  }

  history::Started start(unsigned interval_ms) {
    history::interval_ms = interval_ms;
    return history::start(m_path, version, 0);
  }
  /** Waits for the thread, whose next sample is due now. A sample that is
  written can be read. */
  static void wait_for_samples(size_t count) {
    for (unsigned seen = writes; history::this_run().size() < count;
         seen = writes)
      writes.wait(seen);
  }

  const memdiag_test::File_tree m_tree;
  const std::string m_path = m_tree.at(std::string("/") + history::file_name);
  Recorder m_recorder{test_clock};
};

TEST_F(History, NothingBeforeTheStart) {
  EXPECT_TRUE(history::this_run().empty());
  EXPECT_TRUE(history::former_runs()->empty());
  history::stop();
  history::interval_changed();
  EXPECT_TRUE(m_recorder.this_run().empty());
}

/** The server loads components and functions after its plugins. */
TEST_F(History, TheProfilerLearnsOfCodeWithEachSample) {
  ASSERT_EQ(0, open().file_error);
  (void)next();
  const uint32_t before = profiling::code_looks();
  (void)next();
  EXPECT_EQ(before, profiling::code_looks()) << "the profiler is off";
  ASSERT_EQ(
      0, profiling::switch_on({1 << 20, profiling::least_memory_bytes}).error);
  const uint32_t at_begin = profiling::code_looks();
  (void)next();
  EXPECT_EQ(at_begin + 1, profiling::code_looks());
  profiling::switch_off();
}

TEST_F(History, SamplesAreTaken) {
  const uint64_t begin = clock_now_us;
  const Recorder::Opened opened = open();
  EXPECT_EQ(0, opened.file_error);
  EXPECT_EQ("", opened.remark);
  EXPECT_FALSE(opened.was_killed);
  const Sample sample = next();
  EXPECT_EQ(begin + 1'000'000, sample.time_us);
  EXPECT_EQ(begin, sample.run_us);
  EXPECT_EQ(static_cast<uint32_t>(getpid()), sample.process);
  EXPECT_EQ(90704u, sample.version);
  EXPECT_EQ(0u, sample.ended);
  EXPECT_LT(1u << 20, sample.rss_bytes);
  EXPECT_NE(unknown, sample.rss_bytes);
  EXPECT_NE(unknown, sample.swap_bytes);
  EXPECT_NE(unknown, sample.rss_peak_bytes);
  EXPECT_EQ(sample.time_us, sample.rss_peak_us);
  EXPECT_LT(0u, sample.metadata_bytes);
  EXPECT_NE(unknown, sample.metadata_bytes);
  EXPECT_GE(sample.resident_bytes, sample.active_bytes);
  EXPECT_NE(unknown, sample.resident_bytes);
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
  (void)open();
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
  (void)open();
  const Sample before = next();
  constexpr size_t size = 200 << 20;
  void *const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  ASSERT_NE(MAP_FAILED, memory);
  munmap(memory, size);
  const Sample after = next();
  EXPECT_LT(after.rss_bytes, before.rss_bytes + size / 2);
  EXPECT_GT(after.rss_peak_bytes, before.rss_bytes + size / 2);
  EXPECT_NE(unknown, after.rss_peak_bytes);
  EXPECT_EQ(after.time_us, after.rss_peak_us);
}

unsigned asked = 0;
bool session_is_known = true;

std::optional<history::Holder> answer() {
  ++asked;
  if (!session_is_known) return std::nullopt;
  sessions::Digest digest;
  digest.fill(5);
  return history::Holder{11, 12, digest};
}

TEST_F(History, TheLargestSessionIsAskedForAtAPeak) {
  EXPECT_EQ(0, open(100, answer).file_error);
  const Sample first = next();
  EXPECT_EQ(1u, asked);
  EXPECT_EQ(11u, first.rss_peak_processlist_id);
  EXPECT_EQ(12u, first.rss_peak_session_bytes);
  EXPECT_EQ(5u, first.rss_peak_digest.back());
  EXPECT_NE(unknown, first.limit_bytes);
  EXPECT_LT(first.rss_bytes, first.limit_bytes);
  // Less than a MB more is the same peak.
  for (int i = 0; i < 10; ++i) EXPECT_EQ(11u, next().rss_peak_processlist_id);
  EXPECT_GE(2u, asked);
  const unsigned asked_before = asked;
  session_is_known = false;
  const size_t size = first.rss_peak_bytes + (100 << 20);
  void *const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  ASSERT_NE(MAP_FAILED, memory);
  const Sample higher = next();
  EXPECT_LT(first.rss_peak_bytes + (50 << 20), higher.rss_peak_bytes);
  EXPECT_NE(unknown, higher.rss_peak_bytes);
  EXPECT_EQ(unknown, higher.rss_peak_processlist_id);
  EXPECT_EQ(unknown, higher.rss_peak_session_bytes);
  EXPECT_EQ(asked_before + 1, asked);
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
  (void)open();
  EXPECT_EQ(size, next().buffer_pool_bytes);
  memdiag::fault::arm(memdiag::fault::Point::pages);
  EXPECT_EQ(unknown, next().buffer_pool_bytes);
  memdiag::fault::disarm();
  // RSS does not have the part in reserved huge pages.
  regions::add(Region_kind::buffer_pool, memory, size / 4);
  regions::add(Region_kind::buffer_pool, static_cast<char *>(memory) + size / 4,
               size, regions::Pages::reserved);
  EXPECT_EQ(size / 4, next().buffer_pool_bytes);
  regions::remove(static_cast<char *>(memory) + size / 4);
  regions::remove(memory);
  EXPECT_EQ(0u, next().buffer_pool_bytes);
  munmap(memory, 2 * size);
}

TEST_F(History, TheBufferPoolIsReadForAHundredthOfTheTime) {
  constexpr size_t size = 100 << 12;
  void *const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(MAP_FAILED, memory);
  regions::add(Region_kind::buffer_pool, memory, size);
  (void)open();
  // Reading it takes 50 ms, so it is read every 5 s.
  clock_step_us = 50'000;
  EXPECT_EQ(0u, next().buffer_pool_bytes);
  memset(memory, 1, size);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(0u, next().buffer_pool_bytes);
  clock_now_us += 3'000'000;
  EXPECT_EQ(size, next().buffer_pool_bytes);
  regions::remove(memory);
  munmap(memory, size);
}

TEST_F(History, TheBufferPoolIsReadMoreSeldomWhileNoPagesComeOrGo) {
  if (memdiag_test::sanitized)
    GTEST_SKIP() << "it keeps what was freed: RSS grows";
  constexpr size_t size = 10 << 12;
  void *const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(MAP_FAILED, memory);
  regions::add(Region_kind::buffer_pool, memory, size);
  (void)open();
  for (int i = 0; i < 10; ++i) (void)next();  // the process has grown
  // Reading it takes 50 ms, so it is read every 50 s.
  clock_step_us = 50'000;
  clock_now_us += 60'000'000;
  EXPECT_EQ(0u, next().buffer_pool_bytes);
  memset(memory, 1, size);
  clock_now_us += 30'000'000;
  EXPECT_EQ(0u, next().buffer_pool_bytes);
  clock_now_us += 30'000'000;
  EXPECT_EQ(size, next().buffer_pool_bytes);
  regions::remove(memory);
  munmap(memory, size);
}

std::span<std::byte> log_buffer;

TEST_F(History, TheLogBuffer) {
  constexpr size_t size = 100 << 12;
  void *const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(MAP_FAILED, memory);
  (void)madvise(memory, size, MADV_NOHUGEPAGE);
  memset(memory, 1, size / 4);
  (void)open(100, nullptr,
             [] { return std::span<const std::byte>(log_buffer); });
  EXPECT_EQ(unknown, next().log_buffer_bytes) << "InnoDB is not up";
  log_buffer = {static_cast<std::byte *>(memory), size};
  const Sample first = next();
  EXPECT_EQ(size, first.log_buffer_bytes);
  EXPECT_EQ(size / 4, first.log_buffer_resident_bytes);
  memset(memory, 1, size / 2);
  EXPECT_EQ(size / 2, next().log_buffer_resident_bytes);
  // It is read as seldom as the buffer pool.
  clock_step_us = 50'000;
  (void)next();
  memset(memory, 1, size);
  EXPECT_EQ(size / 2, next().log_buffer_resident_bytes);
  EXPECT_EQ(size, next().log_buffer_bytes);
  // The size of one that has changed is known at once.
  log_buffer = log_buffer.first(size / 5);
  const Sample smaller = next();
  EXPECT_EQ(size / 5, smaller.log_buffer_bytes);
  EXPECT_EQ(size / 5, smaller.log_buffer_resident_bytes);
  log_buffer = {static_cast<std::byte *>(memory), size};
  const Sample larger = next();
  EXPECT_EQ(size, larger.log_buffer_bytes);
  EXPECT_EQ(size / 2, larger.log_buffer_resident_bytes);
  clock_step_us = 0;
  clock_now_us += 60'000'000;
  EXPECT_EQ(size, next().log_buffer_resident_bytes);
  memdiag::fault::arm(memdiag::fault::Point::pages);
  EXPECT_EQ(unknown, next().log_buffer_resident_bytes);
  memdiag::fault::disarm();
  munmap(memory, size);
}

TEST_F(History, MappedFiles) {
  constexpr size_t size = 32 << 20;
  const std::string path = m_tree.at("/mapped");
  const auto of_file = [&path](int file) {
    EXPECT_EQ(0, ftruncate(file, size));
    void *const memory =
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    EXPECT_NE(MAP_FAILED, memory);
    return memory;
  };
  (void)open();
  const Sample before = next();
  ASSERT_NE(unknown, before.file_bytes);
  // The one on a disk, the other in memory: tmpdir may be either.
  for (const int file : {::open(path.c_str(), O_RDWR | O_CREAT, 0600),
                         memfd_create("mapped", 0)}) {
    ASSERT_LE(0, file);
    void *const memory = of_file(file);
    memset(memory, 1, size);
    const Sample with = next();
    EXPECT_LT(before.file_bytes + size / 4 * 3, with.file_bytes);
    EXPECT_LE(with.file_bytes, with.rss_bytes);
    munmap(memory, size);
    close(file);
  }
}

uint64_t refreshes() { return mallctl::read<Ctl::epoch>().value(); }

TEST_F(History, WhileTheServerRestsTheAllocatorIsReadEveryTenSeconds) {
  if (memdiag_test::sanitized)
    GTEST_SKIP() << "it keeps what was freed: RSS grows";
  constexpr size_t size = 2 << 20;
  constexpr size_t ddl = static_cast<size_t>(Pool::ddl);
  (void)open(1000);
  const Sample first = next();
  (void)next();  // the list of samples has grown
  const uint64_t before = refreshes();
  for (int second = 0; second < 30; ++second) {
    const Sample sample = next();
    EXPECT_EQ(first.pools[ddl].live_bytes, sample.pools[ddl].live_bytes);
    EXPECT_NE(0u, sample.allocated_bytes);
  }
  EXPECT_LE(2u, refreshes() - before);
  EXPECT_GE(4u, refreshes() - before);
  // A pool that moves is seen at once, and so is a purge.
  void *const block = pools::allocate(Pool::ddl, size);
  EXPECT_EQ(first.pools[ddl].live_bytes + size, next().pools[ddl].live_bytes);
  pools::free(Pool::ddl, block, size);
  EXPECT_EQ(first.pools[ddl].live_bytes, next().pools[ddl].live_bytes);
  const uint64_t unpurged = refreshes();
  (void)purging::purge(Pool::ddl);
  EXPECT_EQ(0u, next().pools[ddl].dirty_bytes);
  EXPECT_LT(unpurged, refreshes());
}

TEST_F(History, AFailedReadIsUnknown) {
  (void)open();
  memdiag::fault::arm(memdiag::fault::Point::control,
                      static_cast<uint32_t>(Ctl::stats_arena_pdirty));
  const Sample sample = next();
  memdiag::fault::disarm();
  EXPECT_EQ(unknown, sample.dirty_bytes);
  EXPECT_EQ(unknown, sample.pools[0].dirty_bytes);
  EXPECT_NE(unknown, sample.pools[0].live_bytes);
  EXPECT_NE(unknown, sample.rss_bytes);
  EXPECT_NE(unknown, next().dirty_bytes);
}

TEST_F(History, WithoutAnIntervalOneSampleIsTaken) {
  (void)open();
  EXPECT_EQ(0u, m_recorder.tick(0)) << "to be called when that has changed";
  EXPECT_EQ(1u, m_recorder.this_run().size());
  EXPECT_EQ(0u, m_recorder.tick(0));
  EXPECT_EQ(1u, m_recorder.this_run().size());
  EXPECT_EQ(5u, m_recorder.tick(5));
  EXPECT_EQ(0u, m_recorder.tick(0));
  EXPECT_EQ(2u, m_recorder.this_run().size());
}

/** Each later start would take the run before it for the last one. */
TEST_F(History, ARunWithoutAnIntervalIsNotForgottenForAnOlderOne) {
  (void)open();
  (void)next();
  m_recorder.close();  // it is killed
  EXPECT_TRUE(open().was_killed);
  (void)m_recorder.tick(0);
  end();
  EXPECT_FALSE(open().was_killed) << "it was shut down";
  EXPECT_EQ(1u, m_recorder.former_runs()->back().ended);
  (void)m_recorder.tick(0);
  m_recorder.close();
  EXPECT_TRUE(open().was_killed);
}

TEST_F(History, AnEndWithoutSamplesIsOne) {
  (void)open();
  end();
  EXPECT_EQ("", open().remark);
  ASSERT_EQ(1u, m_recorder.former_runs()->size());
  EXPECT_EQ(1u, m_recorder.former_runs()->front().ended);
}

/** The file has each byte of the figures that are saved, and no other figure.
 */
void expect_saved(const Sample &taken, const Sample &read) {
  const black_box::Saved_sample &of_memory = taken;
  const black_box::Saved_sample &of_file = read;
  EXPECT_EQ(0, memcmp(&of_memory, &of_file, sizeof of_memory));
  EXPECT_NE(unknown, taken.file_bytes);
  EXPECT_EQ(unknown, read.file_bytes);
}

TEST_F(History, AShutdownIsSeenByTheNextStart) {
  (void)open();
  (void)next();
  (void)next();
  const auto run = m_recorder.this_run();
  end();
  EXPECT_TRUE(m_recorder.this_run().empty());
  EXPECT_EQ("", open().remark);
  const history::Former_runs kept = m_recorder.former_runs();
  const std::vector<Sample> &former = *kept;
  ASSERT_EQ(run.size() + 1, former.size());
  for (size_t i = 0; i < former.size(); ++i)
    EXPECT_EQ(i + 1 == former.size() ? 1u : 0u, former[i].ended);
  expect_saved(run[0], former[0]);
}

/** They may be 86,400, and WHERE RUN = 0 wants none of them. */
TEST_F(History, ReadersShareTheSamplesOfFormerRuns) {
  (void)open();
  const Sample first = next();
  end();
  (void)open();
  const history::Former_runs former = m_recorder.former_runs();
  EXPECT_EQ(former->data(), m_recorder.former_runs()->data());
  ASSERT_EQ(2u, former->size());
  // They stay for as long as they are read.
  m_recorder.close();
  EXPECT_TRUE(m_recorder.former_runs()->empty());
  expect_saved(first, former->front());
}

/** InnoDB writes its pages after the plugin has ended, for minutes. */
TEST_F(History, ARunThatIsKilledInItsShutdownIsOne) {
  (void)open();
  (void)next();
  m_recorder.close();
  EXPECT_TRUE(open().was_killed);
  EXPECT_EQ(0u, m_recorder.former_runs()->back().ended);
  // open() dropped the closed file of the run before, so end() marks no run.
  (void)next();
  m_recorder.end();
  EXPECT_TRUE(open().was_killed);
}

TEST_F(History, TheEndAllocatesAndReportsNothing) {
  (void)open();
  (void)next();
  m_recorder.close();
  write_error = EIO;
  m_recorder.end();
  m_recorder.end();
  write_error = 0;
  EXPECT_TRUE(warnings.empty()) << "the server's log is gone by then";
  EXPECT_TRUE(open().was_killed);
}

TEST_F(History, ARunThatWasNotShutDownIsSeenByTheNextStart) {
  (void)open();
  (void)next();
  m_recorder.close();
  const Recorder::Opened opened = open();
  EXPECT_TRUE(opened.was_killed);
  EXPECT_NE(std::string::npos, opened.remark.find("was not shut down"));
}

TEST_F(History, OnlyTheLastAreKept) {
  (void)open(10);
  for (int i = 0; i < 31; ++i) (void)next();
  const auto run = m_recorder.this_run();
  ASSERT_EQ(10u, run.size());
  EXPECT_EQ(31u, run.back().sequence);
  for (size_t i = 1; i < run.size(); ++i) {
    EXPECT_EQ(run[i - 1].sequence + 1, run[i].sequence);
    EXPECT_EQ(run[i - 1].time_us + 1'000'000, run[i].time_us);
  }
}

TEST_F(History, WithoutAFile) {
  const Recorder::Opened opened =
      m_recorder.open(m_tree.at("/none/file"), version, 0, 100);
  EXPECT_EQ(ENOENT, opened.file_error);
  const Sample sample = next();
  EXPECT_LT(1u << 20, sample.rss_bytes);
  EXPECT_NE(unknown, sample.rss_bytes);
}

TEST_F(History, ARunWithoutAFileIsNotForgottenForAnOlderOne) {
  (void)open();
  (void)next();
  m_recorder.close();  // it is killed
  std::filesystem::create_directory(m_path + ".new");
  const Recorder::Opened second = open();
  EXPECT_TRUE(second.was_killed);
  EXPECT_EQ(EISDIR, second.file_error);
  for (int i = 0; i < 100; ++i) (void)next();
  EXPECT_TRUE(warnings.empty()) << "open() has told it";
  end();
  std::filesystem::remove(m_path + ".new");
  EXPECT_FALSE(open().was_killed);
}

TEST_F(History, AFileThatCannotBeWrittenIsOneWarning) {
  (void)open();
  (void)next();
  write_error = EIO;
  for (int i = 0; i < 200; ++i) (void)next();
  ASSERT_EQ(1u, warnings.size());
  EXPECT_EQ(0u, warnings[0].find(m_path + " cannot be written: error 5"));
  EXPECT_EQ(100u, m_recorder.this_run().size()) << "in memory";
  write_error = 0;
  for (int i = 0; i < 60; ++i) (void)next();
  black_box::Contents contents;
  EXPECT_EQ("", black_box::load(m_path, 0, &contents));
  EXPECT_EQ(100u, contents.samples.size()) << "all of them, in the file again";
  EXPECT_EQ(1u, warnings.size());
}

TEST_F(History, AFileThatCannotBeReadIsKept) {
  (void)open();
  (void)next();
  end();
  read_error = EIO;
  const Recorder::Opened opened = open();
  EXPECT_NE(std::string::npos, opened.remark.find("It is kept as"));
  read_error = 0;
  (void)next();
  end();
  black_box::Contents contents;
  EXPECT_EQ("", black_box::load(m_path + ".unread", 0, &contents));
  EXPECT_EQ(2u, contents.samples.size());
  EXPECT_EQ("", open().remark) << "a new file";
}

TEST_F(History, AForeignFileIsReplaced) {
  std::ofstream(m_path) << "nothing of ours";
  const Recorder::Opened opened = open();
  EXPECT_NE(std::string::npos, opened.remark.find("is not of this build"));
  EXPECT_NE(std::string::npos, opened.remark.find("It is kept as"));
  EXPECT_EQ(15u, std::filesystem::file_size(m_path + ".unread"));
  EXPECT_FALSE(opened.was_killed);
  EXPECT_EQ(0, opened.file_error);
  (void)next();
  end();
  EXPECT_EQ("", open().remark);
  EXPECT_FALSE(m_recorder.former_runs()->empty());
}

TEST_F(History, TheFileOfAnotherServerIsKeptAndNotRead) {
  const auto open_as = [this](uint64_t server) {
    return m_recorder.open(m_path, version, server, 100, nullptr, warn);
  };
  // A file of a build that did not know its server is anyone's.
  EXPECT_EQ("", open_as(0).remark);
  (void)next();
  EXPECT_TRUE(open_as(7).was_killed);
  (void)next();
  EXPECT_TRUE(open_as(7).was_killed) << "its own";
  (void)next();
  EXPECT_TRUE(open_as(0).was_killed) << "not known";
  EXPECT_TRUE(open_as(7).was_killed);
  (void)next();
  const Recorder::Opened opened = open_as(8);
  EXPECT_FALSE(opened.was_killed);
  EXPECT_NE(std::string::npos, opened.remark.find("is of another server"));
  EXPECT_NE(std::string::npos, opened.remark.find("It is kept as"));
  EXPECT_TRUE(m_recorder.former_runs()->empty());
  black_box::Contents contents;
  EXPECT_EQ("", black_box::load(m_path + ".unread", 0, &contents));
  EXPECT_EQ(4u, contents.samples.size());
  EXPECT_EQ(7u, contents.server);
  (void)next();
  EXPECT_TRUE(open_as(8).was_killed);
}

TEST_F(History, OfAnEmptyFileNothingIsKept) {
  (void)open();
  (void)next();
  m_recorder.close();
  const std::string kept = m_path + ".unread";
  std::filesystem::rename(m_path, kept);
  const auto size = std::filesystem::file_size(kept);
  (void)std::ofstream(m_path);
  const Recorder::Opened opened = open();
  EXPECT_NE(std::string::npos, opened.remark.find("is not of this build"));
  EXPECT_EQ(size, std::filesystem::file_size(kept)) << "the evidence of a kill";
}

TEST_F(History, TheThreadTakesSamplesAndTheLastOne) {
  EXPECT_EQ(0, start(1).thread_error);
  wait_for_samples(3);
  history::stop();
  EXPECT_TRUE(history::this_run().empty());
  history::end();
  EXPECT_EQ("", start(1).remark) << "it was shut down";
  EXPECT_LE(4u, history::former_runs()->size());
  history::stop();
  EXPECT_TRUE(start(1).was_killed) << "after its plugin had ended";
}

/** As the plugin does: what a process registers is its last act. */
TEST_F(History, AProcessThatExitsIsShutDown) {
  const auto run = [this](void (*last)()) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(memdiag_test::seconds_until_a_hang);
      (void)open();
      (void)next();
      m_recorder.close();
      static Recorder *ending;
      ending = &m_recorder;
      if (atexit([] { ending->end(); }) != 0) _exit(127);
      last();
    }
    ASSERT_EQ(child, waitpid(child, nullptr, 0));
  };
  run([] { exit(0); });
  EXPECT_FALSE(open().was_killed);
  EXPECT_EQ(1u, m_recorder.former_runs()->back().ended);
  m_recorder.close();
  std::filesystem::remove(m_path);
  run([] { (void)raise(SIGKILL); });
  EXPECT_TRUE(open().was_killed);
}

TEST_F(History, TheThreadTakesANewIntervalAtOnce) {
  EXPECT_EQ(0, start(3600 * 1000).thread_error);
  wait_for_samples(1);
  __atomic_store_n(&history::interval_ms, 1, __ATOMIC_RELAXED);
  history::interval_changed();
  wait_for_samples(5);
}

TEST_F(History, AProcessThatIsKilled) {
  // This test is also the program of the process that is killed.
  if (const char *const path = getenv(file_variable); path != nullptr) {
    std::filesystem::remove_all(m_tree.at(""));
    history::interval_ms = 1;
    ASSERT_EQ(0, history::start(path, version, 0).file_error);
    wait_for_samples(21);  // 20 are written, the last may not be
    (void)raise(SIGSTOP);
    _exit(127);
  }
  const pid_t killed = fork();
  if (killed == 0) {
    setenv(file_variable, m_path.c_str(), 1);
    unsetenv("GTEST_OUTPUT");
    unsetenv("XML_OUTPUT_FILE");
    alarm(memdiag_test::seconds_until_a_hang);
    execl("/proc/self/exe", "history_test",
          "--gtest_filter=History.AProcessThatIsKilled", "--gtest_brief=1",
          nullptr);
    _exit(127);
  }
  int status;
  ASSERT_EQ(killed, waitpid(killed, &status, WUNTRACED));
  ASSERT_TRUE(WIFSTOPPED(status));
  black_box::Contents contents;
  (void)black_box::load(m_path, 0, &contents);
  ASSERT_EQ(0, kill(killed, SIGKILL));
  ASSERT_EQ(killed, waitpid(killed, nullptr, 0));
  ASSERT_LE(20u, contents.samples.size());

  const Recorder::Opened opened = open();
  EXPECT_TRUE(opened.was_killed);
  EXPECT_NE(std::string::npos,
            opened.remark.find("process " + std::to_string(killed)));
  const history::Former_runs former = m_recorder.former_runs();
  ASSERT_LE(contents.samples.size(), former->size());
  for (const Sample &sample : *former) {
    EXPECT_EQ(static_cast<uint32_t>(killed), sample.process);
    EXPECT_EQ(0u, sample.ended);
    EXPECT_LT(1u << 20, sample.rss_bytes);
    EXPECT_NE(unknown, sample.rss_bytes);
  }
  // The next run ends well, and the samples of the killed one are still there.
  (void)next();
  end();
  EXPECT_EQ("", open().remark);
  const history::Former_runs both = m_recorder.former_runs();
  EXPECT_EQ(static_cast<uint32_t>(killed), both->front().process);
  EXPECT_EQ(static_cast<uint32_t>(getpid()), both->back().process);
  EXPECT_EQ(1u, both->back().ended);
}

TEST_F(History, ReadWhileSamplesAreTaken) {
  (void)start(1);
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([] {
      for (int times = 0; times < 300; ++times) {
        const unsigned seen = writes;
        const auto run = history::this_run();
        for (size_t j = 1; j < run.size(); ++j)
          ASSERT_EQ(run[j - 1].sequence + 1, run[j].sequence);
        (void)history::former_runs();
        history::interval_changed();
        // A mutex is not fair: the sampler has its turn.
        writes.wait(seen);
      }
    });
  wait_for_samples(20);
  for (int i = 0; i < 10; ++i) {
    history::stop();
    (void)start(1);
  }
  for (std::thread &thread : threads) thread.join();
}

}  // namespace
}  // namespace memdiag
