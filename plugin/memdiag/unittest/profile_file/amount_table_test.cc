/* Sums of samples in fixed memory. */

#include "plugin/memdiag/profile_file/amount_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

namespace memdiag::profile {
namespace {

std::vector<Site_amount> sorted(Amount_table *table) {
  const std::span<const Site_amount> rows = table->rows();
  std::vector<Site_amount> all(rows.begin(), rows.end());
  std::sort(all.begin(), all.end(),
            [](const Site_amount &a, const Site_amount &b) {
              return a.bytes < b.bytes;
            });
  return all;
}

TEST(Amount_table, SumsBySiteAndDigest) {
  Amount_table table(10);
  EXPECT_TRUE(table.rows().empty());
  table.add(5, {}, {1000, 10, 9, 4}, 3000);
  table.add(5, {}, {2000, 20, 16, 5}, 1000);
  table.add(5, Digest{7}, {10, 1, 0, 0}, 500);
  table.add(6, {}, {20.6, 2, 0, 0}, 500);
  const auto rows = sorted(&table);
  ASSERT_EQ(3u, rows.size());
  EXPECT_EQ(Digest{7}, rows[0].digest);
  EXPECT_EQ(21u, rows[1].bytes);
  const Site_amount &row = rows[2];
  EXPECT_EQ(5u, row.site);
  EXPECT_EQ(2u, row.samples);
  EXPECT_EQ(Digest{}, row.digest);
  EXPECT_EQ(3000u, row.bytes);
  EXPECT_EQ(30u, row.objects);
  EXPECT_EQ(5u, row.bytes_error);
  EXPECT_EQ(3u, row.objects_error);
  EXPECT_EQ(1000u, row.oldest_us);
  EXPECT_EQ(2000u, row.median_us);
  EXPECT_DOUBLE_EQ(3030.6, table.total().bytes);
  table.clear();
  EXPECT_TRUE(table.rows().empty());
  EXPECT_EQ(0, table.total().bytes);
}

TEST(Amount_table, WhatFindsNoRoomCountsForSite0) {
  Amount_table table(3);
  for (uint32_t site = 1; site <= 5; ++site)
    table.add(site, {}, {100, 1, 0, 0}, site);
  table.add(1, {}, {1000, 1, 0, 0}, 1);
  table.add(0, {}, {1, 1, 0, 0}, 1);
  const auto rows = sorted(&table);
  ASSERT_EQ(4u, rows.size());
  EXPECT_EQ(0u, rows[2].site);
  EXPECT_EQ(201u, rows[2].bytes);
  EXPECT_EQ(1u, rows[3].site);
  EXPECT_EQ(1100u, rows[3].bytes);
}

TEST(Amount_table, ManyPairs) {
  std::mt19937 random(20261122);
  Amount_table table(5000);
  std::map<std::pair<uint32_t, Digest>, double> expected;
  const Site_amount *const memory = table.rows().data();
  for (int i = 0; i < 50000; ++i) {
    const auto site = static_cast<uint32_t>(1 + random() % 500);
    const Digest digest{static_cast<unsigned char>(random() % 10)};
    table.add(site, digest, {static_cast<double>(i), 1, 0, 0}, 1);
    expected[{site, digest}] += i;
  }
  const auto rows = table.rows();
  EXPECT_EQ(expected.size(), rows.size());
  EXPECT_EQ(memory, rows.data()) << "it was allocated before";
  for (const Site_amount &row : rows)
    EXPECT_EQ((expected[{row.site, row.digest}]),
              static_cast<double>(row.bytes));
}

/** A large block is one sample, and may come last. */
TEST(Amount_table, OneHeavyLateSampleKeepsItsSiteAndDigest) {
  constexpr double heavy = 4e9;
  for (const uint32_t pairs : {4000u, 5000u, 20000u}) {
    Amount_table table(4096);
    for (uint32_t i = 0; i < pairs; ++i)
      table.add(1 + i, Digest{static_cast<unsigned char>(i)},
                {5e5 + i % 1000, 1, 0, 0}, 1);
    table.add(77777, Digest{77}, {heavy, 1, 0, 0}, 1);
    const auto rows = sorted(&table);
    const auto found =
        std::find_if(rows.begin(), rows.end(),
                     [](const Site_amount &row) { return row.site == 77777; });
    ASSERT_NE(rows.end(), found) << pairs;
    EXPECT_EQ(Digest{77}, found->digest);
    EXPECT_EQ(heavy, static_cast<double>(found->bytes));
    double sum = 0;
    for (const Site_amount &row : rows) sum += static_cast<double>(row.bytes);
    EXPECT_DOUBLE_EQ(table.total().bytes, sum);
  }
}

/** More digests than there is room for: the stacks have their whole sums. */
TEST(Amount_table, DigestsAreLostBeforeSites) {
  std::mt19937 random(20261127);
  Amount_table table(1000);
  std::map<uint32_t, double> expected;
  std::map<uint32_t, double> found;
  for (int i = 0; i < 100000; ++i) {
    const auto site = static_cast<uint32_t>(1 + random() % 200);
    const Digest digest{static_cast<unsigned char>(random()),
                        static_cast<unsigned char>(random())};
    const double bytes = 1000 + static_cast<double>(random() % 1000);
    table.add(site, digest, {bytes, 1, 0, 0}, 1);
    expected[site] += bytes;
  }
  for (const Site_amount &row : table.rows())
    found[row.site] += static_cast<double>(row.bytes);
  EXPECT_EQ(expected, found);
}

}  // namespace
}  // namespace memdiag::profile
