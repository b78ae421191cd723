/*
  The collector without the server: what a snapshot adds up to, while other
  threads allocate and purge, and what a failed read looks like.
*/

#include "plugin/memdiag/allocator/allocator_snapshot.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "mysys/memdiag/base/interruption.h"
#include "mysys/memdiag/jemalloc/mallctl.h"
#include "mysys/memdiag/pools/arenas.h"
#include "mysys/memdiag/pools/pools.h"
#include "mysys/memdiag/purging/purge.h"
#include "mysys/memdiag/unittest/stopped_in_malloc.h"
#include "plugin/memdiag/allocator/preload.h"
#include "plugin/memdiag/tables/allocator_tables.h"
#include "plugin/memdiag/tables/purge_receipt.h"
#include "plugin/memdiag/tables/status_variables.h"
#include "plugin/memdiag/unittest/snapshots.h"

namespace memdiag {
namespace {

constexpr size_t query_pool = static_cast<size_t>(Pool::fts_query);

Reading sum_of_pools(const Snapshot &snapshot, Reading Pool_row::*member) {
  uint64_t sum = 0;
  for (const Pool_row &pool : snapshot.pools) {
    if (!(pool.*member)) return std::nullopt;
    sum += *(pool.*member);
  }
  return sum;
}

void expect_consistent(const Snapshot &snapshot) {
  const Allocator_row &total = snapshot.allocator;
  ASSERT_TRUE(snapshot.failed.empty())
      << mallctl::name(snapshot.failed[0].ctl) << ": "
      << strerror(snapshot.failed[0].error);
  ASSERT_FALSE(snapshot.mixed_moments);
  EXPECT_EQ(sum_of_pools(snapshot, &Pool_row::live_bytes),
            total.allocated_bytes);
  for (const Pool_row &pool : snapshot.pools) {
    EXPECT_EQ(*pool.held_bytes + pool.cached_bytes.value_or(0), pool.live_bytes)
        << pool.name;
    if (pool.peak_bytes) {
      EXPECT_GE(pool.peak_bytes, pool.held_bytes) << pool.name;
    }
  }
  EXPECT_EQ(sum_of_pools(snapshot, &Pool_row::active_bytes),
            total.active_bytes);
  EXPECT_EQ(sum_of_pools(snapshot, &Pool_row::metadata_bytes),
            total.metadata_bytes);
  EXPECT_EQ(sum_of_pools(snapshot, &Pool_row::resident_bytes),
            total.resident_bytes);
  EXPECT_EQ(sum_of_pools(snapshot, &Pool_row::mapped_bytes),
            total.mapped_bytes);
  EXPECT_EQ(sum_of_pools(snapshot, &Pool_row::retained_bytes),
            total.retained_bytes);
  EXPECT_EQ(sum_of_pools(snapshot, &Pool_row::arenas), total.arenas);
  EXPECT_EQ(snapshot.arenas.size(), total.arenas);
}

TEST(Snapshot, ArenasAddUpToPoolsAndPoolsToTheTotals) {
  const Snapshot snapshot = take_snapshot();
  expect_consistent(snapshot);
  // Nothing else runs here; under load these two can cross.
  const Allocator_row &total = snapshot.allocator;
  EXPECT_GE(total.active_bytes, total.allocated_bytes);
  EXPECT_GE(total.resident_bytes, total.active_bytes);
  EXPECT_EQ(total.fragmentation_bytes.value(),
            total.active_bytes.value() - total.allocated_bytes.value());
  EXPECT_GE(total.fragmentation_ratio.value(), 1);
}

TEST(Snapshot, AddsUpWhileOthersAllocateAndPurge) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&stop] {
      while (!stop) {
        for (const size_t size : {100, 5000, 300000}) {
          void *const block = pools::allocate(Pool::fts_query, size);
          pools::free(Pool::fts_query, block, size);
          free(malloc(size));
        }
      }
    });
  // At most two refreshes fall into a snapshot, so that one of its attempts
  // succeeds.
  Refreshing_thread other(Pool::fts_query);
  for (int i = 0; i < 100; ++i) {
    other.refresh_once();
    expect_consistent(take_snapshot());
  }
  stop = true;
  for (std::thread &thread : threads) thread.join();
}

/** Refreshes the statistics while this thread takes a snapshot, as another
thread might. A block comes with the first refresh, after the snapshot has read
the totals and before it reads the arenas. */
class Refresher {
 public:
  /** @param most  refreshes */
  explicit Refresher(unsigned most) : m_most(most) {}
  ~Refresher() {
    for (void *const block : m_blocks)
      pools::free(Pool::fts_query, block, block_size);
  }
  Refresher(const Refresher &) = delete;
  Refresher &operator=(const Refresher &) = delete;

  unsigned refreshes() const { return m_refreshes; }

 private:
  static constexpr size_t block_size = 1 << 20;

  /** Called before each arena. */
  static bool refresh(const void *context) {
    auto *const self =
        const_cast<Refresher *>(static_cast<const Refresher *>(context));
    if (self->m_refreshes == self->m_most) return false;
    if (self->m_refreshes == 0)
      self->m_blocks.push_back(pools::allocate(Pool::fts_query, block_size));
    EXPECT_EQ(0, mallctl::refresh());
    ++self->m_refreshes;
    return false;
  }

  const unsigned m_most;
  unsigned m_refreshes{0};
  /** The first one makes the arena. */
  std::vector<void *> m_blocks{pools::allocate(Pool::fts_query, block_size)};
  const Interruptible m_read{refresh, this};
};

TEST(Snapshot, IsTakenAgainIfOthersRefreshMeanwhile) {
  Refresher refresher(1);
  expect_consistent(take_snapshot());
  EXPECT_EQ(1u, refresher.refreshes());
}

TEST(Snapshot, SaysThatOthersRefreshedAgainAndAgain) {
  Refresher refresher(UINT_MAX);
  EXPECT_TRUE(take_snapshot().mixed_moments);
}

TEST(Snapshot, AReaderHoldsNobodyInMalloc) {
  EXPECT_TRUE(memdiag_test::others_go_on([] { (void)take_snapshot(); },
                                         [] { (void)take_snapshot(); }));
}

TEST(Snapshot, ShowsABlockOfAPoolInThatPool) {
  constexpr size_t size = 1 << 20;
  const Snapshot before = take_snapshot();
  void *const block = pools::allocate(Pool::fts_query, size);
  const Snapshot during = take_snapshot();
  pools::free(Pool::fts_query, block, size);
  const Snapshot after = take_snapshot();

  const auto live = [](const Snapshot &snapshot) {
    return snapshot.pools[query_pool].live_bytes.value();
  };
  EXPECT_EQ(live(during), live(before) + size);
  EXPECT_EQ(live(after), live(before));
  EXPECT_EQ(during.pools[query_pool].allocations.value(),
            before.pools[query_pool].allocations.value() + 1);
  EXPECT_EQ(after.pools[query_pool].frees.value(),
            before.pools[query_pool].frees.value() + 1);
  EXPECT_GE(during.pools[query_pool].peak_bytes.value(), size);
  EXPECT_TRUE(during.pools[query_pool].peak_time.has_value());
  EXPECT_EQ(during.pools[query_pool].dirty_decay_ms.value(),
            spec_of(Pool::fts_query).dirty_decay_ms);
}

TEST(Snapshot, FailedReadIsEmptyAndNamed) {
  const Failing_reads failing(Ctl::stats_resident);
  const Snapshot snapshot = take_snapshot();
  EXPECT_FALSE(snapshot.allocator.resident_bytes.has_value());
  EXPECT_TRUE(snapshot.allocator.active_bytes.has_value());
  ASSERT_EQ(snapshot.failed.size(), 1u);
  EXPECT_EQ(snapshot.failed[0].ctl, Ctl::stats_resident);
  EXPECT_EQ(snapshot.failed[0].error, EIO);
  EXPECT_EQ(snapshot.failed[0].times, 1u);
}

TEST(Snapshot, SumWithAFailedPartIsEmpty) {
  const Failing_reads failing(Ctl::stats_arena_pdirty);
  const Snapshot snapshot = take_snapshot();
  EXPECT_FALSE(snapshot.allocator.dirty_bytes.has_value());
  const Pool_row &general = snapshot.pools[static_cast<size_t>(Pool::general)];
  EXPECT_FALSE(general.dirty_bytes.has_value());
  EXPECT_TRUE(general.live_bytes.has_value());
  ASSERT_EQ(snapshot.failed.size(), 1u);
  EXPECT_EQ(snapshot.failed[0].times, snapshot.arenas.size());
}

TEST(Snapshot, UnknownArenasMakeNoZeros) {
  for (const Ctl ctl : {Ctl::arenas_narenas, Ctl::arena_initialized}) {
    const Failing_reads failing(ctl);
    const Snapshot snapshot = take_snapshot();
    EXPECT_FALSE(snapshot.allocator.arenas.has_value());
    EXPECT_FALSE(snapshot.allocator.dirty_bytes.has_value());
    for (const Pool_row &pool : snapshot.pools) {
      EXPECT_FALSE(pool.live_bytes.has_value());
      EXPECT_FALSE(pool.arenas.has_value());
    }
  }
}

template <const auto &table>
size_t empty_cells(const auto &rows) {
  size_t count = 0;
  for (const auto &row : rows)
    for (const auto &column : table.columns)
      if (std::holds_alternative<std::monostate>(column.value(row))) ++count;
  return count;
}

/** Without the cells that large blocks and extents never have. */
size_t empty_cells_of_classes(const Snapshot &snapshot) {
  const auto rows = size_class_rows(snapshot);
  size_t count = empty_cells<size_classes_table>(rows);
  for (const Size_class_row &row : rows) {
    const std::string kind = row.kind;
    count -= kind == "small" ? 0 : kind == "large" ? 9 : 12;
  }
  return count;
}

TEST(SizeClassRows, UnusedExtentsOfEachKindHaveTheirRow) {
  Snapshot snapshot;
  Extents_row of{};
  of.min_size = 4096;
  of.max_size = 8192;
  of.dirty_extents = 1, of.dirty_bytes = 10;
  of.muzzy_extents = 2, of.muzzy_bytes = 20;
  of.retained_extents = 0, of.retained_bytes = 0;
  snapshot.extents.push_back(of);
  of.muzzy_extents = std::nullopt, of.muzzy_bytes = std::nullopt;
  of.dirty_extents = 0, of.retained_extents = 3, of.retained_bytes = 30;
  snapshot.extents.push_back(of);
  std::string found;
  for (const Size_class_row &row : size_class_rows(snapshot))
    found += std::string(row.kind) + ' ' +
             (row.blocks ? std::to_string(*row.blocks) : "?") + ' ' +
             (row.bytes ? std::to_string(*row.bytes) : "?") + '\n';
  EXPECT_EQ("dirty 1 10\nmuzzy 2 20\nmuzzy ? ?\nretained 3 30\n", found);
}

size_t empty_cells_of_all(const Snapshot &snapshot) {
  return empty_cells<allocator_table>(rows_of<Allocator_row>(snapshot)) +
         empty_cells<pools_table>(snapshot.pools) +
         empty_cells<arenas_table>(snapshot.arenas) +
         empty_cells_of_classes(snapshot);
}

/** Not read when it is known to be 0: of extents that an arena has none of. */
bool is_read_by_need(const std::string &name) {
  return name.find(".extents.") != name.npos;
}

TEST(Snapshot, EveryStatisticThatFailsEmptiesACell) {
  for (size_t i = 0; i < static_cast<size_t>(Ctl::count); ++i) {
    const Ctl ctl = static_cast<Ctl>(i);
    const std::string name = mallctl::name(ctl);
    if (!name.starts_with("stats.") && !name.starts_with("opt.")) continue;
    // A decay that falls between two snapshots fills cells of its pool. Then
    // the one before and the one after have different counts.
    Snapshot snapshot;
    size_t before, after;
    do {
      before = empty_cells_of_all(take_snapshot(all_details));
      {
        const Failing_reads failing(ctl);
        snapshot = take_snapshot(all_details);
      }
      after = empty_cells_of_all(take_snapshot(all_details));
    } while (before != after);
    if (snapshot.failed.empty() && is_read_by_need(name)) continue;
    ASSERT_EQ(snapshot.failed.size(), 1u) << name;
    EXPECT_EQ(snapshot.failed[0].ctl, ctl) << name;
    EXPECT_GT(empty_cells_of_all(snapshot), before) << name;
  }
}

TEST(Status, VariableOfAFailedReadIsEmpty) {
  const Failing_reads failing(Ctl::stats_allocated);
  const Snapshot snapshot = take_snapshot();
  EXPECT_STREQ(status_variables[0].name, "Memdiag_allocated_bytes");
  EXPECT_FALSE(status_variables[0].value(snapshot).has_value());
  EXPECT_TRUE(status_variables[1].value(snapshot).has_value());
}

TEST(Snapshot, OptionsAreThoseInForce) {
  const Snapshot snapshot = take_snapshot();
  ASSERT_TRUE(snapshot.allocator.options.has_value());
  const std::string options = "," + *snapshot.allocator.options + ",";
  for (const std::string name : {"background_thread", "dirty_decay_ms",
                                 "muzzy_decay_ms", "narenas", "tcache"})
    EXPECT_NE(options.find("," + name + ":"), std::string::npos) << options;
  const ssize_t decay = mallctl::read<Ctl::opt_dirty_decay_ms>().value();
  EXPECT_NE(options.find(",dirty_decay_ms:" + std::to_string(decay) + ","),
            std::string::npos)
      << options;
}

TEST(Preload, NoOtherAllocatorHere) { EXPECT_EQ(other_allocators(), ""); }

TEST(Receipt, IsJson) {
  EXPECT_EQ(to_json("fts_query", purging::Receipt{300, 100, 7, 2, 0, 900, 700}),
            "{\"pool\":\"fts_query\",\"rss_bytes_before\":900,"
            "\"rss_bytes_after\":700,\"released_bytes\":200,"
            "\"microseconds\":7,\"arenas\":2}");
}

TEST(Receipt, GrowthIsNoRelease) {
  EXPECT_NE(to_json("all", purging::Receipt{100, 300, 7, 2, 0, 9, 8})
                .find("\"released_bytes\":0,"),
            std::string::npos);
}

TEST(Receipt, SizesThatWereNotReadAreNull) {
  const std::string json =
      to_json("all", purging::Receipt{100, 0, 7, 2, EFAULT, 9, 8});
  EXPECT_NE(json.find("\"rss_bytes_before\":null,"), std::string::npos);
  EXPECT_NE(json.find("\"rss_bytes_after\":null,"), std::string::npos);
  EXPECT_NE(json.find("\"released_bytes\":null,"), std::string::npos);
}

}  // namespace
}  // namespace memdiag
