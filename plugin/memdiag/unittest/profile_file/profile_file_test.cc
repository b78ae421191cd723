/*
  The flight recorder's file: what is written is read again, whatever became of
  the process or of the file, nothing that is in a file does harm, and recording
  allocates nothing.
*/

#include "plugin/memdiag/profile_file/profile_file.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <random>

#include "mysys/memdiag/unittest/file_tree.h"
#include "mysys/memdiag/unittest/stopped_in_malloc.h"
#include "plugin/memdiag/profile/symbols.h"
#include "plugin/memdiag/profile_file/file_reader.h"
#include "plugin/memdiag/profile_file/record_rows.h"
#include "plugin/memdiag/unittest/failing_writes.h"
#include "plugin/memdiag/unittest/killed_writer.h"
#include "plugin/memdiag/unittest/recorded.h"

namespace {

std::atomic<size_t> allocations{0};

}  // namespace

#if defined(__SANITIZE_ADDRESS__)
#include "plugin/memdiag/unittest/own_new.h"
bool memdiag_test::may_allocate() noexcept {
  ++allocations;
  return true;
}
#endif

namespace memdiag::profile {
namespace {

using memdiag_test::Bytes;
using memdiag_test::correct_checksum;
using memdiag_test::failing_writes;
using memdiag_test::read_file;
using memdiag_test::show;
using memdiag_test::write_file;
using memdiag_test::writes;
using Layout = memdiag_test::Profile_layout;

constexpr uint64_t second = 1'000'000;
constexpr uint64_t start_us = 1767225600 * second;
constexpr uint64_t sample_bytes = 524288;
constexpr uint64_t mb = 1 << 20;

constexpr Record_decision a_period{Record_reason::period, 0, false};
constexpr Record_decision a_low{Record_reason::period, 0, true};
constexpr Record_decision high_of(uint32_t ramp) {
  return {Record_reason::new_high, ramp, false};
}

Moment moment_of(uint64_t n, uint64_t rss_mb = 100) {
  return {start_us + n * second, rss_mb * mb, 1000 * mb, mb, n};
}

Site_amount amount_of(uint32_t site, uint64_t bytes, unsigned char digest = 0) {
  Site_amount amount{};
  amount.site = site;
  amount.samples = site + 1;
  amount.digest.fill(digest);
  amount.bytes = bytes;
  amount.objects = bytes / 100;
  amount.bytes_error = bytes / 10;
  amount.objects_error = bytes / 1000;
  amount.oldest_us = start_us - 2 * second;
  amount.median_us = start_us - second;
  return amount;
}

bool is_same(const Site_amount &a, const Site_amount &b) {
  return memcmp(&a, &b, sizeof a) == 0;
}

std::vector<uint64_t> stack_of(uint32_t site) {
  return {0x1000 + site, 0x2000, 0x3000};
}

const std::vector<Module> modules{
    {"/usr/sbin/mysqld", "0123ab", 0x1000, 0x5000, 0x400, 0x200},
    {"/lib/libc.so.6", "", 0x10000, 0x50000, 0x10000, 0}};

class Profile_file_test : public testing::Test {
 protected:
  /** Opens, and switches the profiler on. */
  void begin(Profile_file *file, uint64_t started_us = start_us) {
    const Profile_file::Opened opened =
        file->open(m_path, {started_us, 77, 90704});
    ASSERT_EQ(0, opened.error);
    ASSERT_EQ("", opened.remark);
    ASSERT_EQ(0, file->begin_profile(started_us, sample_bytes, modules));
  }

  const memdiag_test::File_tree m_tree;
  const std::string m_path = m_tree.at("/memdiag_profile.bin");
};

/** The content of a file, which is read without a remark. */
Contents loaded(const std::string &path) {
  Contents contents;
  EXPECT_EQ("", load(path, 0, &contents));
  return contents;
}

void add_sites(Profile_file *file, uint32_t first, uint32_t count) {
  for (uint32_t i = first; i < first + count; ++i)
    ASSERT_EQ(0, file->add_site(i, "session", "memory/sql/THD", stack_of(i)))
        << i;
}

/** The times of snapshots, in seconds since start_us. */
std::vector<uint64_t> times(const std::vector<Snapshot> &snapshots) {
  std::vector<uint64_t> found;
  for (const Snapshot &snapshot : snapshots)
    found.push_back((snapshot.moment.time_us - start_us) / second);
  return found;
}
using Times = std::vector<uint64_t>;

TEST_F(Profile_file_test, WhatIsWrittenIsRead) {
  Contents contents;
  EXPECT_EQ("", load(m_path, 0, &contents));
  EXPECT_FALSE(contents.latest);
  Profile_file file;
  EXPECT_FALSE(file.has_name(m_path));
  begin(&file);
  EXPECT_TRUE(file.has_name(m_path));
  EXPECT_FALSE(loaded(m_path).latest) << "nothing was recorded yet";
  EXPECT_FALSE(file.has_site(1));
  add_sites(&file, 1, 3);
  EXPECT_TRUE(file.has_site(1));
  EXPECT_TRUE(file.has_site(3));
  EXPECT_FALSE(file.has_site(4));
  const std::vector<Site_amount> amounts{
      amount_of(1, 100), amount_of(2, 300, 0xab), amount_of(2, 200)};
  EXPECT_EQ(0, file.append(moment_of(1), a_low, amounts));
  EXPECT_EQ(0, file.append(moment_of(2, 900), high_of(1), amounts));
  EXPECT_EQ(0, file.append(moment_of(3), {}, amounts)) << "no reason";

  for (const bool from_path : {true, false}) {
    if (from_path)
      contents = loaded(m_path);
    else
      EXPECT_EQ("", file.read(&contents));
    EXPECT_FALSE(contents.former);
    EXPECT_EQ(0u, contents.damaged);
    ASSERT_TRUE(contents.latest);
    const Recorded_run &run = *contents.latest;
    EXPECT_EQ(start_us, run.id.started_us);
    EXPECT_EQ(77u, run.id.process);
    EXPECT_EQ(90704u, run.id.version);
    EXPECT_EQ(0u, run.ended_us);
    ASSERT_EQ(2u, run.modules.size());
    EXPECT_EQ("/usr/sbin/mysqld", run.modules[0].path);
    EXPECT_EQ("0123ab", run.modules[0].build_id);
    EXPECT_EQ(0x1000u, run.modules[0].begin);
    EXPECT_EQ(0x5000u, run.modules[0].end);
    EXPECT_EQ(0x400u, run.modules[0].load_bias);
    EXPECT_EQ(0x200u, run.modules[0].file_offset);
    EXPECT_EQ("", run.modules[1].build_id);
    ASSERT_EQ(3u, run.sites.size());
    EXPECT_EQ(start_us, run.sites[1].since_us);
    EXPECT_EQ(2u, run.sites[1].site.number);
    EXPECT_EQ("session", run.sites[1].site.pool);
    EXPECT_EQ("memory/sql/THD", run.sites[1].site.route);
    EXPECT_EQ(stack_of(2), run.sites[1].site.addresses);
    EXPECT_EQ(Times{1}, times(run.history));
    EXPECT_EQ((Times{1, 2}), times(run.ramps));
    EXPECT_TRUE(run.ramps[0].is_before_ramp);
    EXPECT_FALSE(run.ramps[1].is_before_ramp);
    const Snapshot &high = run.ramps[1];
    EXPECT_EQ(1u, high.ramp);
    EXPECT_EQ(Record_reason::new_high, high.reason);
    EXPECT_EQ(900 * mb, high.moment.rss_bytes);
    EXPECT_EQ(1000 * mb, high.moment.live_bytes);
    EXPECT_EQ(mb, high.moment.live_bytes_error);
    EXPECT_EQ(2u, high.moment.dropped_samples);
    EXPECT_EQ(start_us, high.since_us);
    EXPECT_EQ(sample_bytes, high.sample_bytes);
    // The largest first.
    ASSERT_EQ(3u, high.amounts.size());
    EXPECT_TRUE(is_same(amounts[1], high.amounts[0]));
    EXPECT_TRUE(is_same(amounts[2], high.amounts[1]));
    EXPECT_TRUE(is_same(amounts[0], high.amounts[2]));
  }
}

TEST_F(Profile_file_test, AReaderHoldsNobodyInMalloc) {
  Profile_file file;
  begin(&file);
  Contents contents;
  EXPECT_TRUE(
      memdiag_test::others_go_on([&] { EXPECT_EQ("", file.read(&contents)); },
                                 [&file] { (void)file.has_site(1); }));
}

TEST_F(Profile_file_test, TheNextRunFindsTheLastOne) {
  {
    Profile_file file;
    begin(&file);
    add_sites(&file, 1, 1);
    const std::vector<Site_amount> amounts{amount_of(1, 100)};
    EXPECT_EQ(0, file.append(moment_of(1), a_period, amounts));
    EXPECT_EQ(0, file.end(start_us + 5 * second));
  }
  {
    Profile_file file;
    begin(&file, start_us + 10 * second);
    const Contents contents = loaded(m_path);
    ASSERT_TRUE(contents.former);
    EXPECT_EQ(start_us, contents.former->id.started_us);
    EXPECT_EQ(start_us + 5 * second, contents.former->ended_us);
    EXPECT_EQ(Times{1}, times(contents.former->history));
    EXPECT_EQ(1u, contents.former->sites.size());
    EXPECT_EQ(2u, contents.former->modules.size());
    EXPECT_FALSE(contents.latest);
  }
  {
    // That one recorded nothing: it does not drive out the one before it.
    Profile_file file;
    begin(&file, start_us + 20 * second);
    EXPECT_EQ(start_us, loaded(m_path).former->id.started_us);
    EXPECT_EQ(0, file.append(moment_of(21), a_period, {}));
  }
  Profile_file file;
  begin(&file, start_us + 30 * second);
  const Contents contents = loaded(m_path);
  EXPECT_EQ(start_us + 20 * second, contents.former->id.started_us);
  EXPECT_EQ(0u, contents.former->ended_us) << "it was killed";
  EXPECT_EQ(Times{21}, times(contents.former->history));
  EXPECT_TRUE(contents.former->sites.empty());
}

TEST_F(Profile_file_test, ASiteOfAnUnloadedModuleIsNotOfTheOneInItsPlace) {
  Profile_file file;
  ASSERT_EQ(0, file.open(m_path, {start_us, 77, 90704}).error);
  const std::vector<Module> both{
      {"/innocent.so", "", 0x1000, 0x5000, 0x1000, 0, 4},
      {"/guilty.so", "", 0x1000, 0x5000, 0x1000, 0, 2, 3}};
  ASSERT_EQ(0, file.begin_profile(start_us, sample_bytes, both));
  EXPECT_EQ(0, file.add_site(1, "session", "malloc", stack_of(1), 2));
  EXPECT_EQ(0, file.add_site(2, "session", "malloc", stack_of(1), 4));
  const std::vector<Site_amount> amounts{amount_of(1, 300), amount_of(2, 200)};
  EXPECT_EQ(0, file.append(moment_of(1), a_period, amounts));
  std::vector<std::string> frames;
  profile_history_rows(*loaded(m_path).latest, 0,
                       [&frames](const Profile_history_row &row) {
                         frames.push_back(row.frames.value_or(""));
                         return true;
                       });
  ASSERT_EQ(2u, frames.size());
  EXPECT_EQ("guilty.so+0x0 < guilty.so+0xfff < guilty.so+0x1fff", frames[0]);
  EXPECT_EQ("innocent.so+0x0 < innocent.so+0xfff < innocent.so+0x1fff",
            frames[1]);
}

TEST_F(Profile_file_test, ACrashLoopKeepsTheRunThatGrew) {
  const std::vector<Site_amount> amounts{amount_of(1, 100)};
  constexpr uint64_t minute = 60;
  {
    // It grew to 900 MB and was killed.
    Profile_file file;
    begin(&file);
    add_sites(&file, 1, 1);
    EXPECT_EQ(0, file.append(moment_of(1), a_low, amounts));
    EXPECT_EQ(0, file.append(moment_of(86400, 900), high_of(1), amounts));
  }
  // @param at  seconds after start_us
  const auto start_of_run_at = [](uint64_t at) {
    return start_us + at * second;
  };
  // @param clock_set  by so many seconds, after the first record
  const auto run = [&](uint64_t at, uint64_t up, uint64_t rss_mb,
                       uint64_t clock_set = 0) {
    Profile_file file;
    begin(&file, start_of_run_at(at));
    EXPECT_EQ(0, file.append(moment_of(at), a_low, amounts));
    at += clock_set;
    for (uint64_t now = minute; now <= up; now += minute)
      EXPECT_EQ(0, file.append(moment_of(at + now), a_low, amounts));
    EXPECT_EQ(0, file.append(moment_of(at + up, rss_mb), high_of(1), amounts));
  };
  const auto kept = [&] {
    Contents contents = loaded(m_path);
    const Recorded_run *const found = contents.run_to_keep();
    return found == nullptr ? 0 : (found->id.started_us - start_us) / second;
  };
  EXPECT_EQ(0u, kept());
  for (uint64_t i = 0; i < 5; ++i) {
    run(90000 + i * minute, 30, 900);
    EXPECT_EQ(0u, kept()) << i;
  }
  // A higher peak is worth more.
  run(91000, 30, 901);
  EXPECT_EQ(91000u, kept());
  run(92000, 10 * minute - 1, 500);
  EXPECT_EQ(91000u, kept());
  // A clock that is set does not make it longer.
  run(92500, 30, 500, 86400);
  EXPECT_EQ(91000u, kept());
  // A long run is no part of the loop.
  run(93000, 10 * minute, 500);
  EXPECT_EQ(93000u, kept());
  // Neither is one whose clock was set back.
  run(93700, 30, 600);
  EXPECT_EQ(93700u, kept());
  run(94000, 10 * minute, 500, -uint64_t{7200});
  EXPECT_EQ(94000u, kept());
  // Nor does a run keep its place that was shut down.
  {
    Profile_file file;
    begin(&file, start_of_run_at(95000));
    EXPECT_EQ(0, file.append(moment_of(95001, 2000), high_of(1), amounts));
    EXPECT_EQ(0, file.end(start_of_run_at(95002)));
  }
  EXPECT_EQ(95000u, kept());
  run(96000, 1, 100);
  EXPECT_EQ(96000u, kept());
}

TEST_F(Profile_file_test, ASnapshotAsAProfile) {
  Profile_file file;
  begin(&file);
  add_sites(&file, 1, 2);
  const std::vector<Site_amount> amounts{
      amount_of(1, 100 * mb, 0xcd), amount_of(1, 50 * mb),
      amount_of(2, 200 * mb), amount_of(9, 10 * mb)};
  EXPECT_EQ(0, file.append(moment_of(1, 700), a_period, amounts));
  const Contents contents = loaded(m_path);
  const Recorded_run &run = *contents.latest;
  const Profile profile = run.profile_of(run.history[0]);
  EXPECT_EQ(start_us + second, profile.time_us);
  EXPECT_EQ(start_us, profile.since_us);
  EXPECT_EQ(sample_bytes, profile.sample_bytes);
  EXPECT_EQ(700 * mb, profile.rss_bytes);
  EXPECT_EQ(1u, profile.dropped_samples);
  EXPECT_EQ(2u, profile.modules.size());
  ASSERT_EQ(3u, profile.sites.size());
  EXPECT_EQ(0u, profile.sites[0].number);
  EXPECT_TRUE(profile.sites[0].addresses.empty());
  EXPECT_EQ(1u, profile.sites[1].number);
  EXPECT_EQ(stack_of(2), profile.sites[2].addresses);
  ASSERT_EQ(4u, profile.entries.size());
  EXPECT_EQ(2u, profile.entries[0].site);
  EXPECT_FALSE(profile.entries[0].digest);
  EXPECT_EQ(200.0 * mb, profile.entries[0].live.bytes);
  EXPECT_EQ(400.0 * mb * mb, profile.entries[0].live.bytes_variance);
  EXPECT_EQ(3u, profile.entries[0].samples);
  EXPECT_EQ(start_us - second, profile.entries[0].median_us);
  ASSERT_TRUE(profile.entries[1].digest);
  EXPECT_EQ(0xcd, (*profile.entries[1].digest)[31]);
  // Entries that are not listed, and those that have no site.
  EXPECT_EQ(0u, profile.entries[3].site);
  EXPECT_NEAR(650.0 * mb, profile.entries[3].live.bytes, 1);
}

TEST_F(Profile_file_test, PeakAndBefore) {
  Profile_file file;
  begin(&file);
  EXPECT_EQ(nullptr, Recorded_run{}.at_peak());
  EXPECT_EQ(nullptr, Recorded_run{}.before_ramp());
  EXPECT_EQ(0, file.append(moment_of(1, 100), a_low, {}));
  {
    const Contents contents = loaded(m_path);
    EXPECT_EQ(Times{1}, times({*contents.latest->at_peak()}));
    EXPECT_EQ(nullptr, contents.latest->before_ramp());
  }
  EXPECT_EQ(0, file.append(moment_of(2, 110), a_period, {}));
  EXPECT_EQ(0, file.append(moment_of(3, 500), high_of(1), {}));
  EXPECT_EQ(0, file.append(moment_of(4, 600), high_of(1), {}));
  EXPECT_EQ(0, file.append(moment_of(5, 610), a_period, {}));
  EXPECT_EQ(0, file.append(moment_of(6, 200), a_low, {}));
  EXPECT_EQ(0, file.append(moment_of(7, 400), high_of(2), {}));
  const auto expect = [this](uint64_t peak, uint64_t before) {
    const Contents contents = loaded(m_path);
    ASSERT_NE(nullptr, contents.latest->at_peak());
    EXPECT_EQ(Times{peak}, times({*contents.latest->at_peak()}));
    ASSERT_NE(nullptr, contents.latest->before_ramp());
    EXPECT_EQ(Times{before}, times({*contents.latest->before_ramp()}));
  };
  expect(4, 1);
  EXPECT_EQ(0, file.append(moment_of(8, 700), high_of(2), {}));
  expect(8, 6);
  // The profiler was switched off and on, in the midst of a ramp.
  EXPECT_EQ(0, file.begin_profile(start_us + 9 * second, 1024, modules));
  EXPECT_EQ(0, file.append(moment_of(10, 750), a_period, {}));
  EXPECT_EQ(0, file.append(moment_of(11, 900), high_of(1), {}));
  expect(11, 10);
}

TEST_F(Profile_file_test, TheMomentBeforeTwoRampsHasItsRowsOnce) {
  Profile_file file;
  begin(&file);
  add_sites(&file, 1, 1);
  const std::vector<Site_amount> amounts{amount_of(1, 300)};
  EXPECT_EQ(0, file.append(moment_of(1, 100), a_low, amounts));
  EXPECT_EQ(0, file.append(moment_of(2, 500), high_of(1), amounts));
  EXPECT_EQ(0, file.append(moment_of(3, 500), high_of(2), amounts));
  const Contents contents = loaded(m_path);
  EXPECT_EQ((Times{1, 1, 2, 3}), times(contents.latest->ramps));
  std::vector<std::pair<uint64_t, std::string>> rows;
  profile_history_rows(
      *contents.latest, 0, [&rows](const Profile_history_row &row) {
        rows.emplace_back((row.time_us - start_us) / second, row.reason);
        return true;
      });
  EXPECT_EQ(
      (decltype(rows){
          {1, "period"}, {1, "before_ramp"}, {2, "new_high"}, {3, "new_high"}}),
      rows);
}

TEST_F(Profile_file_test, TheLastFiveHighsOfARampStay) {
  Profile_file file;
  begin(&file);
  EXPECT_EQ(0, file.append(moment_of(1), a_low, {}));
  for (uint64_t i = 2; i < 14; ++i)
    EXPECT_EQ(0, file.append(moment_of(i, 100 * i), high_of(1), {}));
  EXPECT_EQ((Times{1, 9, 10, 11, 12, 13}), times(loaded(m_path).latest->ramps));
}

TEST_F(Profile_file_test, ANewRampTakesThePlaceOfTheOldestButNotOfTheHighest) {
  Profile_file file;
  begin(&file);
  uint64_t time = 0;
  for (uint32_t ramp = 1; ramp <= 9; ++ramp) {
    EXPECT_EQ(0, file.append(moment_of(++time), a_low, {}));
    for (int i = 0; i < 2; ++i)
      EXPECT_EQ(0, file.append(moment_of(++time, ramp == 2 ? 5000 : 1000),
                               high_of(ramp), {}));
  }
  const Contents contents = loaded(m_path);
  std::vector<uint32_t> ramps;
  for (const Snapshot &snapshot : contents.latest->ramps)
    ramps.push_back(snapshot.ramp);
  EXPECT_EQ((std::vector<uint32_t>{2, 2, 2, 5, 5, 5, 6, 6, 6, 7, 7, 7, 8, 8, 8,
                                   9, 9, 9}),
            ramps);
}

TEST_F(Profile_file_test, TheHistoryIsARing) {
  Profile_file file;
  begin(&file);
  std::vector<Site_amount> amounts;
  for (uint32_t i = 1; i <= 300; ++i) amounts.push_back(amount_of(i, i));
  for (uint64_t i = 0; i < file_history + 7; ++i)
    ASSERT_EQ(0, file.append(moment_of(i), a_period, amounts));
  const Contents contents = loaded(m_path);
  const std::vector<Snapshot> &history = contents.latest->history;
  ASSERT_EQ(file_history, history.size());
  EXPECT_EQ(7u, times(history).front());
  EXPECT_EQ(file_history + 6, times(history).back());
  ASSERT_EQ(history_amounts, history[0].amounts.size());
  EXPECT_EQ(300u, history[0].amounts.front().site);
  EXPECT_EQ(261u, history[0].amounts.back().site);
  EXPECT_EQ(0, file.append(moment_of(9999), high_of(1), amounts));
  EXPECT_EQ(ramp_amounts, loaded(m_path).latest->ramps[0].amounts.size());
}

TEST_F(Profile_file_test, SitesThatNobodyNeedsGiveWay) {
  Profile_file file;
  begin(&file);
  const auto amounts = [](uint32_t first, uint32_t count) {
    std::vector<Site_amount> made;
    for (uint32_t i = first; i < first + count; ++i)
      made.push_back(amount_of(i, 1000));
    return made;
  };
  // Before the ramp, and a high of it.
  add_sites(&file, 1, 256);
  EXPECT_EQ(0, file.append(moment_of(1), a_low, amounts(1, 256)));
  add_sites(&file, 257, 100);
  EXPECT_EQ(0, file.append(moment_of(2), high_of(1), amounts(257, 100)));
  // Far more sites than there is room for.
  uint32_t next = 357;
  for (uint64_t i = 3; i < 40; ++i, next += 100) {
    add_sites(&file, next, 100);
    EXPECT_EQ(0, file.append(moment_of(i), a_period, amounts(next, 100)));
  }
  for (uint32_t i = 1; i < 357; ++i) EXPECT_TRUE(file.has_site(i)) << i;
  EXPECT_FALSE(file.has_site(357));
  EXPECT_TRUE(file.has_site(next - 1));
  Contents contents = loaded(m_path);
  EXPECT_EQ(file_sites, contents.latest->sites.size());
  EXPECT_EQ((Times{1, 2}), times(contents.latest->ramps));
  for (const Snapshot &snapshot : contents.latest->ramps) {
    ASSERT_FALSE(snapshot.amounts.empty());
    const Profile profile = contents.latest->profile_of(snapshot);
    EXPECT_TRUE(std::any_of(profile.sites.begin(), profile.sites.end(),
                            [&snapshot](const Site &site) {
                              return site.number == snapshot.amounts[0].site;
                            }));
  }
  // When ramps need all of them, there is no room, and a new ramp makes some.
  for (uint32_t ramp = 2; ramp <= 3; ++ramp)
    for (uint64_t i = 0; i < file_highs; ++i, next += 256) {
      for (uint32_t j = next; j < next + 256; ++j)
        (void)file.add_site(j, "session", "malloc", stack_of(j));
      EXPECT_EQ(
          0, file.append(moment_of(50 + i), high_of(ramp), amounts(next, 256)));
    }
  EXPECT_EQ(ENOSPC, file.add_site(next, "session", "malloc", stack_of(1)));
  EXPECT_FALSE(file.has_site(next));
  for (uint32_t ramp = 4; ramp <= 8; ++ramp)
    EXPECT_EQ(0, file.append(moment_of(100 + ramp), high_of(ramp), {}));
  EXPECT_EQ(0, file.add_site(next, "session", "malloc", stack_of(1)));
}

TEST_F(Profile_file_test, NumbersBeginAnewWithTheProfiler) {
  Profile_file file;
  begin(&file);
  add_sites(&file, 1, 1);
  const std::vector<Site_amount> amounts{amount_of(1, 1000 * mb)};
  EXPECT_EQ(0, file.append(moment_of(1), a_period, amounts));
  EXPECT_EQ(0, file.begin_profile(start_us + 9 * second, 1024, modules));
  EXPECT_FALSE(file.has_site(1));
  EXPECT_EQ(0, file.add_site(1, "binlog", "malloc", stack_of(55)));
  EXPECT_EQ(0, file.append(moment_of(2), a_period, amounts));
  const Contents contents = loaded(m_path);
  const Recorded_run &run = *contents.latest;
  ASSERT_EQ(2u, run.history.size());
  EXPECT_EQ("session", run.profile_of(run.history[0]).sites[0].pool);
  EXPECT_EQ("binlog", run.profile_of(run.history[1]).sites[0].pool);
  EXPECT_EQ(1024u, run.profile_of(run.history[1]).sample_bytes);
}

TEST_F(Profile_file_test, LongTextsDeepStacksManyModules) {
  Profile_file file;
  begin(&file);
  std::vector<Module> many(300, modules[0]);
  many[0].path = std::string(1000, 'p');
  many[0].build_id = std::string(1000, 'b');
  EXPECT_EQ(0, file.begin_profile(start_us, 1, many));
  const std::vector<uint64_t> deep(200, 0x77);
  EXPECT_EQ(
      0, file.add_site(1, std::string(100, 'x'), std::string(200, 'y'), deep));
  EXPECT_EQ(0, file.add_site(2, "", "", {}));
  EXPECT_EQ(EINVAL, file.add_site(0, "", "", {}));
  EXPECT_EQ(0, file.append(moment_of(1), a_period, {}));
  const Contents contents = loaded(m_path);
  EXPECT_EQ(file_modules, contents.latest->modules.size());
  EXPECT_EQ(std::string(511, 'p'), contents.latest->modules[0].path);
  const auto &sites = contents.latest->sites;
  EXPECT_EQ(std::string(31, 'x'), sites[0].site.pool);
  EXPECT_EQ(std::string(95, 'y'), sites[0].site.route);
  EXPECT_EQ(file_frames, sites[0].site.addresses.size());
  EXPECT_TRUE(sites[1].site.addresses.empty());
  EXPECT_EQ(0, file.begin_profile(start_us, 1, modules));
  EXPECT_EQ(2u, loaded(m_path).latest->modules.size());
}

TEST_F(Profile_file_test, RecordingAllocatesNothing) {
#if !defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "allocations are counted under the address sanitizer";
#endif
  Profile_file file;
  begin(&file);
  std::vector<Site_amount> amounts;
  for (uint32_t i = 1; i <= 600; ++i) amounts.push_back(amount_of(i, i));
  const std::vector<uint64_t> stack = stack_of(1);
  const size_t before = allocations;
  bool is_well = true;
  for (uint32_t i = 1; i <= 600; ++i)
    is_well &= file.add_site(i, "session", "malloc", stack) == 0;
  for (uint32_t i = 1; i <= 100; ++i) {
    is_well &= file.append(moment_of(i), a_low, amounts) == 0;
    is_well &= file.append(moment_of(i), high_of(i), amounts) == 0;
  }
  is_well &= file.begin_profile(start_us + 1, 1, modules) == 0;
  is_well &= truncate(m_path.c_str(), 100) == 0;
  is_well &= file.append(moment_of(1), a_period, amounts) == 0;
  is_well &= file.end(start_us) == 0;
  EXPECT_EQ(before, allocations);
  EXPECT_TRUE(is_well);
  EXPECT_EQ("", load(m_path, 0, std::make_unique<Contents>().get()));
  EXPECT_LT(before, allocations) << "the counter works";
}

TEST_F(Profile_file_test, ASnapshotIsOneWrite) {
  Profile_file file;
  begin(&file);
  EXPECT_EQ(0, file.append(moment_of(1), high_of(1), {}));
  writes = 0;
  EXPECT_EQ(0, file.add_site(1, "", "", {}));
  EXPECT_EQ(0, file.append(moment_of(2), a_period, {}));
  EXPECT_EQ(0, file.append(moment_of(3), high_of(1), {}));
  EXPECT_EQ(3u, writes);
}

TEST_F(Profile_file_test, TheFileIsReservedAndOthersMayNotReadIt) {
  Profile_file file;
  begin(&file);
  struct stat about;
  ASSERT_EQ(0, lstat(m_path.c_str(), &about));
  EXPECT_GE(about.st_blocks * 512, about.st_size);
  EXPECT_GE(18 << 20, about.st_size);
  EXPECT_EQ(0u, about.st_mode & 0137);
  EXPECT_FALSE(std::filesystem::exists(m_path + ".new"));
}

TEST_F(Profile_file_test, ItMayBeRemoved) {
  Profile_file file;
  begin(&file);
  std::filesystem::remove(m_path);
  EXPECT_FALSE(file.has_name(m_path));
  EXPECT_EQ(0, file.append(moment_of(1), a_period, {}));
  Contents contents;
  EXPECT_EQ("", file.read(&contents));
  EXPECT_EQ(Times{1}, times(contents.latest->history));
}

TEST_F(Profile_file_test, ATruncatedOrOverwrittenFileIsMadeAnew) {
  {
    Profile_file other;
    begin(&other);
    add_sites(&other, 1, 5);
    EXPECT_EQ(0, other.append(moment_of(99), a_period, {}));
  }
  const Bytes others = read_file(m_path);
  std::filesystem::remove(m_path);
  Profile_file file;
  begin(&file);
  const std::vector<Site_amount> amounts{amount_of(1, 100)};
  const auto overwrite = [this](const Bytes &bytes) {
    std::fstream opened(m_path,
                        std::ios::in | std::ios::out | std::ios::binary);
    opened.write(reinterpret_cast<const char *>(bytes.data()),
                 static_cast<std::streamsize>(bytes.size()));
  };
  Bytes of_another_build = others;
  of_another_build[8] ^= std::byte{1};
  for (int way = 0; way < 5; ++way) {
    add_sites(&file, 1, 1);
    EXPECT_EQ(0, file.append(moment_of(1), a_period, amounts));
    if (way == 3)
      overwrite(of_another_build);
    else if (way == 4)
      overwrite(Bytes(20000, std::byte{0x5a}));
    else
      ASSERT_EQ(0, truncate(m_path.c_str(), way * 5000));
    Contents contents;
    // Bytes behind the header can be missing without a remark.
    EXPECT_EQ(way == 1 || way == 2, file.read(&contents).empty()) << way;
    EXPECT_FALSE(contents.latest);
    EXPECT_EQ(0, file.append(moment_of(2), a_period, amounts));
    EXPECT_FALSE(file.has_site(1));
    contents = loaded(m_path);
    ASSERT_TRUE(contents.latest) << way;
    EXPECT_EQ(Times{2}, times(contents.latest->history)) << way;
    EXPECT_EQ(2u, contents.latest->modules.size());
    EXPECT_TRUE(contents.latest->sites.empty());
    EXPECT_FALSE(contents.former);
  }
}

TEST_F(Profile_file_test, AFailedWriteIsToldAndTheNextOneWorks) {
  for (const int error : {EIO, ENOSPC, EDQUOT}) {
    std::filesystem::remove(m_path);
    Profile_file file;
    begin(&file);
    const auto fail = [error] { failing_writes = {error, 1}; };
    fail();
    EXPECT_EQ(error, file.add_site(1, "session", "malloc", stack_of(1)));
    EXPECT_FALSE(file.has_site(1));
    add_sites(&file, 1, 1);
    const std::vector<Site_amount> amounts{amount_of(1, 100)};
    fail();
    EXPECT_EQ(error, file.append(moment_of(1), a_low, amounts));
    EXPECT_EQ(0, file.append(moment_of(2), a_low, amounts));
    fail();
    EXPECT_EQ(error, file.append(moment_of(3), high_of(1), amounts));
    EXPECT_EQ(0, file.append(moment_of(4), high_of(1), amounts));
    fail();
    EXPECT_EQ(error, file.append(moment_of(5), high_of(1), amounts));
    fail();
    EXPECT_EQ(error, file.begin_profile(start_us, 1, modules));
    fail();
    EXPECT_EQ(error, file.end(1));
    Contents contents;
    (void)load(m_path, 0, &contents);
    ASSERT_TRUE(contents.latest);
    EXPECT_EQ(Times{2}, times(contents.latest->history));
    // The last bytes of a record are zeros, as they were in the file: one whose
    // last byte failed is whole.
    const Times highs = times(contents.latest->ramps);
    EXPECT_EQ(1, std::count(highs.begin(), highs.end(), 4));
    // A file that is being made anew stays without a header until it is whole.
    ASSERT_EQ(0, truncate(m_path.c_str(), 0));
    fail();
    EXPECT_EQ(error, file.append(moment_of(6), a_period, amounts));
    EXPECT_NE("", load(m_path, 0, &contents));
    EXPECT_EQ(0, file.append(moment_of(7), a_period, amounts));
    EXPECT_EQ(Times{7}, times(loaded(m_path).latest->history));
  }
}

TEST_F(Profile_file_test, AFailedWriteAtTheStartLeavesNoFile) {
  failing_writes = {EIO, 1};
  Profile_file file;
  EXPECT_EQ(EIO, file.open(m_path, {}).error);
  EXPECT_FALSE(file.has_name(m_path));
  EXPECT_FALSE(std::filesystem::exists(m_path));
  EXPECT_FALSE(std::filesystem::exists(m_path + ".new"));
  EXPECT_EQ(EBADF, file.append(moment_of(1), a_period, {}));
  EXPECT_EQ(EBADF, file.add_site(1, "", "", {}));
  EXPECT_EQ(EBADF, file.begin_profile(1, 1, {}));
  EXPECT_EQ(EBADF, file.end(1));
  EXPECT_FALSE(file.has_site(1));
  Contents contents;
  EXPECT_NE("", file.read(&contents));
}

TEST_F(Profile_file_test, WithoutAFolderNothingIsRecorded) {
  const auto expect_error = [](int error, const std::string &path) {
    Profile_file file;
    EXPECT_EQ(error, file.open(path, {}).error) << path;
    EXPECT_FALSE(file.has_name(path));
    EXPECT_EQ(EBADF, file.append(moment_of(1), a_period, {}));
  };
  expect_error(ENOENT, m_tree.at("/none/file"));
  std::filesystem::create_directory(m_path);
  expect_error(EISDIR, m_path);
  EXPECT_FALSE(std::filesystem::exists(m_path + ".new"));
}

TEST_F(Profile_file_test, NoRoomForTheFile) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100000, 100000};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(1);
    Profile_file file;
    if (file.open(m_path, {}).error != EFBIG) _exit(2);
    if (access(m_path.c_str(), F_OK) == 0 ||
        access((m_path + ".new").c_str(), F_OK) == 0)
      _exit(3);
    _exit(0);
  }
  int status;
  ASSERT_EQ(child, waitpid(child, &status, 0));
  EXPECT_EQ(0, status);
}

TEST_F(Profile_file_test, NoLinkIsFollowed) {
  const std::string other = m_tree.at("/other");
  write_file(other, Bytes(100));
  std::filesystem::create_symlink(other, m_path);
  std::filesystem::create_symlink(other, m_path + ".new");
  Contents contents;
  EXPECT_NE(std::string::npos,
            load(m_path, 0, &contents).find("cannot be read"));
  Profile_file file;
  const Profile_file::Opened opened = file.open(m_path, {});
  EXPECT_EQ(0, opened.error);
  EXPECT_NE(std::string::npos, opened.remark.find("cannot be read"));
  EXPECT_TRUE(std::filesystem::is_regular_file(
      std::filesystem::symlink_status(m_path)));
  EXPECT_EQ(100u, std::filesystem::file_size(other));
}

/** A file of two runs, each with sites, a ramp and a history; that many. */
Bytes file_with(const std::string &path, uint32_t count) {
  for (uint64_t run = 0; run < 2; ++run) {
    Profile_file file;
    EXPECT_EQ(0, file.open(path, {start_us, 1, 2}).error);
    EXPECT_EQ(0, file.begin_profile(start_us, sample_bytes, modules));
    std::vector<Site_amount> amounts;
    for (uint32_t i = 1; i <= count; ++i) {
      EXPECT_EQ(0, file.add_site(i, "session", "malloc", stack_of(i)));
      amounts.push_back(amount_of(i, i, static_cast<unsigned char>(i)));
    }
    for (uint32_t i = 1; i <= count; ++i) {
      EXPECT_EQ(0, file.append(moment_of(i), a_low, amounts));
      EXPECT_EQ(0, file.append(moment_of(i), high_of(i), amounts));
    }
  }
  return read_file(path);
}

TEST_F(Profile_file_test, OtherFilesAreNotOurs) {
  Contents contents;
  const auto expect_foreign = [this,
                               &contents](std::span<const std::byte> file) {
    write_file(m_path, file);
    EXPECT_NE("", load(m_path, 0, &contents));
    EXPECT_FALSE(contents.latest || contents.former);
  };
  Bytes ours = file_with(m_path, 3);
  expect_foreign({});
  expect_foreign(Bytes(100));
  expect_foreign(Bytes(100000));
  expect_foreign(std::span{ours}.first(4095));
  // The name, the format, the sizes and numbers of records.
  for (size_t at = 0; at < 52; at += 4) {
    Bytes other(ours.begin(), ours.begin() + 10000);
    other[at] ^= std::byte{1};
    expect_foreign(other);
  }
  ASSERT_EQ(0, truncate(m_path.c_str(), off_t{1} << 32));
  EXPECT_NE(std::string::npos, load(m_path, 0, &contents).find("not a file"));
  Profile_file file;
  const Profile_file::Opened opened = file.open(m_path, {});
  EXPECT_EQ(0, opened.error);
  EXPECT_NE(std::string::npos, opened.remark.find("not a file"));
  std::filesystem::remove(m_path);
  ASSERT_EQ(0, mkfifo(m_path.c_str(), 0600));
  EXPECT_NE(std::string::npos, load(m_path, 0, &contents).find("not a file"));
}

bool is_written(const Bytes &file, const Layout::Record &record) {
  return std::any_of(
      file.begin() + static_cast<ptrdiff_t>(record.offset),
      file.begin() + static_cast<ptrdiff_t>(record.offset + record.size),
      [](std::byte byte) { return byte != std::byte{0}; });
}

size_t records_of(const Contents &contents) {
  size_t count = 0;
  for (const auto *run : {&contents.former, &contents.latest})
    if (*run)
      count += (*run)->modules.size() + (*run)->sites.size() +
               (*run)->ramps.size() + (*run)->history.size();
  return count;
}

TEST_F(Profile_file_test, AHalfWrittenRecordCostsOnlyItself) {
  const Bytes file = file_with(m_path, 2);
  const Layout layout(file);
  Contents whole;
  ASSERT_TRUE(parse(file, &whole));
  EXPECT_EQ(0u, whole.damaged);
  // Modules, sites, before and at the highs, history; of two runs.
  EXPECT_EQ(2u * (2 + 2 + 4 + 2), records_of(whole));
  Bytes torn = file;
  size_t written = 0;
  for (const Layout::Record &record : layout.records) {
    if (!is_written(file, record)) continue;
    ++written;
    std::byte *const at = &torn[record.offset];
    memset(at + record.size / 2, 0x5a, record.size - record.size / 2);
    Contents contents;
    ASSERT_TRUE(parse(torn, &contents));
    EXPECT_EQ(1u, contents.damaged);
    EXPECT_LE(19u, records_of(contents));
    memcpy(at, &file[record.offset], record.size);
  }
  EXPECT_EQ(2u * (1 + 2 + 2 + 4 + 2), written);
}

TEST_F(Profile_file_test, OfAFileThatWasCutShortTheRestIsRead) {
  const Bytes file = file_with(m_path, 2);
  const Layout layout(file);
  size_t last = 0;
  for (const Layout::Record &record : layout.records) {
    if (!is_written(file, record)) continue;
    Contents contents;
    ASSERT_TRUE(parse(std::span{file}.first(record.offset + record.size - 1),
                      &contents));
    EXPECT_EQ(0u, contents.damaged);
    EXPECT_LE(last, records_of(contents));
    last = records_of(contents);
  }
  EXPECT_EQ(19u, last);
}

/** Changes parts of the records that were written, and puts them back. */
class Mutation {
 public:
  Mutation(const Bytes &file, const Layout &layout) : m_file(file) {
    for (const Layout::Record &record : layout.records)
      if (is_written(file, record)) m_records.push_back(record);
    m_mutated = file;
  }
  const Bytes &bytes() const { return m_mutated; }

  void mutate(std::mt19937 *random) {
    const auto below = [random](size_t limit) { return (*random)() % limit; };
    for (size_t changes = 1 + below(8); changes > 0; --changes) {
      const Layout::Record &record = m_records[below(m_records.size())];
      m_changed.push_back(record);
      // Mostly at its beginning, where the numbers are.
      const size_t within =
          below(below(2) ? record.size : std::min<size_t>(record.size, 120));
      const size_t length =
          1 + below(std::min<size_t>(record.size - within, 300));
      std::byte *const at = &m_mutated[record.offset + within];
      switch (below(4)) {
        case 0:
          *at ^= std::byte{1} << below(8);
          break;
        case 1:
          std::generate_n(at, length,
                          [random] { return std::byte((*random)()); });
          break;
        case 2:
          std::fill_n(at, length, below(2) ? std::byte{0xff} : std::byte{0});
          break;
        default: {
          const Layout::Record &from = m_records[below(m_records.size())];
          memcpy(&m_mutated[record.offset], &m_file[from.offset],
                 std::min(record.size, from.size));
        }
      }
    }
  }
  void correct_checksums() {
    for (const Layout::Record &record : m_changed)
      correct_checksum(&m_mutated[record.offset], record.size);
  }
  void undo() {
    for (const Layout::Record &record : m_changed)
      memcpy(&m_mutated[record.offset], &m_file[record.offset], record.size);
    m_changed.clear();
  }

 private:
  const Bytes &m_file;
  Bytes m_mutated;
  std::vector<Layout::Record> m_records;
  std::vector<Layout::Record> m_changed;
};

TEST_F(Profile_file_test, AnyMutationIsSeen) {
  const Bytes file = file_with(m_path, 5);
  Mutation mutation(file, Layout(file));
  std::mt19937 random(20261122);
  size_t damaged = 0;
  for (int i = 0; i < 300; ++i) {
    mutation.mutate(&random);
    Contents contents;
    ASSERT_TRUE(parse(mutation.bytes(), &contents));
    damaged += contents.damaged;
    for (const auto *run : {&contents.former, &contents.latest}) {
      if (!*run) continue;
      for (const auto &[since_us, site] : (*run)->sites)
        ASSERT_EQ(stack_of(site.number), site.addresses) << i;
      for (const auto *snapshots : {&(*run)->ramps, &(*run)->history})
        for (const Snapshot &snapshot : *snapshots)
          for (const Site_amount &amount : snapshot.amounts)
            ASSERT_TRUE(is_same(
                amount, amount_of(amount.site, amount.site,
                                  static_cast<unsigned char>(amount.site))))
                << i;
    }
    show(contents);
    mutation.undo();
  }
  EXPECT_LT(500u, damaged);
}

TEST_F(Profile_file_test, AnyWholeRecordIsHarmless) {
  const Bytes file = file_with(m_path, 5);
  Mutation mutation(file, Layout(file));
  std::mt19937 random(20261123);
  size_t entries = 0;
  for (int i = 0; i < 300; ++i) {
    mutation.mutate(&random);
    mutation.correct_checksums();
    Contents contents;
    ASSERT_TRUE(parse(mutation.bytes(), &contents));
    entries += show(contents);
    if (i % 50 == 0) {
      write_file(m_path, mutation.bytes());
      Profile_file next;
      EXPECT_EQ(0, next.open(m_path, {}).error);
      EXPECT_EQ(0, next.append(moment_of(1), a_period, {}));
      (void)next.read(&contents);
      EXPECT_TRUE(contents.former);
      ASSERT_TRUE(contents.latest);
      EXPECT_EQ(Times{1}, times(contents.latest->history));
    }
    mutation.undo();
  }
  EXPECT_LT(3000u, entries);
}

TEST_F(Profile_file_test, MomentsThatCannotBeShownAreDamage) {
  Profile_file file;
  begin(&file);
  Moment moment = moment_of(1);
  moment.time_us = uint64_t{1} << 31 << 20;
  EXPECT_EQ(0, file.append(moment, a_period, {}));
  EXPECT_EQ(0, file.append(moment_of(2), a_period, {}));
  Contents contents;
  EXPECT_NE("", load(m_path, 0, &contents));
  EXPECT_EQ(1u, contents.damaged);
  EXPECT_EQ(Times{2}, times(contents.latest->history));
}

TEST_F(Profile_file_test, AWriterThatIsKilledLeavesAReadableFile) {
  std::mt19937 random(20261124);
  for (int i = 0; i < 10; ++i) {
    std::filesystem::remove(m_path);
    Profile_file file;
    begin(&file);
    std::vector<Site_amount> amounts;
    for (uint32_t j = 1; j <= 300; ++j) amounts.push_back(amount_of(j, j));
    ASSERT_NO_FATAL_FAILURE(memdiag_test::kill_writer_after(
        1 + random() % 500, [&file, &amounts](uint64_t number) {
          const auto n = static_cast<uint32_t>(number);
          (void)file.add_site(n, "session", "malloc", {});
          (void)file.append(moment_of(n % 1000), a_low, amounts);
          (void)file.append(moment_of(n % 1000), high_of(n / 8 + 1), amounts);
        }));
    Contents contents;
    (void)load(m_path, 0, &contents);
    EXPECT_LE(contents.damaged, 1u);
    ASSERT_TRUE(contents.latest);
    EXPECT_FALSE(contents.latest->ramps.empty());
    show(contents);
  }
}

}  // namespace
}  // namespace memdiag::profile
