/* The ledger: rows of literal figures, and of this process. */

#include "plugin/memdiag/ledger/ledger_reader.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <variant>

#include "mysys/memdiag/base/fault.h"
#include "mysys/memdiag/unittest/test.h"
#include "plugin/memdiag/ledger/pool_shares.h"
#include "plugin/memdiag/ledger/process_memory.h"
#include "plugin/memdiag/tables/usage_tables.h"

namespace memdiag_test {

namespace ledger = memdiag::ledger;
using ledger::Precision;
using memdiag::pool_count;
using memdiag::Region_kind;

constexpr uint64_t mb = 1 << 20;

std::string key_of(const ledger::Row &row) {
  return std::string(row.component) + "/" + row.name + "/" + row.state;
}

using By_key = std::map<std::string, std::optional<int64_t>>;

By_key by_key(const std::vector<ledger::Row> &rows) {
  By_key found;
  for (const ledger::Row &row : rows) {
    EXPECT_FALSE(found.contains(key_of(row))) << key_of(row) << " twice";
    found[key_of(row)] = row.resident_bytes;
  }
  return found;
}

int64_t sum_of(const std::vector<ledger::Row> &rows) {
  int64_t sum = 0;
  for (const ledger::Row &row : rows) sum += row.resident_bytes.value();
  return sum;
}

/** A process of 100 MB: a pool with 40, of which a block of 8 was never
written. */
ledger::Figures example() {
  ledger::Figures all{};
  all.rss_bytes = 100 * mb;
  all.regions.fill(0);
  all.regions[static_cast<size_t>(Region_kind::buffer_pool)] = 30 * mb;
  all.regions_mapped[static_cast<size_t>(Region_kind::buffer_pool)] = 128 * mb;
  all.program = {20 * mb, 2 * mb};
  all.libraries = {3 * mb, 1 * mb};
  all.files = {0, 0};
  all.heap_bytes = 0;
  all.anonymous_bytes = 43 * mb;
  memdiag::extents::Walk walk{};
  const auto fts = static_cast<size_t>(Pool::fts_query);
  ledger::All_pools pools{};
  pools[fts] = {38 * mb, 40 * mb, 6 * mb, 0, 2 * mb};
  walk.pools[fts] = {14 * mb, 2 * mb, 16 * mb, 6 * mb, 0, 0};
  walk.unowned_bytes = 5 * mb;
  all.pools = pools;
  all.walked = ledger::Walked{walk, pools, 0};
  all.buffer_pool = ledger::Buffer_pool_pages{16384, 1024, 256};
  return all;
}

/** AnonHugePages of the process, from smaps_rollup (proc_pid_smaps(5)). */
uint64_t huge_bytes_of_process() {
  std::ifstream file("/proc/self/smaps_rollup");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("AnonHugePages:"))
      return std::stoull(line.substr(line.find(':') + 1)) << 10;
  return 0;
}

TEST(LedgerRows, Exact) {
  const auto rows = ledger::rows(example(), Precision::exact);
  const By_key found = by_key(rows);
  EXPECT_EQ(12 * mb, found.at("buffer_pool//clean pages"));
  EXPECT_EQ(4 * mb, found.at("buffer_pool//dirty pages"));
  EXPECT_EQ(14 * mb, found.at("buffer_pool//free pages and bookkeeping"));
  EXPECT_EQ(0, found.at("buffer_pool//never touched"));
  EXPECT_EQ(30 * mb, found.at("pool/fts_query/live"));
  EXPECT_EQ(2 * mb, found.at("pool/fts_query/fragmentation"));
  EXPECT_EQ(6 * mb, found.at("pool/fts_query/dirty"));
  EXPECT_EQ(2 * mb, found.at("pool/fts_query/metadata"));
  EXPECT_EQ(3 * mb, found.at("anonymous//not of the allocator"));
  EXPECT_EQ(0, found.at("pool/general/live"));
  EXPECT_EQ(22 * mb, *found.at("program//code and constants") +
                         *found.at("program//data"));
  EXPECT_EQ(1 * mb, found.at("unexplained//"));
  EXPECT_EQ(static_cast<int64_t>(100 * mb), sum_of(rows));
}

TEST(LedgerRows, PercentIsInPercent) {
  ledger::Row row{};
  row.percent = 12.5;
  unsigned columns = 0;
  for (const auto &column : memdiag::ledger_table.columns) {
    if (column.name != std::string{"PERCENT"}) continue;
    ++columns;
    EXPECT_EQ(memdiag::Unit::percent, column.unit);
    EXPECT_EQ(12.5, std::get<double>(column.value(row)));
  }
  EXPECT_EQ(1u, columns);
}

TEST(LedgerRows, CheapSharesOutWhatTheKernelCounts) {
  ledger::Figures all = example();
  const auto fts = static_cast<size_t>(Pool::fts_query);
  // Since the walk, 4 MB have become live and 2 dirty.
  (*all.pools)[fts] = {42 * mb, 44 * mb, 8 * mb, 0, 2 * mb};
  all.anonymous_bytes = 49 * mb;
  all.rss_bytes = 106 * mb;
  const auto rows = ledger::rows(all, Precision::cheap);
  const By_key found = by_key(rows);
  const int64_t active = *found.at("pool/fts_query/live") +
                         *found.at("pool/fts_query/fragmentation");
  EXPECT_NEAR(36.0 * mb, static_cast<double>(active), 10);
  EXPECT_NEAR(8.0 * mb, static_cast<double>(*found.at("pool/fts_query/dirty")),
              10);
  EXPECT_NEAR(1.0 * mb, static_cast<double>(*found.at("unexplained//")), 100);
  EXPECT_EQ(static_cast<int64_t>(106 * mb), sum_of(rows));
}

/** The walk of the example and 12 or 20 MB of growth since, beside a pool of 30
MB that rests.
@return the live bytes of both, in MB */
std::pair<double, double> grown_and_resting(uint64_t active_mb,
                                            uint64_t written_mb,
                                            Pool grows = Pool::fts_query) {
  ledger::Figures all = example();
  const auto from = static_cast<size_t>(Pool::fts_query);
  const auto to = static_cast<size_t>(grows);
  std::swap(all.walked->walk.pools[from], all.walked->walk.pools[to]);
  std::swap(all.walked->pools[from], all.walked->pools[to]);
  (*all.pools)[from] = {};
  const auto rests = static_cast<size_t>(Pool::session);
  const ledger::Pool_figures other{30 * mb, 30 * mb, 0, 0, 0};
  all.walked->walk.pools[rests].large_bytes = 30 * mb;
  all.walked->pools[rests] = (*all.pools)[rests] = other;
  (*all.pools)[to] = {active_mb * mb, active_mb * mb, 6 * mb, 0, 2 * mb};
  all.anonymous_bytes = (written_mb + 6 + 30 + 5) * mb;
  const By_key found = by_key(ledger::rows(all, Precision::cheap));
  const auto live_mb = [&found](Pool pool) {
    const std::string name = memdiag::spec_of(pool).name;
    return static_cast<double>(*found.at("pool/" + name + "/live")) / mb;
  };
  return {live_mb(grows), live_mb(Pool::session)};
}

/** A walk in the midst of growth finds pages unwritten that a thread writes a
moment later. */
TEST(LedgerRows, WhatTheKernelHasMoreOfIsFirstOfThePoolThatGrows) {
  for (const auto &[active_mb, written_mb] :
       {std::pair{52, 52}, {52, 48}, {60, 52}})
    for (const Pool grows : {Pool::fts_query, Pool::general}) {
      const auto [grown, resting] =
          grown_and_resting(active_mb, written_mb, grows);
      EXPECT_NEAR(written_mb, grown, 0.01) << active_mb;
      EXPECT_NEAR(30, resting, 0.01) << active_mb;
    }
  // The pool that grew has pages for 52 MB. All pools share what is beyond.
  const auto [grown, resting] = grown_and_resting(52, 70);
  EXPECT_LT(52, grown);
  EXPECT_LT(30, resting);
}

/** The kernel has fewer pages than expected. The pool that grew may have
written all of its new pages while other pools gave pages back, so it loses no
more than its part. */
TEST(LedgerRows, WhatTheKernelHasLessOfIsNotOfThePoolThatGrows) {
  const auto [grown, resting] = grown_and_resting(60, 42);
  EXPECT_NEAR(52 * (42.0 + 6 + 30) / (52 + 6 + 30), grown, 0.01);
  EXPECT_NEAR(30 * (42.0 + 6 + 30) / (52 + 6 + 30), resting, 0.01);
}

/** The example, after a free of a part of a block that was never written: 10
of 16 MB of dirty pages are not there. */
ledger::Figures example_with_unwritten_dirty() {
  ledger::Figures all = example();
  const auto fts = static_cast<size_t>(Pool::fts_query);
  (*all.pools)[fts].dirty_bytes = 16 * mb;
  all.walked->pools = *all.pools;
  return all;
}

TEST(LedgerRows, DirtyPagesThatNobodyWroteTakeNothingFromLiveOnes) {
  const ledger::Figures all = example_with_unwritten_dirty();
  for (const Precision precision : {Precision::exact, Precision::cheap}) {
    const By_key found = by_key(ledger::rows(all, precision));
    EXPECT_NEAR(32.0 * mb,
                static_cast<double>(*found.at("pool/fts_query/live") +
                                    *found.at("pool/fts_query/fragmentation")),
                10);
    EXPECT_NEAR(6.0 * mb,
                static_cast<double>(*found.at("pool/fts_query/dirty")), 10);
  }
}

/** The walk found dirty pages that no thread had written. The ledger forgets
them when a purge takes them, or a block that writes them. Pages that have
become dirty since were written. */
TEST(LedgerRows, ChangesOfDirtyPagesThatNobodyWroteAddUp) {
  struct Change {
    uint64_t active_mb, dirty_mb;
    double written_mb, resident_dirty_mb;
  };
  for (const auto &[active_mb, dirty_mb, written_mb, resident_dirty_mb] :
       {Change{40, 0, 32, 0}, Change{40, 8, 32, 3}, Change{30, 26, 22, 16}}) {
    ledger::Figures all = example_with_unwritten_dirty();
    const auto fts = static_cast<size_t>(Pool::fts_query);
    (*all.pools)[fts] = {active_mb * mb, active_mb * mb, dirty_mb * mb, 0,
                         2 * mb};
    EXPECT_EQ(ledger::expected_anonymous(*all.pools, *all.walked),
              static_cast<uint64_t>((written_mb + resident_dirty_mb + 5) * mb));
    all.anonymous_bytes = ledger::expected_anonymous(*all.pools, *all.walked);
    const By_key found = by_key(ledger::rows(all, Precision::cheap));
    EXPECT_NEAR(written_mb * mb,
                static_cast<double>(*found.at("pool/fts_query/live")), 10);
    EXPECT_NEAR(resident_dirty_mb * mb,
                static_cast<double>(*found.at("pool/fts_query/dirty")), 10);
  }
}

TEST(LedgerRows, PagesOfZerosThatWereOnlyReadAreNobodys) {
  ledger::Figures all = example();
  const auto before = ledger::rows(all, Precision::cheap);
  *all.anonymous_bytes += 5 * mb;
  all.walked->only_read_bytes = 5 * mb;
  EXPECT_EQ(by_key(before), by_key(ledger::rows(all, Precision::cheap)));
}

TEST(LedgerRows, APoolThatGrowsMeanwhileHasNoMoreThanThereIs) {
  ledger::Figures all = example();
  auto &fts = (*all.pools)[static_cast<size_t>(Pool::fts_query)];
  fts.live_bytes = fts.active_bytes + 20 * mb;
  *all.anonymous_bytes -= 3 * mb;
  const auto rows = ledger::rows(all, Precision::cheap);
  EXPECT_EQ(static_cast<int64_t>(100 * mb), sum_of(rows));
  for (const ledger::Row &row : rows) {
    EXPECT_LE(0, *row.resident_bytes) << key_of(row);
    EXPECT_GE(static_cast<int64_t>(100 * mb), *row.resident_bytes)
        << key_of(row);
  }
}

TEST(LedgerRows, OfNothingSharedOutIsNothing) {
  ledger::Figures all = example();
  all.anonymous_bytes = 0;
  all.pools = ledger::All_pools{};
  const auto rows = ledger::rows(all, Precision::cheap);
  EXPECT_EQ(0, by_key(rows).at("pool/fts_query/live"));
  EXPECT_EQ(static_cast<int64_t>(100 * mb), sum_of(rows));
}

TEST(LedgerRows, WhatIsNotKnownIsEmptyAndLeavesNothingUnexplained) {
  for (const auto forget : std::initializer_list<void (*)(ledger::Figures *)>{
           [](ledger::Figures *all) { all->rss_bytes.reset(); },
           [](ledger::Figures *all) { all->walked.reset(); },
           [](ledger::Figures *all) { all->program.own.reset(); },
           [](ledger::Figures *all) { all->regions[0].reset(); }}) {
    ledger::Figures all = example();
    forget(&all);
    const auto rows = ledger::rows(all, Precision::exact);
    EXPECT_FALSE(rows.back().resident_bytes);
    EXPECT_FALSE(rows.back().percent);
  }
  ledger::Figures all = example();
  all.walked.reset();
  EXPECT_FALSE(
      by_key(ledger::rows(all, Precision::cheap)).at("pool/fts_query/live"));
}

/** VmRSS does not count them, and so cannot grow by them. */
TEST(LedgerRows, ABufferPoolInReservedPagesHasNothing) {
  ledger::Figures all = example();
  all.buffer_pool->in_reserved = ledger::Buffer_pool_pages::In_reserved::all;
  all.regions[static_cast<size_t>(Region_kind::buffer_pool)] = 0;
  for (const ledger::Row &row : ledger::rows(all, Precision::exact)) {
    if (std::string(row.component) != "buffer_pool") continue;
    EXPECT_EQ(0, row.resident_bytes) << key_of(row);
    EXPECT_FALSE(row.mapped_bytes) << key_of(row);
  }
}

/** InnoDB's counts do not tell which of its pages lie in them. */
TEST(LedgerRows, ABufferPoolPartlyInReservedPagesIsOneRow) {
  ledger::Figures all = example();
  all.buffer_pool->in_reserved = ledger::Buffer_pool_pages::In_reserved::part;
  EXPECT_EQ(30 * mb,
            by_key(ledger::rows(all, Precision::exact)).at("buffer_pool//"));
}

TEST(LedgerRows, WithoutInnodbTheBufferPoolIsOneRow) {
  ledger::Figures all = example();
  all.buffer_pool.reset();
  EXPECT_EQ(30 * mb,
            by_key(ledger::rows(all, Precision::exact)).at("buffer_pool//"));
}

uint64_t clock_now_us = 1;
/** The clock moves on by this with each reading. A walk reads it when it begins
and when it ends, so it takes that long. */
uint64_t clock_step_us = 0;
/** So long the thread waits for a processor before each reading. */
uint64_t clock_wait_us = 0;

uint64_t test_clock(clockid_t clock) {
  if (clock == CLOCK_MONOTONIC) clock_now_us += clock_wait_us;
  return clock_now_us += clock_step_us;
}

ledger::Reader reader{test_clock};

ledger::Ledger take(
    Precision precision,
    const std::optional<ledger::Buffer_pool_pages> &buffer_pool = {}) {
  return reader.take(memdiag::take_snapshot(), buffer_pool, precision);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// A sanitizer has more memory of its own than the process.

// A walk that looks at each of its pages takes minutes.
TEST(Ledger, AReservationOfTerabytesIsNoHindrance) {
  constexpr size_t terabyte = size_t{1} << 40;
  void *const reserved =
      mmap(nullptr, 4 * terabyte, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) GTEST_SKIP() << "no room for a reservation";
  memset(static_cast<char *>(reserved) + 2 * terabyte, 1, mb);
  const auto [rows, warnings] = take(Precision::exact);
  EXPECT_TRUE(warnings.empty()) << warnings.front();
  const auto rss =
      static_cast<double>(*memdiag::process_memory::resident_bytes());
  EXPECT_NEAR(rss, static_cast<double>(sum_of(rows)), 1.0 * mb);
  const auto walk = reader.recent_walk({});
  ASSERT_TRUE(walk);
  EXPECT_GE(walk->unowned_bytes, mb);
  EXPECT_EQ(0, munmap(reserved, 4 * terabyte));
}

TEST(Ledger, OfThisProcess) {
  for (const Precision precision : {Precision::exact, Precision::cheap}) {
    const auto [rows, warnings] = take(precision);
    EXPECT_TRUE(warnings.empty()) << warnings.front();
    const auto rss =
        static_cast<int64_t>(*memdiag::process_memory::resident_bytes());
    EXPECT_NEAR(static_cast<double>(rss), static_cast<double>(sum_of(rows)),
                1.0 * mb);
    EXPECT_GT(0.02 * static_cast<double>(rss),
              std::abs(static_cast<double>(*rows.back().resident_bytes)));
    for (size_t i = 0; i + 1 < rows.size(); ++i)
      EXPECT_LE(0, *rows[i].resident_bytes) << key_of(rows[i]);
  }
}

TEST(Ledger, ABlockIsLiveWhereItWasWritten) {
  constexpr size_t size = 64 * mb;
  const auto live = [] {
    return *by_key(take(Precision::exact).rows).at("pool/fts_query/live");
  };
  const int64_t before = live();
  auto *block = static_cast<char *>(pools::allocate(pool, size, true));
  ASSERT_NE(nullptr, block);
  EXPECT_GT(1.0 * mb, static_cast<double>(live() - before))
      << "nothing of it was written";
  if (memdiag::Page_scan{}) {
    uint64_t sum = 0;
    for (size_t i = 0; i < size; i += 4096) sum += block[i];
    EXPECT_EQ(0u, sum);
    EXPECT_GT(1.0 * mb, static_cast<double>(live() - before)) << "only read";
  }
  memset(block, 1, size / 2);
  EXPECT_NEAR(0.5 * size, static_cast<double>(live() - before), 1.0 * mb);
  memset(block, 1, size);
  EXPECT_NEAR(1.0 * size, static_cast<double>(live() - before), 1.0 * mb);
  pools::free(pool, block, size);
  const By_key after = by_key(take(Precision::exact).rows);
  EXPECT_NEAR(static_cast<double>(before),
              static_cast<double>(*after.at("pool/fts_query/live")), 1.0 * mb);
  EXPECT_LT(0.9 * size, static_cast<double>(*after.at("pool/fts_query/dirty")));
  (void)purging::purge(pool);
  EXPECT_GT(
      1.0 * mb,
      static_cast<double>(
          *by_key(take(Precision::exact).rows).at("pool/fts_query/dirty")));
}

TEST(Ledger, ABlockThatWasFreedUnwrittenTakesNothingFromLiveOnes) {
  constexpr size_t size = 64 * mb;
  (void)purging::purge(pool);
  auto *block = static_cast<char *>(pools::allocate(pool, size, false));
  auto *other = static_cast<char *>(pools::allocate(pool, size, false));
  ASSERT_TRUE(block != nullptr && other != nullptr);
  memset(block, 1, size);
  const auto resident = [](Precision precision, const char *state) {
    return static_cast<double>(
        *by_key(take(precision).rows)
             .at(std::string("pool/fts_query/") + state));
  };
  const double live = resident(Precision::exact, "live");
  pools::free(pool, other, size);
  for (const Precision precision : {Precision::exact, Precision::cheap}) {
    EXPECT_NEAR(live, resident(precision, "live"), 1.0 * mb);
    EXPECT_GT(1.0 * mb, resident(precision, "dirty"));
  }
  // The last walk was before the purge.
  (void)purging::purge(pool);
  EXPECT_NEAR(live, resident(Precision::cheap, "live"), 1.0 * mb);
  pools::free(pool, block, size);
  (void)purging::purge(pool);
}

TEST(Ledger, SmallBlocksThatAreFreeAreFragmentation) {
  std::vector<Block> blocks;
  for (int i = 0; i < 20000; ++i) blocks.push_back(Block::make(1000, 1));
  const By_key full = by_key(take(Precision::exact).rows);
  EXPECT_LT(20000 * 1000, *full.at("pool/fts_query/live"));
  for (size_t i = 0; i < blocks.size(); ++i)
    if (i % 16 != 0) blocks[i].free();
  (void)purging::purge(pool);
  const By_key after = by_key(take(Precision::exact).rows);
  // One of 16 blocks stays, and with it its slab, which has room for four.
  EXPECT_LT(3 * 1000 * 1000, *after.at("pool/fts_query/fragmentation"));
  EXPECT_GT(*full.at("pool/fts_query/live") / 4,
            *after.at("pool/fts_query/live"));
  for (size_t i = 0; i < blocks.size(); i += 16) blocks[i].free();
}

/** Pages in no extent count as metadata, up to what jemalloc counts as such. */
int64_t in_no_extent(const std::vector<ledger::Row> &rows) {
  int64_t bytes = 0;
  for (const auto &[key, resident] : by_key(rows))
    if (key == "anonymous//not of the allocator" || key.ends_with("/metadata"))
      bytes += *resident;
  return bytes;
}

TEST(Ledger, MappingsOfOthersAreNotTheAllocators) {
  const auto other = [] { return in_no_extent(take(Precision::exact).rows); };
  const int64_t before = other();
  void *mapping = mmap(nullptr, 32 * mb, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(mapping, 1, 32 * mb);
  EXPECT_NEAR(32.0 * mb, static_cast<double>(other() - before), 1.0 * mb);
  memdiag::regions::add(Region_kind::other, mapping, 32 * mb);
  EXPECT_NEAR(0.0, static_cast<double>(other() - before), 1.0 * mb);
  EXPECT_EQ(32 * mb, by_key(take(Precision::exact).rows).at("region/other/"));
  memdiag::regions::remove(mapping);
  munmap(mapping, 32 * mb);
}

TEST(Ledger, TheCheapFormAsksForNothingWhileAllAddsUp) {
  constexpr size_t size = 256 * mb;
  (void)purging::purge(pool);
  (void)take(Precision::exact);
  auto *block = static_cast<char *>(pools::allocate(pool, size, false));
  ASSERT_NE(nullptr, block);
  memset(block, 1, size);
  // jemalloc counts pages as dirty that came with others and were never used.
  (void)purging::purge(pool);
  // The kernel would not tell which pages are there.
  memdiag::fault::arm(memdiag::fault::Point::pages);
  const auto [rows, warnings] = take(Precision::cheap);
  memdiag::fault::disarm();
  EXPECT_TRUE(warnings.empty()) << warnings.front();
  const By_key after = by_key(rows);
  EXPECT_NEAR(1.0 * size, static_cast<double>(*after.at("pool/fts_query/live")),
              1.0 * mb);
  EXPECT_GT(0.01, std::abs(*rows.back().percent) / 100);
  pools::free(pool, block, size);
  (void)purging::purge(pool);
}

/** Readings take a millisecond while it lives, so each is good for 100 of
them. */
struct Slow_readings {
  Slow_readings() { clock_step_us = 1000; }
  ~Slow_readings() { clock_step_us = 0; }
};
constexpr uint64_t second_us = 1000000;

TEST(Ledger, TheCheapFormAsksWhenSomethingDoesNotAddUp) {
  const Slow_readings slow;
  const auto before =
      static_cast<double>(in_no_extent(take(Precision::exact).rows));
  void *mapping = mmap(nullptr, 64 * mb, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(MAP_FAILED, mapping);
  memset(mapping, 1, 64 * mb);
  const auto now = [] {
    const auto rows = take(Precision::cheap).rows;
    EXPECT_GT(1.0, std::abs(*rows.back().percent)) << "all is explained";
    return static_cast<double>(in_no_extent(rows));
  };
  EXPECT_GT(before + 60.0 * mb, now()) << "the last walk is not paid for";
  clock_now_us += second_us;
  EXPECT_NEAR(before + 64.0 * mb, now(), 4.0 * mb) << "not after a minute";
  munmap(mapping, 64 * mb);
}

TEST(Ledger, WhatWasFreedBeforeTheWalkIsNotTakenToBeUnwritten) {
  constexpr size_t size = 64 * mb;
  const auto written = [](Pool of) {
    void *const block = pools::allocate(of, size, false);
    if (block != nullptr) memset(block, 1, size);
    return block;
  };
  const Slow_readings slow;
  void *const other = written(Pool::table_cache);
  void *block = written(pool);
  ASSERT_TRUE(other != nullptr && block != nullptr);
  const memdiag::Snapshot early = memdiag::take_snapshot();
  pools::free(pool, block, size);
  (void)purging::purge(pool);
  (void)reader.take(early, {}, Precision::exact);
  block = written(pool);
  ASSERT_NE(nullptr, block);
  // jemalloc counts pages as dirty that came with others and were never used.
  (void)purging::purge(pool);
  const By_key now = by_key(take(Precision::cheap).rows);
  EXPECT_NEAR(1.0 * size, static_cast<double>(*now.at("pool/fts_query/live")),
              4.0 * mb);
  EXPECT_NEAR(1.0 * size, static_cast<double>(*now.at("pool/table_cache/live")),
              4.0 * mb);
  pools::free(pool, block, size);
  pools::free(Pool::table_cache, other, size);
}

TEST(Ledger, WhatTheLastLookSaysOfRegions) {
  constexpr auto buffer_pool = static_cast<size_t>(Region_kind::buffer_pool);
  constexpr size_t size = 16 * mb;
  void *mapping = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(MAP_FAILED, mapping);
  memset(mapping, 1, size / 2);
  memdiag::regions::add(Region_kind::buffer_pool, mapping, size);
  const ledger::Buffer_pool_pages counted{16384, size / 4 / 16384, 0};
  (void)take(Precision::exact, counted);
  const auto known = reader.recent_regions(counted);
  EXPECT_EQ(size / 2, known[buffer_pool]);
  EXPECT_TRUE(known[static_cast<size_t>(Region_kind::thread_stack)]);
  EXPECT_FALSE(known[static_cast<size_t>(Region_kind::other)]);
  memdiag::regions::remove(mapping);
  munmap(mapping, size);
}

TEST(Ledger, ABufferPoolInReservedPagesDoesNotGrowByItsData) {
  constexpr auto buffer_pool = static_cast<size_t>(Region_kind::buffer_pool);
  constexpr size_t size = 16 * mb;
  // Nothing of the kernel's is reserved in a test: pages without memory show
  // what the ledger finds of reserved ones.
  void *mapping = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(MAP_FAILED, mapping);
  memdiag::regions::add(Region_kind::buffer_pool, mapping, size);
  ledger::Reader fresh{test_clock};
  ledger::Buffer_pool_pages counted{
      16384, 0, 0, ledger::Buffer_pool_pages::In_reserved::all};
  EXPECT_EQ(0, fresh.recent_regions(counted)[buffer_pool]);
  const Slow_readings slow;
  (void)fresh.take(memdiag::take_snapshot(), counted, Precision::exact);
  counted.data_pages = size / 16384;
  EXPECT_EQ(0, fresh.recent_regions(counted)[buffer_pool]);
  memdiag::regions::remove(mapping);
  munmap(mapping, size);
}

/** Each read would ask the kernel about all pages otherwise. */
TEST(Ledger, ABufferPoolPartlyInReservedPagesIsKnownByTheLastLook) {
  constexpr auto buffer_pool = static_cast<size_t>(Region_kind::buffer_pool);
  constexpr size_t size = 16 * mb;
  auto *mapping =
      static_cast<char *>(mmap(nullptr, 2 * size, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(MAP_FAILED, static_cast<void *>(mapping));
  constexpr size_t untouched = 128 << 10;
  memset(mapping, 1, size - untouched);
  memdiag::regions::add(Region_kind::buffer_pool, mapping, size);
  memdiag::regions::add(Region_kind::buffer_pool, mapping + size, size,
                        memdiag::regions::Pages::reserved);
  ledger::Reader fresh{test_clock};
  ledger::Buffer_pool_pages counted{
      16384, size / 16384, 0, ledger::Buffer_pool_pages::In_reserved::part};
  (void)fresh.take(memdiag::take_snapshot(), counted, Precision::exact);
  clock_now_us += second_us;
  EXPECT_EQ(size - untouched, fresh.recent_regions(counted)[buffer_pool]);
  counted.data_pages += 4;
  EXPECT_EQ(size - untouched / 2, fresh.recent_regions(counted)[buffer_pool]);
  counted.data_pages += 10;
  EXPECT_EQ(size, fresh.recent_regions(counted)[buffer_pool])
      << "reserved pages are not resident";
  counted.data_pages += size / 4 / 16384;
  EXPECT_FALSE(fresh.recent_regions(counted)[buffer_pool]);
  memdiag::regions::remove(mapping);
  memdiag::regions::remove(mapping + size);
  munmap(mapping, 2 * size);
}

TEST(Ledger, ParkedFramesAreWorthAnotherLook) {
  constexpr size_t size = 256 * mb;
  auto *mapping =
      static_cast<char *>(mmap(nullptr, size, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(MAP_FAILED, static_cast<void *>(mapping));
  memset(mapping, 1, size);
  memdiag::regions::add(Region_kind::buffer_pool, mapping, size);
  ledger::Reader fresh{test_clock};
  ledger::Buffer_pool_pages counted{16384, 0, 0};
  const auto resident = [&](Precision precision) {
    int64_t bytes = 0;
    for (const auto &[key, part] :
         by_key(fresh.take(memdiag::take_snapshot(), counted, precision).rows))
      if (key.starts_with("buffer_pool/")) bytes += *part;
    return bytes;
  };
  EXPECT_EQ(static_cast<int64_t>(size), resident(Precision::exact));
  clock_now_us += second_us;
  counted.parked_bytes = 64 * mb;
  ASSERT_EQ(0, madvise(mapping, 64 * mb, MADV_DONTNEED));
  EXPECT_FALSE(fresh.recent_regions(
      counted)[static_cast<size_t>(Region_kind::buffer_pool)]);
  EXPECT_EQ(static_cast<int64_t>(192 * mb), resident(Precision::cheap));
  memdiag::regions::remove(mapping);
  munmap(mapping, size);
}

double resident_of(const char *key, Precision precision) {
  return static_cast<double>(*by_key(take(precision).rows).at(key));
}

TEST(Ledger, TheCheapFormHasFilesOfTheLastLook) {
  const auto files = [](Precision precision) {
    return resident_of("files//mapped", precision);
  };
  const Slow_readings slow;
  constexpr size_t size = 128 << 10;
  FILE *const file = tmpfile();
  ASSERT_NE(nullptr, file);
  ASSERT_EQ(0, posix_fallocate(fileno(file), 0, size));
  void *mapping =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
  ASSERT_NE(MAP_FAILED, mapping);
  const double before = files(Precision::exact);
  memset(mapping, 1, size);
  EXPECT_EQ(before, files(Precision::cheap));
  EXPECT_NEAR(before + 1.0 * size, files(Precision::exact), 0.1 * size);
  EXPECT_NEAR(before + 1.0 * size, files(Precision::cheap), 0.1 * size);
  munmap(mapping, size);
  fclose(file);
}

TEST(Ledger, TheCheapFormLooksAnewWhenThreadsHaveCome) {
  const auto stacks = [](Precision precision) {
    return resident_of("region/thread_stack/", precision);
  };
  constexpr size_t count = 64;
  auto *mapping = static_cast<char *>(
      mmap(nullptr, count * mb, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  ASSERT_NE(MAP_FAILED, static_cast<void *>(mapping));
  memset(mapping, 1, mb);
  memdiag::regions::add(Region_kind::thread_stack, mapping, mb);
  const Slow_readings slow;
  const double before = stacks(Precision::exact);
  // Each has much less than the one before them.
  for (size_t i = 1; i < count; ++i)
    memdiag::regions::add(Region_kind::thread_stack, mapping + i * mb, mb);
  EXPECT_LT(before + 32.0 * mb, stacks(Precision::cheap))
      << "the last reading is not paid for: by the number of stacks";
  clock_now_us += second_us;
  EXPECT_NEAR(before, stacks(Precision::cheap), 2.0 * mb);
  for (size_t i = 0; i < count; ++i) memdiag::regions::remove(mapping + i * mb);
  munmap(mapping, count * mb);
}

/** A large block that no thread has written to. */
class Ledger_of_a_block : public testing::Test {
 protected:
  static constexpr size_t size = 64 * mb;

  void SetUp() override {
    (void)purging::purge(pool);
    m_block = pools::allocate(pool, size, false);
    ASSERT_NE(nullptr, m_block);
  }
  void TearDown() override {
    pools::free(pool, m_block, size);
    (void)purging::purge(pool);
  }

  /** The next reading comes a second later. */
  void write() {
    memset(m_block, 1, size);
    clock_now_us += second_us;
  }
  static double live(Precision precision) {
    return resident_of("pool/fts_query/live", precision);
  }

 private:
  const Slow_readings m_slow;
  void *m_block{nullptr};
};

TEST_F(Ledger_of_a_block,
       TheCheapFormWalksAnewWhenThreadsHaveComeAndItDoesNotAddUp) {
  const double before = live(Precision::exact);
  write();
  // Slow figures do not fit then, and mappings are read at once.
  constexpr size_t count = 64;
  auto *mapping = static_cast<char *>(
      mmap(nullptr, count * mb, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  ASSERT_NE(MAP_FAILED, static_cast<void *>(mapping));
  for (size_t i = 0; i < count; ++i)
    memdiag::regions::add(Region_kind::thread_stack, mapping + i * mb, mb);
  EXPECT_NEAR(before + 1.0 * size, live(Precision::cheap), 1.0 * mb);
  for (size_t i = 0; i < count; ++i) memdiag::regions::remove(mapping + i * mb);
  munmap(mapping, count * mb);
}

TEST_F(Ledger_of_a_block, AWalkOnABusyMachineIsPaidForAsSoon) {
  clock_wait_us = second_us;
  const double before = live(Precision::exact);
  clock_wait_us = 0;
  write();
  EXPECT_NEAR(before + 1.0 * size, live(Precision::cheap), 1.0 * mb);
}

TEST(Ledger, TheCheapFormHasTheBufferPoolByItsPagesOfData) {
  constexpr size_t size = 256 * mb;
  auto *mapping =
      static_cast<char *>(mmap(nullptr, size, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(MAP_FAILED, static_cast<void *>(mapping));
  memdiag::regions::add(Region_kind::buffer_pool, mapping, size);
  const auto resident = [](Precision precision, uint64_t data_pages) {
    int64_t bytes = 0;
    const ledger::Buffer_pool_pages pool{16384, data_pages, 0};
    for (const auto &[key, part] : by_key(take(precision, pool).rows))
      if (key.starts_with("buffer_pool/")) bytes += *part;
    return bytes;
  };
  memset(mapping, 1, 128 * mb);
  const Slow_readings slow;
  constexpr uint64_t pages = 64 * mb / 16384;
  EXPECT_EQ(128 * mb, resident(Precision::exact, pages));
  EXPECT_EQ(128 * mb, resident(Precision::cheap, pages));
  // A page more of data is a page more, and one less is there as before.
  EXPECT_EQ(129 * mb, resident(Precision::cheap, pages + mb / 16384));
  EXPECT_EQ(128 * mb, resident(Precision::cheap, pages - mb / 16384));
  // Many more, which is worth another look once the last one is paid for.
  memset(mapping, 1, 224 * mb);
  EXPECT_EQ(192 * mb, resident(Precision::cheap, 2 * pages));
  clock_now_us += second_us;
  EXPECT_EQ(224 * mb, resident(Precision::cheap, 2 * pages));
  memdiag::regions::remove(mapping);
  munmap(mapping, size);
}

TEST(Ledger, MetadataAreSharedOutToTheLastByte) {
  ledger::Walked walked{};
  walked.walk.unowned_bytes = 1'000'003;
  for (size_t i = 0; i < 7; ++i)
    walked.pools[i].metadata_bytes = 1'000'000 + 7 * i;
  const ledger::Shared_out parts = ledger::shared_out_exactly(walked);
  EXPECT_EQ(0u, parts.other);
  uint64_t sum = 0;
  for (const auto &pool : parts.pools) sum += pool.metadata;
  EXPECT_EQ(1'000'003u, sum);
}

char only_read[8 * mb];

/** @return their sum */
char read_pages(const volatile char *begin, size_t size) {
  char sum = 0;
  for (size_t i = 0; i < size; i += 4096)
    sum = static_cast<char>(sum + begin[i]);
  return sum;
}

TEST(Ledger, PagesOfRegionsThatWereOnlyReadAreNobodys) {
  if (!memdiag::Page_scan()) GTEST_SKIP() << "the kernel does not tell";
  constexpr size_t size = 8 * mb;
  constexpr std::pair<Region_kind, const char *> kinds[] = {
      {Region_kind::buffer_pool, "buffer_pool//"},
      {Region_kind::profile, "region/profile/"},
      {Region_kind::other, "region/other/"}};
  for (const auto &[kind, key] : kinds) {
    auto *mapping =
        static_cast<char *>(mmap(nullptr, size, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(MAP_FAILED, static_cast<void *>(mapping));
    madvise(mapping, size, MADV_NOHUGEPAGE);
    memdiag::regions::add(kind, mapping, size);
    const auto resident = [key](Precision precision) {
      return *by_key(take(precision).rows).at(key);
    };
    EXPECT_EQ(0, read_pages(mapping, size));
    EXPECT_EQ(0, resident(Precision::exact)) << key;
    memset(mapping, 1, 3 * mb);
    EXPECT_EQ(3 * mb, resident(Precision::exact)) << key;
    EXPECT_EQ(3 * mb, resident(Precision::cheap)) << key;
    int error;
    EXPECT_EQ(
        3 * mb,
        memdiag::regions::all(&error)[static_cast<size_t>(kind)].resident_bytes)
        << key;
    memdiag::regions::remove(mapping);
    munmap(mapping, size);
  }
}

TEST(Ledger, VariablesThatWereOnlyReadAreNobodys) {
  if (!memdiag::Page_scan()) GTEST_SKIP() << "the kernel does not tell";
  const auto data = [] {
    return *by_key(take(Precision::exact).rows).at("program//data");
  };
  const int64_t before = data();
  EXPECT_EQ(0, read_pages(only_read, sizeof only_read));
  EXPECT_NEAR(0.0, static_cast<double>(data() - before), 1.0 * mb);
  memset(only_read, 1, sizeof only_read);
  EXPECT_NEAR(8.0 * mb, static_cast<double>(data() - before), 1.0 * mb);
}

TEST(Ledger, HugePagesAreThePoolsThatHasThem) {
  constexpr size_t huge = 2 * mb;
  constexpr size_t size = 16 * mb;
  // The kernel decides if there are huge pages. The ledger must find those that
  // another reader of the same page tables finds. khugepaged makes some at any
  // moment, and then that reader's figures before and after differ.
  struct Found {
    uint64_t by_other;
    memdiag::extents::Walk walk;
  };
  const auto found = [] {
    for (Found at;;) {
      at.by_other = huge_bytes_of_process();
      (void)take(Precision::exact);
      at.walk = *reader.recent_walk({});
      if (huge_bytes_of_process() == at.by_other) return at;
    }
  };
  const Found before = found();
  if (!before.walk.huge_known) GTEST_SKIP() << "the kernel does not tell";
  auto *block = static_cast<char *>(pools::allocate(pool, size, false));
  ASSERT_NE(nullptr, block);
  const auto begin =
      (reinterpret_cast<uintptr_t>(block) + huge - 1) / huge * huge;
  if (madvise(reinterpret_cast<void *>(begin), size - huge, MADV_HUGEPAGE) !=
      0) {
    pools::free(pool, block, size);
    GTEST_SKIP() << "the kernel has no transparent huge pages";
  }
  memset(block, 1, size);
  const Found after = found();
  const auto of = static_cast<size_t>(pool);
  EXPECT_NEAR(static_cast<double>(after.by_other - before.by_other),
              static_cast<double>(after.walk.pools[of].huge_bytes -
                                  before.walk.pools[of].huge_bytes),
              1.0 * huge);
  EXPECT_GE(after.walk.pools[of].total(), after.walk.pools[of].huge_bytes);
  madvise(reinterpret_cast<void *>(begin), size - huge, MADV_NOHUGEPAGE);
  pools::free(pool, block, size);
  (void)purging::purge(pool);
}

TEST(Ledger, WithoutProcNothingIsZero) {
  const memdiag::Snapshot snapshot = memdiag::take_snapshot();
  rlimit files;
  ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &files));
  const rlimit none{0, files.rlim_max};
  ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &none));
  const auto [rows, warnings] =
      reader.take(snapshot, std::nullopt, Precision::exact);
  ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &files));
  EXPECT_EQ(2u, warnings.size()) << "maps, statm";
  ASSERT_FALSE(rows.empty());
  for (const ledger::Row &row : rows)
    EXPECT_FALSE(row.resident_bytes) << key_of(row);
}

TEST(Ledger, WhatTheKernelDoesNotTellIsEmptyWithAWarning) {
  memdiag::fault::arm(memdiag::fault::Point::pages);
  const auto [rows, warnings] = take(Precision::exact);
  memdiag::fault::disarm();
  EXPECT_EQ(1u, warnings.size());
  EXPECT_FALSE(rows.back().resident_bytes);
  EXPECT_FALSE(by_key(rows).at("pool/fts_query/live"));
}

#endif

}  // namespace memdiag_test
