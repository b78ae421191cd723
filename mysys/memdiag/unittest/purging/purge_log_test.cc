/* The log of purges: what is in it, and what gives way. */

#include "mysys/memdiag/purging/purge_log.h"

#include <atomic>
#include <cerrno>
#include <string_view>
#include <thread>

#include "mysys/memdiag/purging/policies.h"
#include "mysys/memdiag/unittest/purging/lone_purger.h"
#include "mysys/memdiag/unittest/test.h"

namespace memdiag_test {

using memdiag::Purge_reason;
using purging::Receipt;
using std::string_view;
namespace purge_log = memdiag::purge_log;

/** Unused pages, of blocks that came and went. */
void make_dirty(unsigned megabytes) {
  stay_on_this_cpu();
  std::vector<Block> blocks;
  for (unsigned i = 0; i < megabytes; ++i)
    blocks.push_back(Block::make(1 << 20, 1));
  for (const Block &block : blocks) block.free();
}

FRESH_TEST(PurgeLog, ARowForEachPurge) {
  EXPECT_TRUE(purge_log::all().empty());
  EXPECT_FALSE(purge_log::last_of(pool));
  leave_pages_to_purges();
  make_dirty(8);
  const uint64_t start = now_us();
  const Receipt receipt = purging::purge(pool);
  const auto rows = purge_log::all();
  ASSERT_EQ(1u, rows.size());
  EXPECT_EQ(1u, rows[0].sequence);
  EXPECT_GE(rows[0].time_us, start + receipt.duration_us);
  EXPECT_LE(rows[0].time_us, now_us());
  EXPECT_STREQ("fts_query", rows[0].pool);
  EXPECT_STREQ("asked", rows[0].reason);
  EXPECT_EQ(receipt.rss_before_bytes, rows[0].rss_before_bytes);
  EXPECT_EQ(receipt.rss_after_bytes, rows[0].rss_after_bytes);
  EXPECT_EQ(receipt.released_bytes(), rows[0].released_bytes);
  EXPECT_LE(8u << 20, receipt.given_back_bytes());
  // Kernels before 6.17 are a little behind.
  EXPECT_LE(4u << 20, rows[0].released_bytes);
  EXPECT_EQ(receipt.duration_us, rows[0].duration_us);
  EXPECT_FALSE(rows[0].refaulted_bytes);
  EXPECT_FALSE(rows[0].error);

  EXPECT_EQ(0, purging::purge_all(Purge_reason::pressure).error);
  const auto more = purge_log::all();
  ASSERT_EQ(1 + memdiag::pool_count, more.size());
  for (size_t i = 0; i < memdiag::pool_count; ++i) {
    EXPECT_EQ(i + 2, more[i + 1].sequence);
    EXPECT_STREQ(memdiag::pool_specs[i].name, more[i + 1].pool);
    EXPECT_STREQ("pressure", more[i + 1].reason);
  }
  EXPECT_EQ(more.size(), purge_log::last_of(Pool::innodb)->sequence);
}

FRESH_TEST(PurgeLog, AFailedPurgeHasNoSizes) {
  purge_log::add(
      {7, pool, Purge_reason::asked, Receipt{9, 5, 3, 1, EFAULT, 9, 5}});
  const auto rows = purge_log::all();
  ASSERT_EQ(1u, rows.size());
  EXPECT_EQ(EFAULT, rows[0].error);
  EXPECT_FALSE(rows[0].rss_before_bytes);
  EXPECT_FALSE(rows[0].rss_after_bytes);
  EXPECT_FALSE(rows[0].released_bytes);
  EXPECT_EQ(3u, rows[0].duration_us);
}

TEST(PurgeLog, GrowthIsNoRelease) {
  EXPECT_EQ(0u, (Receipt{5, 9, 0, 0, 0}.given_back_bytes()));
  EXPECT_EQ(0u, (Receipt{5, 9, 0, 0, 0, 90, 80}.released_bytes()));
}

TEST(PurgeLog, WhatIsReleasedHasLeftRss) {
  EXPECT_EQ(7u, (Receipt{300, 100, 0, 0, 0, 60, 53}.released_bytes()));
  EXPECT_EQ(0u, (Receipt{300, 100, 0, 0, 0, 60, 61}.released_bytes()));
  // The rest of the fall is not the purge's.
  EXPECT_EQ(200u, (Receipt{300, 100, 0, 0, 0, 900, 400}.released_bytes()));
  EXPECT_EQ(200u, (Receipt{300, 100, 0, 0, 0}.released_bytes()))
      << "RSS is not known";
}

FRESH_TEST(PurgeLog, TheOldestGiveWay) {
  constexpr uint64_t count = 2 * purge_log::max_purges + 10;
  (void)purging::purge(Pool::ddl);
  for (uint64_t i = 2; i <= count; ++i)
    purge_log::add({i, pool, Purge_reason::quiet, Receipt{0, 0, i, 0, 0}});
  const auto rows = purge_log::all();
  ASSERT_EQ(purge_log::max_purges, rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(count - rows.size() + 1 + i, rows[i].sequence);
    EXPECT_EQ(rows[i].sequence, rows[i].duration_us);
  }
  EXPECT_FALSE(purge_log::last_of(Pool::ddl));
  EXPECT_EQ(count, purge_log::last_of(pool)->sequence);
  // An entry that is gone takes no note any more.
  purge_log::note_refault(count - purge_log::max_purges, 1);
  purge_log::note_refault(count, 2);
  const auto noted = purge_log::all();
  EXPECT_FALSE(noted.front().refaulted_bytes);
  EXPECT_EQ(2u, noted.back().refaulted_bytes);
}

FRESH_TEST(PurgeLog, ReadWhilePurgesGoOn) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (const Pool each : {Pool::fts_query, Pool::session, Pool::general})
    threads.emplace_back([each, &stop] {
      while (!stop) (void)purging::purge(each);
    });
  uint64_t last = 0;
  for (int i = 0; i < 500 || last < 100; ++i) {
    const auto rows = purge_log::all();
    for (size_t row = 1; row < rows.size(); ++row)
      ASSERT_EQ(rows[row - 1].sequence + 1, rows[row].sequence);
    if (rows.empty()) continue;
    ASSERT_GE(rows.back().sequence, last);
    last = rows.back().sequence;
  }
  stop = true;
  for (std::thread &thread : threads) thread.join();
  uint64_t purges = 0;
  for (size_t i = 0; i < memdiag::pool_count; ++i)
    purges += purging::counters(static_cast<Pool>(i)).purges;
  EXPECT_EQ(purges, purge_log::all().back().sequence);
}

FRESH_TEST(PurgeLog, AChildOfAForkGoesOn) {
  std::atomic<bool> stop{false};
  std::thread purger([&stop] {
    while (!stop) {
      (void)purging::purge(pool);
      (void)purge_log::last_of(pool);
    }
  });
  for (int i = 0; i < 50; ++i)
    EXPECT_EQ(
        0, in_child([] {
          const auto before = purge_log::last_of(pool);
          if (purging::purge(pool).error != 0) return 1;
          const auto after = purge_log::last_of(pool);
          return after->sequence == (before ? before->sequence : 0) + 1 ? 0 : 2;
        }));
  stop = true;
  purger.join();
}

FRESH_TEST(PurgeLog, QuickPurgesAreJudgedByTheNextOne) {
  leave_pages_to_purges();
  make_dirty(12);
  (void)purging::purge(pool);
  std::vector<Block> again;
  for (int i = 0; i < 5; ++i) again.push_back(Block::make(1 << 20, 2));
  (void)purging::purge(pool);
  for (const Block &block : again) block.free();
  (void)purging::purge(pool);
  const auto rows = purge_log::all();
  ASSERT_EQ(3u, rows.size());
  EXPECT_LE(std::min<uint64_t>(5 << 20, *rows[0].released_bytes),
            rows[0].refaulted_bytes);
  EXPECT_GE(7u << 20, rows[0].refaulted_bytes);
  EXPECT_EQ(0u, rows[1].refaulted_bytes);
  EXPECT_FALSE(rows[2].refaulted_bytes);
  purge_log::note_refault(rows[0].sequence, 1);
  EXPECT_EQ(rows[0].refaulted_bytes, purge_log::all()[0].refaulted_bytes);
}

FRESH_TEST(PurgeLog, SaysWhyAndWhatWasWantedAgain) {
  Lone_purger watch;
  const auto ticks = [&watch](unsigned count) {
    for (unsigned i = 0; i < count; ++i) watch.tick();
  };
  make_dirty(16);
  ticks(6);
  const auto quiet = purge_log::all().back();
  EXPECT_STREQ("fts_query", quiet.pool);
  EXPECT_STREQ("quiet", quiet.reason);
  EXPECT_GE(purge_log::last_of(pool)->receipt.given_back_bytes(),
            uint64_t{16} << 20);
  EXPECT_FALSE(quiet.refaulted_bytes);
  ticks(11);  // a second later it is known
  EXPECT_EQ(quiet.sequence, purge_log::all().back().sequence);
  EXPECT_EQ(0u, purge_log::all().back().refaulted_bytes);

  // 5 MB of 12 are taken again, after a purge that a user asked for; that
  // teaches the purger nothing.
  EXPECT_EQ("", memdiag::policies::set(memdiag::Policy::quiet_ms, "all=0"));
  make_dirty(12);
  const auto before = purging::counters(pool);
  ASSERT_LE(12u << 20, purging::purge(pool).given_back_bytes());
  std::vector<Block> again;
  for (int i = 0; i < 5; ++i) again.push_back(Block::make(1 << 20, 2));
  ticks(11);
  EXPECT_EQ(quiet.sequence + 1, purge_log::all().back().sequence);
  // Pages are counted. jemalloc puts one of padding behind each block, and may
  // take the next larger size of pages, a quarter more.
  const auto refaulted_bytes = purge_log::all().back().refaulted_bytes;
  EXPECT_LE(5u << 20, refaulted_bytes);
  EXPECT_GE(7u << 20, refaulted_bytes);
  for (const Block &block : again) block.free();
  EXPECT_EQ(before.refaulted_bytes, purging::counters(pool).refaulted_bytes);
  EXPECT_EQ(1u, purging::backoff(pool));

  EXPECT_EQ("", memdiag::policies::set(memdiag::Policy::dirty_limit, "all=4M"));
  make_dirty(16);
  ticks(1);
  EXPECT_STREQ("dirty_limit", purge_log::all().back().reason);
}

}  // namespace memdiag_test
