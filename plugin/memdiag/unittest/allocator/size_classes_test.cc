/*
  The collectors of size classes without the server: what adds up, what a block
  changes, what a failed read looks like.
*/

#include "plugin/memdiag/allocator/size_classes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <set>
#include <string_view>
#include <thread>
#include <vector>

#include "mysys/memdiag/jemalloc/mallctl.h"
#include "mysys/memdiag/pools/arenas.h"
#include "mysys/memdiag/pools/pools.h"
#include "plugin/memdiag/allocator/allocator_snapshot.h"
#include "plugin/memdiag/unittest/snapshots.h"

namespace memdiag {
namespace {

/** Its blocks are not cached: each that comes or goes is counted at once. */
constexpr Pool pool = Pool::fts_query;
static_assert(spec_of(pool).cached_max == 0);
/** No other test here uses it. */
constexpr Pool fresh_pool = Pool::ddl;
static_assert(spec_of(fresh_pool).cached_max == 0);

/** Blocks of a pool, freed in the end. */
class Blocks {
 public:
  Blocks(Pool of, size_t size, int count) : m_pool(of), m_size(size) {
    for (int i = 0; i < count; ++i)
      m_blocks.push_back(pools::allocate(of, size));
  }
  ~Blocks() {
    for (void *const block : m_blocks) pools::free(m_pool, block, m_size);
  }

 private:
  Pool m_pool;
  size_t m_size;
  std::vector<void *> m_blocks;
};

/** Sum of a column over the rows that are wanted. */
uint64_t sum_of(const auto &rows, auto column, auto &&wanted) {
  uint64_t sum = 0;
  for (const auto &row : rows)
    if (wanted(row)) sum += (row.*column).value();
  return sum;
}

auto in(Pool wanted) {
  // Each file may have the name for itself: the sanitizer keeps them apart.
  return [name = std::string_view{spec_of(wanted).name}](const auto &row) {
    return row.pool == name;
  };
}

auto in(const Arena_id &wanted) {
  return [wanted](const auto &row) { return row.arena == wanted.arena; };
}

/** The same over small and large blocks. */
uint64_t sum_of(const Snapshot &snapshot, Reading Bin_row::*of_bins,
                Reading Large_row::*of_large, auto &&wanted) {
  return sum_of(snapshot.bins, of_bins, wanted) +
         sum_of(snapshot.large, of_large, wanted);
}

/** Blocks of an arena, in all of its size classes. */
void expect_blocks_add_up(const Snapshot &snapshot) {
  ASSERT_TRUE(snapshot.failed.empty());
  ASSERT_FALSE(snapshot.mixed_moments);
  const auto expect_sums = [&snapshot](const Arena_figures &of, auto &&wanted) {
    EXPECT_EQ(of.live_bytes, sum_of(snapshot, &Bin_row::live_bytes,
                                    &Large_row::live_bytes, wanted));
    EXPECT_EQ(of.allocations, sum_of(snapshot, &Bin_row::allocations,
                                     &Large_row::allocations, wanted));
    EXPECT_EQ(of.frees,
              sum_of(snapshot, &Bin_row::frees, &Large_row::frees, wanted));
  };
  for (const Arena_row &row : snapshot.arenas) {
    SCOPED_TRACE(*row.name);
    expect_sums(row, in(row));
  }
  for (size_t i = 0; i < pool_count; ++i) {
    SCOPED_TRACE(snapshot.pools[i].name);
    expect_sums(snapshot.pools[i], in(static_cast<Pool>(i)));
  }
}

TEST(SizeClasses, BlocksAddUpToArenasAndPools) {
  const Blocks small(pool, 100, 10);
  const Blocks medium(pool, 20000, 3);
  const Blocks large(pool, 100000, 3);
  const Blocks huge(pool, 5000000, 1);
  expect_blocks_add_up(take_snapshot(all_details));
}

TEST(SizeClasses, BlocksAddUpWhileOthersAllocateAndPurge) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&stop] {
      while (!stop)
        for (const size_t size : {100, 5000, 50000, 300000}) {
          const Blocks blocks(pool, size, 2);
          free(malloc(size));
        }
    });
  // A snapshot whose statistics others refresh meanwhile is taken again. One in
  // ten is, so that the test ends in time however slow they are.
  Refreshing_thread other(pool);
  for (int i = 0; i < 100; ++i) {
    if (i % 10 == 0) other.refresh_once();
    expect_blocks_add_up(take_snapshot(all_details));
  }
  stop = true;
  for (std::thread &thread : threads) thread.join();
}

TEST(SizeClasses, ExtentsAddUpToArenas) {
  {
    const Blocks freed(pool, 3000000, 2);
  }
  const Snapshot snapshot = take_snapshot(all_details);
  EXPECT_GE(sum_of(snapshot.extents, &Extents_row::dirty_bytes, in(pool)),
            6000000u);
  for (const Arena_row &arena : snapshot.arenas) {
    EXPECT_EQ(arena.dirty_bytes,
              sum_of(snapshot.extents, &Extents_row::dirty_bytes, in(arena)));
    EXPECT_EQ(arena.muzzy_bytes,
              sum_of(snapshot.extents, &Extents_row::muzzy_bytes, in(arena)));
    EXPECT_EQ(
        arena.retained_bytes,
        sum_of(snapshot.extents, &Extents_row::retained_bytes, in(arena)));
  }
}

TEST(SizeClasses, ExtentsAreOfTheSizeOfTheirClass) {
  // Free extents between two blocks of a size cannot merge.
  const std::vector<size_t> sizes = {20000, 40000, 41000, 45000, 70000, 250000};
  std::vector<void *> blocks;
  for (int i = 0; i < 100; ++i)
    for (const size_t size : sizes)
      blocks.push_back(pools::allocate(pool, size));
  for (size_t i = 0; i < blocks.size(); i += 2)
    pools::free(pool, blocks[i], sizes[i % sizes.size()]);
  const Snapshot snapshot = take_snapshot(all_details);
  for (size_t i = 1; i < blocks.size(); i += 2)
    pools::free(pool, blocks[i], sizes[i % sizes.size()]);

  const auto expect_within = [](const Extents_row &row, Reading extents,
                                Reading bytes) {
    EXPECT_LE(*extents * row.min_size.value(), *bytes) << *row.min_size;
    EXPECT_GE(*extents * row.max_size.value(), *bytes) << *row.max_size;
  };
  size_t classes = 0;
  for (const Extents_row &row : snapshot.extents) {
    EXPECT_LE(*row.min_size, *row.max_size);
    EXPECT_GT(*row.dirty_extents + *row.muzzy_extents + *row.retained_extents,
              0u);
    expect_within(row, row.dirty_extents, row.dirty_bytes);
    expect_within(row, row.muzzy_extents, row.muzzy_bytes);
    expect_within(row, row.retained_extents, row.retained_bytes);
    if (in(pool)(row) && *row.dirty_extents >= 10) ++classes;
  }
  EXPECT_GE(classes, 3u);
}

struct Counts {
  uint64_t live{0};
  uint64_t allocations{0};
  uint64_t frees{0};
  bool operator==(const Counts &) const = default;
};

/** The pool's figures of each class, by the largest block of the class. */
std::map<uint64_t, Counts> counts(const Snapshot &snapshot) {
  std::map<uint64_t, Counts> counts;
  const auto add = [&counts](uint64_t size, const auto &row) {
    if (!in(pool)(row)) return;
    Counts &sum = counts[size];
    sum.live += row.live_blocks.value();
    sum.allocations += row.allocations.value();
    sum.frees += row.frees.value();
  };
  for (const Bin_row &row : snapshot.bins) add(row.size.value(), row);
  for (const Large_row &row : snapshot.large) add(row.max_size.value(), row);
  return counts;
}

void expect_only_this_class(size_t size, uint64_t class_size) {
  constexpr int blocks = 700;
  auto before = counts(take_snapshot(all_details));
  {
    const Blocks live(pool, size, blocks);
    auto expected = before;
    expected[class_size].live += blocks;
    expected[class_size].allocations += blocks;
    EXPECT_EQ(counts(take_snapshot(all_details)), expected) << size;
  }
  before[class_size].allocations += blocks;
  before[class_size].frees += blocks;
  EXPECT_EQ(counts(take_snapshot(all_details)), before) << size;
}

TEST(SizeClasses, BlockCountsInItsClassOnly) {
  expect_only_this_class(1, 8);
  expect_only_this_class(100, 112);
  expect_only_this_class(112, 112);
  expect_only_this_class(113, 128);
  expect_only_this_class(14336, 14336);
  expect_only_this_class(14337, 16384);
  expect_only_this_class(100000, 114688);
}

TEST(SizeClasses, SlabAndItsWaste) {
  const auto row_of_48 = [] {
    const Snapshot snapshot = take_snapshot(all_details);
    const auto row = std::ranges::find_if(snapshot.bins, [](const Bin_row &r) {
      return in(fresh_pool)(r) && r.size == 48u;
    });
    EXPECT_NE(row, snapshot.bins.end());
    return row == snapshot.bins.end() ? Bin_row{} : *row;
  };
  {
    const Blocks one(fresh_pool, 40, 1);
    const Bin_row row = row_of_48();
    EXPECT_EQ(row.slabs, 1u);
    EXPECT_EQ(row.live_blocks, 1u);
    EXPECT_EQ(row.live_bytes, 48u);
    EXPECT_EQ(row.capacity_blocks, row.regions_per_slab);
    EXPECT_EQ(row.waste_bytes, row.slab_bytes.value() - 48);
    EXPECT_DOUBLE_EQ(row.utilisation.value(),
                     1.0 / static_cast<double>(*row.regions_per_slab));
    EXPECT_EQ(row.nonfull_slabs, 0u);
    EXPECT_GE(*row.regions_per_slab * 48, *row.slab_bytes - 48);
    // All of its capacity: nothing is wasted that has room for a block.
    const Blocks rest(fresh_pool, 48,
                      static_cast<int>(*row.regions_per_slab) - 1);
    const Bin_row full = row_of_48();
    EXPECT_EQ(full.slabs, 1u);
    EXPECT_DOUBLE_EQ(full.utilisation.value(), 1);
    EXPECT_LT(full.waste_bytes.value(), 48u);
  }
  const Bin_row row = row_of_48();
  EXPECT_EQ(row.allocations, row.frees);
  EXPECT_EQ(row.slabs, 0u);
  EXPECT_EQ(row.waste_bytes, 0u);
  EXPECT_FALSE(row.utilisation.has_value());
}

TEST(SizeClasses, LargeBlocksOfOneClassAreCountedExactly) {
  const Blocks blocks(fresh_pool, 100000, 7);
  const Snapshot snapshot = take_snapshot(all_details);
  EXPECT_EQ(sum_of(snapshot.large, &Large_row::live_blocks, in(fresh_pool)),
            7u);
  EXPECT_EQ(sum_of(snapshot.large, &Large_row::live_bytes, in(fresh_pool)),
            7 * placed::usable(100000));
  for (const Large_row &row : snapshot.large) {
    EXPECT_LE(*row.live_blocks * *row.min_size, *row.live_bytes);
    EXPECT_GE(*row.live_blocks * *row.max_size, *row.live_bytes);
    EXPECT_GE(row.requests, row.allocations);
    if (in(fresh_pool)(row) && *row.live_blocks > 0) {
      EXPECT_EQ(row.max_size, 114688u);
      EXPECT_LE(*row.min_size, placed::usable(100000));
    }
  }
}

Large_row large_row(uint64_t blocks, uint64_t min_size, uint64_t max_size) {
  Large_row row{};
  row.live_blocks = blocks;
  row.min_size = min_size;
  row.max_size = max_size;
  return row;
}

uint64_t shared(const std::vector<Large_row> &rows) {
  uint64_t sum = 0;
  for (const Large_row &row : rows) sum += row.live_bytes.value();
  return sum;
}

TEST(ShareOut, BetweenLeastAndMost) {
  for (uint64_t bytes = 10 * 16 + 3 * 36 + 5 * 100;
       bytes <= 10 * 16 + 3 * 40 + 5 * 112; ++bytes) {
    std::vector<Large_row> rows = {large_row(10, 16, 16), large_row(3, 36, 40),
                                   large_row(0, 44, 48),
                                   large_row(5, 100, 112)};
    share_out(bytes, rows);
    EXPECT_EQ(shared(rows), bytes);
    EXPECT_EQ(rows[0].live_bytes, 160u);
    EXPECT_EQ(rows[2].live_bytes, 0u);
    for (const Large_row &row : rows) {
      EXPECT_GE(*row.live_bytes, *row.live_blocks * *row.min_size);
      EXPECT_LE(*row.live_bytes, *row.live_blocks * *row.max_size);
    }
  }
}

TEST(ShareOut, SumIsKeptWhenBlocksCameOrWentMeanwhile) {
  for (const uint64_t bytes : {0u, 40u, 140u, 300u}) {
    std::vector<Large_row> rows = {large_row(0, 16, 16),
                                   large_row(1, 100, 120)};
    share_out(bytes, rows);
    EXPECT_EQ(shared(rows), bytes);
  }
  // More went than one class has: no underflow.
  std::vector<Large_row> rows = {large_row(1, 16, 16), large_row(1, 20, 20)};
  share_out(0, rows);
  EXPECT_LE(shared(rows), 36u);
}

TEST(ShareOut, LargeNumbersDoNotOverflow) {
  constexpr uint64_t tera = uint64_t{1} << 40;
  std::vector<Large_row> rows = {large_row(1000, tera, 2 * tera),
                                 large_row(3000, tera, 2 * tera)};
  share_out(6000 * tera, rows);
  EXPECT_EQ(rows[0].live_bytes, 1500 * tera);
  EXPECT_EQ(rows[1].live_bytes, 4500 * tera);
}

TEST(ShareOut, UnknownStaysUnknown) {
  std::vector<Large_row> rows = {large_row(1, 16, 16), large_row(1, 20, 24)};
  share_out(std::nullopt, rows);
  EXPECT_FALSE(rows[0].live_bytes.has_value());
  rows[1].live_blocks.reset();
  share_out(40, rows);
  EXPECT_FALSE(rows[0].live_bytes.has_value());
  share_out(40, {});
}

TEST(Details, AreReadWhereTheyAreAskedFor) {
  const Snapshot none = take_snapshot();
  EXPECT_EQ(none.details, 0u);
  EXPECT_TRUE(none.bins.empty() && none.large.empty() && none.extents.empty());
  const Snapshot some =
      take_snapshot(detail_of<Bin_row> | detail_of<Extents_row>);
  EXPECT_FALSE(some.bins.empty());
  EXPECT_FALSE(some.extents.empty());
  EXPECT_TRUE(some.large.empty());
  EXPECT_EQ(detail_of<Bin_row> | detail_of<Large_row> | detail_of<Extents_row>,
            all_details);
  EXPECT_EQ(detail_of<Pool_row>, 0u);
}

TEST(SizeClasses, FailedReadIsEmptyAndNamed) {
  const Blocks small(pool, 100, 10);
  const Failing_reads failing(Ctl::stats_bin_curregs);
  const Snapshot snapshot = take_snapshot(all_details);
  ASSERT_FALSE(snapshot.bins.empty());
  for (const Bin_row &row : snapshot.bins) {
    EXPECT_FALSE(row.live_blocks.has_value());
    EXPECT_FALSE(row.live_bytes.has_value());
    EXPECT_FALSE(row.utilisation.has_value());
    EXPECT_FALSE(row.waste_bytes.has_value());
    EXPECT_TRUE(row.slabs.has_value());
    EXPECT_TRUE(row.allocations.has_value());
  }
  ASSERT_EQ(snapshot.failed.size(), 1u);
  EXPECT_EQ(snapshot.failed[0].ctl, Ctl::stats_bin_curregs);
  EXPECT_EQ(snapshot.failed[0].error, EIO);
  EXPECT_EQ(snapshot.failed[0].times, snapshot.bins.size());
}

TEST(SizeClasses, ClassThatIsNotKnownToBeUnusedIsShown) {
  const Blocks small(pool, 100, 1);
  const Failing_reads failing(Ctl::stats_bin_nmalloc);
  const Snapshot snapshot = take_snapshot(all_details);
  const unsigned bins = mallctl::read<Ctl::arenas_nbins>().value();
  // An arena that is known to have no small block has no row.
  std::set<unsigned> arenas;
  for (const Bin_row &row : snapshot.bins) arenas.insert(row.arena);
  EXPECT_EQ(snapshot.bins.size(), bins * arenas.size());
  ASSERT_FALSE(snapshot.bins.empty());
  EXPECT_FALSE(snapshot.bins[0].allocations.has_value());
  EXPECT_TRUE(snapshot.bins[0].live_blocks.has_value());
}

TEST(SizeClasses, SumOfLargeBlocksThatFailsEmptiesAllOfThem) {
  const Blocks large(pool, 100000, 1);
  const Failing_reads failing(Ctl::stats_arena_large_allocated);
  const Snapshot snapshot = take_snapshot(all_details);
  ASSERT_FALSE(snapshot.large.empty());
  for (const Large_row &row : snapshot.large) {
    EXPECT_FALSE(row.live_bytes.has_value());
    EXPECT_TRUE(row.live_blocks.has_value());
  }
}

TEST(SizeClasses, SettingThatFailsEmptiesWhatFollowsFromIt) {
  const Blocks large(pool, 100000, 1);
  {
    const Failing_reads failing(Ctl::opt_disable_large_size_classes);
    const Snapshot snapshot = take_snapshot(all_details);
    EXPECT_FALSE(snapshot.large.at(0).min_size.has_value());
    EXPECT_FALSE(snapshot.large.at(0).live_bytes.has_value());
    EXPECT_TRUE(snapshot.large.at(0).max_size.has_value());
  }
  for (const Ctl ctl :
       {Ctl::opt_cache_oblivious, Ctl::arenas_page, Ctl::arenas_lextent_size}) {
    const Failing_reads failing(ctl);
    const Snapshot snapshot = take_snapshot(all_details);
    ASSERT_FALSE(snapshot.extents.empty());
    for (const Extents_row &row : snapshot.extents) {
      EXPECT_FALSE(row.min_size.has_value()) << mallctl::name(ctl);
      EXPECT_FALSE(row.max_size.has_value()) << mallctl::name(ctl);
      EXPECT_TRUE(row.dirty_bytes.has_value()) << mallctl::name(ctl);
    }
    EXPECT_EQ(snapshot.failed.at(0).ctl, ctl);
  }
}

}  // namespace
}  // namespace memdiag
