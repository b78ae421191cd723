/* Rows of the heap profile's tables. */

#include <gtest/gtest.h>

#include "mysys/memdiag/profiling/profiler.h"
#include "plugin/memdiag/profile/profile_rows.h"

namespace memdiag::profile {
namespace {

constexpr uint64_t second = 1000000;
constexpr uint64_t now = 1000 * second;

Digest digest_of(unsigned char byte) {
  Digest digest{};
  digest[0] = byte;
  return digest;
}

Site site(uint32_t number, const char *pool = "session") {
  Site site;
  site.number = number;
  site.pool = pool;
  site.route = "malloc";
  site.addresses = {number * 16, number * 16 + 1};
  site.allocated_bytes = number * 1000;
  return site;
}

Profile profile_of(std::vector<Site> sites, std::vector<Entry> entries) {
  Profile profile{};
  profile.time_us = now;
  profile.sample_bytes = 1;
  profile.sites = std::move(sites);
  profile.entries = std::move(entries);
  return profile;
}

TEST(ProfileRows, ASiteIsOneRowOverAllDigestsTheLargestFirst) {
  const Profile profile = profile_of(
      {site(1), site(2)},
      {{1, digest_of(1), {100, 1, 4, 1}, 1, now - 5 * second, now - 5 * second},
       {2, digest_of(1), {300, 3, 0, 0}, 3, now - 9 * second, now - 8 * second},
       {2, digest_of(2), {400, 1, 9, 16}, 1, now - second, now - second}});
  const auto rows = profile_rows(profile, {});
  ASSERT_EQ(2u, rows.size());
  EXPECT_EQ(2u, rows[0].stack);
  EXPECT_EQ(700u, rows[0].live_bytes);
  EXPECT_EQ(3u, rows[0].live_bytes_error);
  EXPECT_EQ(4u, rows[0].live_objects);
  EXPECT_EQ(4u, rows[0].live_objects_error);
  EXPECT_EQ(4u, rows[0].samples);
  EXPECT_EQ(2000u, rows[0].allocated_bytes);
  EXPECT_DOUBLE_EQ(9, *rows[0].oldest_s);
  EXPECT_DOUBLE_EQ(8, *rows[0].median_s);
  EXPECT_EQ("02", rows[0].digest->substr(0, 2));
  EXPECT_EQ(1u, rows[1].stack);
  EXPECT_EQ(2u, rows[1].live_bytes_error);
}

TEST(ProfileRows, WhatLivesNoMoreHasNoAge) {
  const auto rows = profile_rows(profile_of({site(1)}, {}), {});
  ASSERT_EQ(1u, rows.size());
  EXPECT_EQ(0u, rows[0].live_bytes);
  EXPECT_EQ(1000u, rows[0].allocated_bytes);
  EXPECT_FALSE(rows[0].oldest_s);
  EXPECT_FALSE(rows[0].median_s);
  EXPECT_FALSE(rows[0].digest);
}

TEST(ProfileRows, TheMedianIsThatOfAllSamplesOfASite) {
  std::vector<Live_sample> samples;
  // Each of another statement, of which none has more samples than another.
  for (const uint64_t age : {50, 1, 3, 40, 2})
    samples.push_back({32, now - age * second, 2, 7,
                       digest_of(static_cast<unsigned char>(age))});
  samples.push_back({32, now - 9 * second, 4, 7, std::nullopt});
  samples.push_back({32, now - 8 * second, 0, 7, std::nullopt});
  Profile profile = profile_of({site(1), site(2), site(3), site(4)}, {});
  set_medians(samples, &profile.sites);
  EXPECT_EQ(0u, profile.sites[0].median_us);
  EXPECT_EQ(now - 3 * second, profile.sites[1].median_us);
  EXPECT_EQ(0u, profile.sites[2].median_us);
  EXPECT_EQ(now - 9 * second, profile.sites[3].median_us);
  for (const uint64_t age : {50, 1, 3, 40, 2})
    profile.entries.push_back({2,
                               digest_of(static_cast<unsigned char>(age)),
                               {32, 1, 0, 0},
                               1,
                               now - age * second,
                               now - age * second});
  const auto rows = profile_rows(profile, {});
  EXPECT_EQ(2u, rows[0].stack);
  EXPECT_DOUBLE_EQ(50, *rows[0].oldest_s);
  EXPECT_DOUBLE_EQ(3, *rows[0].median_s);
}

TEST(ProfileRows, StacksWithoutRoomAreARowWithoutAStack) {
  const auto rows = profile_rows(
      profile_of({}, {{0, std::nullopt, {64, 1, 0, 0}, 1, now, now}}), {});
  ASSERT_EQ(1u, rows.size());
  EXPECT_FALSE(rows[0].stack);
  EXPECT_FALSE(rows[0].pool);
  EXPECT_FALSE(rows[0].frames);
  EXPECT_EQ(64u, rows[0].live_bytes);
}

Samples samples_of(std::vector<Site> sites, std::vector<Live_sample> samples) {
  return {now, 1, std::move(sites), std::move(samples)};
}

TEST(ProfileRows, ASampleHasWhatIsKnownOfItsSite) {
  const Samples samples =
      samples_of({site(3)}, {{32, now - second, 3, 7, digest_of(9)},
                             {48, now, 0, std::nullopt, std::nullopt}});
  const Sample_row first = sample_row(samples, samples.samples[0]);
  EXPECT_EQ(32u, first.bytes);
  EXPECT_DOUBLE_EQ(1, first.age_s);
  EXPECT_EQ(3u, first.stack);
  EXPECT_EQ(7u, first.session);
  EXPECT_EQ("09", first.digest->substr(0, 2));
  EXPECT_EQ("session", first.pool);
  const Sample_row second = sample_row(samples, samples.samples[1]);
  EXPECT_FALSE(second.stack);
  EXPECT_FALSE(second.session);
  EXPECT_FALSE(second.digest);
  EXPECT_FALSE(second.pool);
}

TEST(ProfileRows, AFrameOfAnUnknownModuleHasOnlyItsAddress) {
  const auto rows = stack_rows(profile_of({site(2)}, {}), {});
  ASSERT_EQ(2u, rows.size());
  EXPECT_EQ(2u, rows[0].stack);
  EXPECT_EQ(1u, rows[0].frame);
  EXPECT_EQ("0x20", rows[0].address);
  EXPECT_EQ("0x21", rows[1].address);
  EXPECT_FALSE(rows[0].function);
  EXPECT_FALSE(rows[0].module);
  EXPECT_FALSE(rows[0].line);
}

TEST(ProfileRows, AFrameOfAModuleDoesNotTellWhereTheProcessHasIt) {
  Profile profile = profile_of({site(2)}, {});
  profile.modules = {{"/lib/a.so", "0123ab", 0x10, 0x20, 0x10, 0}};
  const auto rows = stack_rows(profile, Symbols(profile));
  ASSERT_EQ(2u, rows.size());
  EXPECT_FALSE(rows[0].address);
  EXPECT_EQ("/lib/a.so", rows[0].module);
  EXPECT_EQ("0xf", rows[0].module_address);
  EXPECT_EQ("0123ab", rows[0].build_id);
  EXPECT_EQ("0x21", rows[1].address) << "behind the module";
  EXPECT_FALSE(rows[1].module);
}

Bin_row bin(const char *pool, uint64_t size, uint64_t live, uint64_t capacity) {
  Bin_row row{};
  row.pool = pool;
  row.size = size;
  row.slabs = 10;
  row.live_blocks = live;
  row.capacity_blocks = capacity;
  row.waste_bytes = (capacity - live) * size;
  return row;
}

TEST(ProfileRows, OldSamplesOfANearlyEmptyClassPinIt) {
  const Profile profile = profile_of({site(1), site(2), site(3, "innodb")}, {});
  const auto old = now - 2 * old_us;
  const Samples samples =
      samples_of(profile.sites,
                 {// Two arenas' slabs of this class are a fifth full.
                  {64, old, 1, std::nullopt, digest_of(1)},
                  {64, old, 1, std::nullopt, digest_of(1)},
                  {64, old, 2, std::nullopt, std::nullopt},
                  // Too young, another class, a full one, another pool.
                  {64, now - second, 2, std::nullopt, std::nullopt},
                  {96, old, 1, std::nullopt, std::nullopt},
                  {128, old, 1, std::nullopt, std::nullopt},
                  {64, old, 3, std::nullopt, std::nullopt}});
  const std::vector<Bin_row> bins{
      bin("session", 64, 2, 82), bin("session", 64, 18, 18),
      bin("session", 128, 90, 100), bin("innodb", 64, 99, 100)};
  const auto rows = pinned_rows(bins, samples, profile, {});
  ASSERT_EQ(2u, rows.size());
  EXPECT_EQ("session", rows[0].pool);
  EXPECT_EQ(64u, rows[0].size);
  EXPECT_EQ(1u, rows[0].stack);
  EXPECT_EQ(20u, rows[0].slabs);
  EXPECT_DOUBLE_EQ(0.2, rows[0].utilisation);
  EXPECT_EQ(2u, rows[0].objects);
  EXPECT_DOUBLE_EQ(0.1, rows[0].share);
  EXPECT_DOUBLE_EQ(120, rows[0].median_s);
  EXPECT_EQ("01", rows[0].digest->substr(0, 2));
  EXPECT_EQ(2u, rows[1].stack);
  EXPECT_FALSE(rows[1].digest);
}

TEST(ProfileRows, AClassThatCouldNotBeReadIsLeftOut) {
  const Profile profile = profile_of({site(1)}, {});
  const Samples samples = samples_of(
      profile.sites, {{64, now - 2 * old_us, 1, std::nullopt, std::nullopt}});
  Bin_row unknown = bin("session", 64, 1, 100);
  unknown.live_blocks.reset();
  EXPECT_TRUE(pinned_rows(std::vector{unknown}, samples, profile, {}).empty());
}

TEST(DigestRows, TheStackAtThePeakIsOfThisRunOfTheProfiler) {
  const auto begin = [] {
    EXPECT_EQ(0,
              profiling::switch_on({1, profiling::least_memory_bytes}).error);
    return profiling::statement_ended(Digest{}.data()).run;
  };
  const auto row_of = [](uint32_t run, uint32_t site) {
    sessions::Digest_row row{};
    row.peak_stack = {run, site};
    return row;
  };
  const Profile profile = profile_of({site(1), site(2)}, {});
  const uint32_t run = begin();
  // Rows of this run, of none, of one before, and a stack that has come since.
  const std::vector<sessions::Digest_row> digests{
      row_of(run, 2), row_of(run, 0), row_of(run - 1, 2), row_of(run, 3)};
  const auto rows = digest_rows(digests, &profile, {});
  ASSERT_EQ(4u, rows.size());
  EXPECT_EQ(2u, rows[0].peak_site);
  EXPECT_TRUE(rows[0].peak_frames);
  for (size_t i = 1; i < rows.size(); ++i) {
    EXPECT_FALSE(rows[i].peak_site) << i;
    EXPECT_FALSE(rows[i].peak_frames) << i;
  }
  EXPECT_FALSE(digest_rows(digests, nullptr, {})[0].peak_site);
  EXPECT_NE(run, begin());
  EXPECT_FALSE(digest_rows(digests, &profile, {})[0].peak_site);
  profiling::switch_off();
  EXPECT_FALSE(digest_rows(digests, &profile, {})[0].peak_site);
}

}  // namespace
}  // namespace memdiag::profile
