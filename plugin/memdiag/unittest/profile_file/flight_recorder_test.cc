/* The flight recorder: what a killed run leaves, and what the next one reads.
 */

#include <gtest/gtest.h>

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "mysys/memdiag/pages/regions.h"
#include "mysys/memdiag/pools/pools.h"
#include "mysys/memdiag/profiling/code_ranges.h"
#include "mysys/memdiag/profiling/profiler.h"
#include "mysys/memdiag/unittest/file_tree.h"
#include "plugin/memdiag/profile_file/file_format.h"
#include "plugin/memdiag/profile_file/flight_recorder.h"
#include "plugin/memdiag/profile_file/record_rows.h"

namespace memdiag::profile {
namespace {

uint64_t time_us = 1'700'000'000'000'000;
uint64_t test_clock(clockid_t) { return time_us; }

class FlightRecorder : public testing::Test {
 protected:
  FlightRecorder() {
    regions::add_stack_of_thread();
    EXPECT_EQ(0, profiling::switch_on({1, 64 << 20}).error);
    // This thread's first interval ends.
    pools::free(Pool::session, pools::allocate(Pool::session, 4 << 20),
                4 << 20);
  }
  ~FlightRecorder() override { profiling::switch_off(); }

  static Run_id run() { return {time_us, 1, 90704}; }
  static Run_id next_run() { return {time_us, 2, 90704}; }
  /** Those of a file about which there is nothing to say. */
  static Contents runs_of(const Flight_recorder &recorder) {
    std::string remark;
    Contents contents = recorder.runs(&remark);
    EXPECT_EQ("", remark);
    return contents;
  }

  memdiag_test::File_tree m_tree;
  const std::string m_path = m_tree.at("/memdiag_profile.bin");
};

[[gnu::noinline]] void *culprit(size_t bytes) {
  void *const block = pools::allocate(Pool::ddl, bytes);
  asm volatile("" ::: "memory");
  return block;
}

TEST_F(FlightRecorder, TheNextRunSeesWhatGrewBeforeTheLastOneWasKilled) {
  constexpr uint64_t low = 1 << 30;
  std::vector<void *> blocks;
  {
    Flight_recorder recorder(test_clock);
    recorder.set_file(m_path, run());
    EXPECT_FALSE(runs_of(recorder).former);
    ASSERT_EQ(0, recorder.begin());
    blocks.push_back(pools::allocate(Pool::session, 100000));
    EXPECT_EQ(0, recorder.tick(low));
    for (int i = 0; i < 8; ++i) {
      time_us += 5'000'000;
      blocks.push_back(culprit(10 << 20));
      EXPECT_EQ(0, recorder.tick(low + (i + 1) * (uint64_t{128} << 20)));
    }
    ASSERT_TRUE(runs_of(recorder).latest);
    EXPECT_FALSE(runs_of(recorder).latest->ramps.empty());
    // No end(): it is killed.
  }
  Flight_recorder next(test_clock);
  next.set_file(m_path, next_run());
  const auto last = runs_of(next).former;
  ASSERT_TRUE(last);
  EXPECT_EQ(0u, last->ended_us);
  const auto rows = last_run_profile_rows(*last);
  ASSERT_GE(rows.size(), 2u);
  EXPECT_EQ("ddl", rows[0].pool);
  EXPECT_GE(rows[0].peak_bytes, uint64_t{70} << 20);
  EXPECT_EQ(0u, rows[0].before_bytes);
  EXPECT_EQ(static_cast<int64_t>(rows[0].peak_bytes), rows[0].growth_bytes);
  ASSERT_TRUE(rows[0].folded);
  EXPECT_NE(std::string::npos, rows[0].folded->find("culprit"));
  size_t history = 0;
  profile_history_rows(*last, 1, [&history](const Profile_history_row &row) {
    EXPECT_EQ(1u, row.run);
    ++history;
    return true;
  });
  EXPECT_GT(history, rows.size());
  pools::free(Pool::session, blocks.front(), 100000);
  for (size_t i = 1; i < blocks.size(); ++i)
    pools::free(Pool::ddl, blocks[i], 10 << 20);
}

TEST_F(FlightRecorder, WithoutBeginNothingIsWritten) {
  Flight_recorder recorder(test_clock);
  recorder.set_file(m_path, run());
  EXPECT_EQ(0, recorder.tick(1 << 30));
  EXPECT_EQ(0, recorder.end());
  EXPECT_NE(0, access(m_path.c_str(), F_OK));
  EXPECT_FALSE(runs_of(recorder).latest);
}

TEST_F(FlightRecorder, TheLastRunIsReadFromTheFile) {
  {
    Flight_recorder last(test_clock);
    last.set_file(m_path, run());
    ASSERT_EQ(0, last.begin());
    EXPECT_EQ(0, last.tick(1 << 30));
  }
  const uint64_t of_last = time_us;
  time_us += 1'000'000;
  Flight_recorder recorder(test_clock);
  recorder.set_file(m_path, run());
  // Before this run has a file, in it, and in it behind its own records.
  for (int step = 0; step < 3; ++step) {
    const Contents found = runs_of(recorder);
    ASSERT_TRUE(found.former) << step;
    EXPECT_EQ(of_last, found.former->id.started_us);
    EXPECT_EQ(step == 2, found.latest.has_value());
    EXPECT_EQ(0, step == 0 ? recorder.begin() : recorder.tick(1 << 30));
  }
  // A reader may ask just before begin() has made the file, and read it.
  Flight_recorder same(test_clock);
  same.set_file(m_path, run());
  EXPECT_EQ(of_last, runs_of(same).former->id.started_us);
  EXPECT_EQ(time_us, runs_of(same).latest->id.started_us);
}

TEST_F(FlightRecorder, APathThatCannotBeMadeIsAnError) {
  Flight_recorder recorder(test_clock);
  recorder.set_file("/nonexistent/memdiag", run());
  EXPECT_EQ(ENOENT, recorder.begin());
  EXPECT_EQ(0, recorder.tick(1 << 30));
}

TEST_F(FlightRecorder, ASecondBeginGoesOnInTheSameFile) {
  Flight_recorder recorder(test_clock);
  recorder.set_file(m_path, run());
  ASSERT_EQ(0, recorder.begin());
  EXPECT_EQ(0, recorder.tick(1 << 30));
  profiling::switch_off();
  // Off: there is nothing to record.
  time_us += 61'000'000;
  EXPECT_EQ(0, recorder.tick(1 << 30));
  EXPECT_EQ(0, profiling::switch_on({1, 64 << 20}).error);
  ASSERT_EQ(0, recorder.begin());
  time_us += 61'000'000;
  EXPECT_EQ(0, recorder.tick(1 << 30));
  EXPECT_EQ(0, recorder.end());
  Flight_recorder next(test_clock);
  next.set_file(m_path, next_run());
  ASSERT_TRUE(runs_of(next).former);
  EXPECT_NE(0u, runs_of(next).former->ended_us);
  EXPECT_EQ(2u, runs_of(next).former->history.size() +
                    runs_of(next).former->ramps.size());
}

TEST_F(FlightRecorder, ABeginWithoutTheFileMakesAnother) {
  Flight_recorder recorder(test_clock);
  recorder.set_file(m_path, run());
  const std::string elsewhere = m_path + ".old";
  for (const bool is_renamed : {false, true}) {
    ASSERT_EQ(0, recorder.begin());
    EXPECT_EQ(0, recorder.tick(1 << 30));
    ASSERT_TRUE(runs_of(recorder).latest);
    ASSERT_EQ(0, is_renamed ? rename(m_path.c_str(), elsewhere.c_str())
                            : unlink(m_path.c_str()));
    ASSERT_EQ(0, recorder.begin());
    EXPECT_FALSE(runs_of(recorder).latest) << "it is new";
    EXPECT_EQ(0, recorder.tick(1 << 30));
    Flight_recorder next(test_clock);
    next.set_file(m_path, next_run());
    ASSERT_TRUE(runs_of(next).former);
    EXPECT_EQ(1u, runs_of(next).former->history.size());
  }
  // Another file that has the name counts as one that was deleted.
  ASSERT_EQ(0, rename(elsewhere.c_str(), m_path.c_str()));
  ASSERT_EQ(0, recorder.begin());
  ASSERT_EQ(0, unlink(m_path.c_str()));
  // Where none can be made, the recorder says so.
  std::filesystem::remove_all(m_tree.at(""));
  EXPECT_EQ(ENOENT, recorder.begin());
  EXPECT_EQ(0, recorder.tick(1 << 30));
}

TEST_F(FlightRecorder, ABeginWithoutTheFileKeepsTheFormerRun) {
  {
    Flight_recorder last(test_clock);
    last.set_file(m_path, run());
    ASSERT_EQ(0, last.begin());
    ASSERT_EQ(0, last.tick(1 << 30));
  }
  Flight_recorder recorder(test_clock);
  recorder.set_file(m_path, next_run());
  ASSERT_EQ(0, recorder.begin());
  ASSERT_TRUE(runs_of(recorder).former);
  ASSERT_EQ(0, unlink(m_path.c_str()));
  // An attempt that fails does not lose it.
  std::filesystem::create_directory(m_path + ".new");
  EXPECT_NE(0, recorder.begin());
  std::filesystem::remove(m_path + ".new");
  ASSERT_EQ(0, recorder.begin());
  ASSERT_TRUE(runs_of(recorder).former);
  EXPECT_EQ(1u, runs_of(recorder).former->history.size());
  EXPECT_FALSE(runs_of(recorder).latest) << "it is new";
}

TEST_F(FlightRecorder, TheFileOfAnotherBuildIsKept) {
  m_tree.write("/memdiag_profile.bin", "of another build");
  Flight_recorder recorder(test_clock);
  recorder.set_file(m_path, run());
  std::string loaded;
  EXPECT_FALSE(recorder.runs(&loaded).former);
  EXPECT_NE(std::string::npos, loaded.find("is not of this build"));
  std::string remark;
  ASSERT_EQ(0, recorder.begin(&remark));
  EXPECT_EQ(loaded + ". It is kept as " + m_path + ".unread", remark);
  EXPECT_EQ(16u, std::filesystem::file_size(m_path + ".unread"));
  ASSERT_EQ(0, recorder.begin(&remark));
  EXPECT_EQ("", remark);
  EXPECT_EQ(0, recorder.tick(1 << 30));
  Flight_recorder next(test_clock);
  next.set_file(m_path, next_run());
  EXPECT_TRUE(runs_of(next).former);
}

TEST_F(FlightRecorder, ALargerFileIsKept) {
  m_tree.write("/memdiag_profile.bin", "of a newer format");
  std::filesystem::resize_file(m_path, profile::file_bytes + 1);
  Flight_recorder recorder(test_clock);
  recorder.set_file(m_path, run());
  std::string loaded;
  EXPECT_FALSE(recorder.runs(&loaded).former);
  EXPECT_EQ(m_path + " is not a file of profiles", loaded);
  std::string remark;
  ASSERT_EQ(0, recorder.begin(&remark));
  EXPECT_EQ(loaded + ". It is kept as " + m_path + ".unread", remark);
  EXPECT_EQ(profile::file_bytes + 1,
            std::filesystem::file_size(m_path + ".unread"));
}

TEST_F(FlightRecorder, TheFileOfAnotherServerIsKeptAndNotRead) {
  for (const uint64_t server : {0, 7, 7}) {
    Flight_recorder recorder(test_clock);
    recorder.set_file(m_path, {time_us, 1, 90704, server});
    (void)runs_of(recorder);
    ASSERT_EQ(0, recorder.begin());
    EXPECT_EQ(0, recorder.tick(1 << 30));
  }
  Flight_recorder recorder(test_clock);
  recorder.set_file(m_path, {time_us, 1, 90704, 8});
  std::string loaded;
  EXPECT_FALSE(recorder.runs(&loaded).former);
  EXPECT_NE(std::string::npos, loaded.find("is of another server"));
  std::string remark;
  ASSERT_EQ(0, recorder.begin(&remark));
  EXPECT_EQ(loaded + ". It is kept as " + m_path + ".unread", remark);
  Flight_recorder donor(test_clock);
  donor.set_file(m_path + ".unread", {time_us, 1, 90704, 7});
  EXPECT_TRUE(runs_of(donor).former);
}

TEST_F(FlightRecorder, AnotherProfileIsNotRecordedBeforeItsBegin) {
  Flight_recorder recorder(test_clock);
  recorder.set_file(m_path, run());
  ASSERT_EQ(0, recorder.begin());
  EXPECT_EQ(0, recorder.tick(1 << 30));
  // Its numbers of sites mean other stacks.
  EXPECT_EQ(0, profiling::switch_on({1, 64 << 20}).error);
  time_us += 61'000'000;
  EXPECT_EQ(0, recorder.tick(1 << 30));
  ASSERT_TRUE(runs_of(recorder).latest);
  EXPECT_EQ(1u, runs_of(recorder).latest->history.size());
  ASSERT_EQ(0, recorder.begin());
  EXPECT_EQ(0, recorder.tick(1 << 30));
  EXPECT_EQ(2u, runs_of(recorder).latest->history.size());
}

TEST_F(FlightRecorder, AReaderIsToldOfAFileThatCannotBeRead) {
  Flight_recorder recorder(test_clock);
  recorder.set_file(m_path, run());
  ASSERT_EQ(0, recorder.begin());
  EXPECT_EQ(0, recorder.tick(1 << 30));
  std::string remark;
  EXPECT_TRUE(recorder.runs(&remark).latest);
  EXPECT_EQ("", remark);
  ASSERT_EQ(0, truncate(m_path.c_str(), 0));
  EXPECT_FALSE(recorder.runs(&remark).latest);
  EXPECT_NE("", remark);
}

TEST_F(FlightRecorder, CodeThatIsLoadedLaterIsKnownAMinuteLater) {
  Flight_recorder recorder(test_clock);
  recorder.set_file(m_path, run());
  ASSERT_EQ(0, recorder.begin());
  EXPECT_EQ(0, recorder.tick(1 << 30));
  // A part of the C library that nothing here needs.
  const char name[] = "libthread_db.so.1";
  ASSERT_EQ(nullptr, dlopen(name, RTLD_LAZY | RTLD_NOLOAD));
  void *const library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
  ASSERT_NE(nullptr, library);
  const auto address = reinterpret_cast<uintptr_t>(dlsym(library, "td_ta_new"));
  ASSERT_NE(0u, address);
  EXPECT_FALSE(profiling::is_code(address));
  const auto has_library = [&] {
    const auto found = runs_of(recorder).latest;
    return found && std::any_of(found->modules.begin(), found->modules.end(),
                                [&](const Module &module) {
                                  return module.begin <= address &&
                                         address < module.end &&
                                         module.path.ends_with(name);
                                });
  };
  EXPECT_FALSE(has_library());
  time_us += 61'000'000;
  EXPECT_EQ(0, recorder.tick(1 << 30));
  EXPECT_TRUE(profiling::is_code(address));
  EXPECT_TRUE(has_library());
  dlclose(library);
}

TEST(Record_rows, AModuleOfAnotherBuildIsNamed) {
  Recorded_run run{};
  run.modules = {{"/usr/sbin/mysqld", "aa01", 0x1000, 0x2000, 0, 0},
                 {"/usr/lib/libz.so.1", "bb01", 0x3000, 0x4000, 0, 0},
                 {"/usr/lib/udf.so", "cc01", 0x5000, 0x6000, 0, 0},
                 {"/usr/lib/plain.so", "", 0x7000, 0x8000, 0, 0},
                 {"linux-vdso.so.1", "ee01", 0x9000, 0xa000, 0, 0}};
  std::vector<Module> now = run.modules;
  EXPECT_TRUE(replaced_modules(run, now).empty());
  // Elsewhere, but the same build; and one that is not loaded now.
  now[0].path = "/opt/mysql/bin/mysqld";
  now.erase(now.begin() + 2);
  EXPECT_TRUE(replaced_modules(run, now).empty());
  now[0].build_id = "aa02";
  EXPECT_EQ(std::vector<std::string>{"/usr/sbin/mysqld"},
            replaced_modules(run, now));
  // Without its former build ID nothing is known, and another kernel is no
  // other server.
  for (Module &module : now)
    if (module.path != now[0].path) module.build_id += "ff";
  now[1].build_id = "bb01";
  EXPECT_EQ(1u, replaced_modules(run, now).size());
  EXPECT_TRUE(replaced_modules(run, {}).empty());
}

}  // namespace
}  // namespace memdiag::profile
