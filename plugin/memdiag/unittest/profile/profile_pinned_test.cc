/*
  Pinned pages: many blocks of one size class come, most of them go, and
  MEMDIAG_PINNED names the class and the function whose blocks stay.
*/

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "mysys/memdiag/base/clock.h"
#include "mysys/memdiag/jemalloc/mallctl.h"
#include "mysys/memdiag/pages/regions.h"
#include "mysys/memdiag/pools/pools.h"
#include "mysys/memdiag/profiling/profiler.h"
#include "mysys/memdiag/unittest/stopped_in_malloc.h"
#include "plugin/memdiag/allocator/allocator_snapshot.h"
#include "plugin/memdiag/profile/profile_rows.h"
#include "plugin/memdiag/profile/reader.h"

// Names of C in the symbol table.
extern "C" {
[[gnu::noinline]] void *keeps_blocks_for_long(memdiag::Pool pool, size_t size) {
  void *const block = memdiag::pools::allocate(pool, size);
  asm volatile("" ::"r"(block) : "memory");
  return block;
}
[[gnu::noinline]] void *keeps_few_blocks(memdiag::Pool pool, size_t size) {
  void *const block = memdiag::pools::allocate(pool, size);
  asm volatile("" ::"r"(block) : "memory");
  return block;
}
[[gnu::noinline]] void *gives_them_back(memdiag::Pool pool, size_t size) {
  void *const block = memdiag::pools::allocate(pool, size);
  asm volatile("" ::"r"(block) : "memory");
  return block;
}
}

namespace memdiag::profile {
namespace {

constexpr Pool pool = Pool::ddl;
constexpr size_t size = 320;

TEST(Pinned, TheStackWhoseOldBlocksKeepNearlyEmptySlabs) {
  regions::add_stack_of_thread();
  ASSERT_EQ(0, profiling::switch_on({4096, 64 << 20}).error);
  // This thread's first interval ends.
  pools::free(pool, pools::allocate(pool, 8 << 20), 8 << 20);
  std::vector<void *> kept;
  std::vector<void *> passing;
  // A twentieth of the class stays, all over its slabs: some 250 samples.
  for (int i = 0; i < 60000; ++i)
    if (i % 20 == 0)
      kept.push_back(i % 400 == 0 ? keeps_few_blocks(pool, size)
                                  : keeps_blocks_for_long(pool, size));
    else
      passing.push_back(gives_them_back(pool, size));
  for (void *const block : passing) pools::free(pool, block, size);

  Samples samples{};
  const auto profile = take_profile(&samples);
  ASSERT_TRUE(profile && !samples.samples.empty());
  const std::vector<Bin_row> bins = take_snapshot(detail_of<Bin_row>).bins;
  const Symbols symbols(*profile);
  // They are new yet.
  for (const Pinned_row &row : pinned_rows(bins, samples, *profile, symbols))
    EXPECT_NE(size, row.size);
  samples.time_us += old_us + 1;
  const auto rows = pinned_rows(bins, samples, *profile, symbols);
  ASSERT_FALSE(rows.empty());
  const Pinned_row &first = rows.front();
  EXPECT_EQ("ddl", first.pool);
  EXPECT_EQ(size, first.size);
  EXPECT_LT(first.utilisation, 0.15);
  EXPECT_GT(first.waste_bytes, 10u << 20);
  ASSERT_TRUE(first.frames);
  EXPECT_NE(std::string::npos, first.frames->find("keeps_blocks_for_long"))
      << *first.frames;
  EXPECT_NEAR(2850, static_cast<double>(first.objects),
              5 * static_cast<double>(first.objects_error));
  EXPECT_GT(first.share, 0.6);
  // Ages in any order, evenly up to 1000 seconds more.
  samples.time_us += 1'000'000'000;
  for (size_t i = 0; i < samples.samples.size(); ++i)
    samples.samples[i].time_us += i * 7919 % 1000 * 1'000'000;
  const auto later = pinned_rows(bins, samples, *profile, symbols);
  ASSERT_FALSE(later.empty());
  EXPECT_NEAR(500 + static_cast<double>(old_us) / 1e6, later.front().median_s,
              150);
  // A stack that came after the profile was taken has no frames in it.
  for (const Pinned_row &row : rows)
    EXPECT_EQ(std::string::npos,
              row.frames.value_or("").find("gives_them_back"));
  for (void *const block : kept) pools::free(pool, block, size);
  profiling::switch_off();
}

/** The clock of the wall was set back by an hour. */
uint64_t clock_that_was_set_us(clockid_t clock) {
  return system_clock_us(clock) -
         (clock == CLOCK_REALTIME ? 3'600'000'000u : 0);
}

TEST(Profile, ASampleIsAsOldAsItIsWhereTheClockWasSet) {
  ASSERT_EQ(0, profiling::switch_on({4096, 64 << 20}).error);
  void *const block = pools::allocate(pool, 8 << 20);
  set_clock_for_test(clock_that_was_set_us);
  const auto taken = take_samples();
  set_clock_for_test(nullptr);
  pools::free(pool, block, 8 << 20);
  profiling::switch_off();
  ASSERT_TRUE(taken);
  ASSERT_FALSE(taken->samples.empty());
  for (const Live_sample &sample : taken->samples) {
    EXPECT_LE(sample.time_us, taken->time_us);
    EXPECT_LT(taken->time_us - 600'000'000, sample.time_us);
  }
}

// switch_off() waits for readers for a second, and leaves the memory to them.
TEST(Profile, AReaderThatWaitsInMallocDoesNotCostItsMemory) {
  namespace stopped_in_malloc = memdiag_test::stopped_in_malloc;
  const auto profiles = [] {
    return regions::totals()[static_cast<size_t>(Region_kind::profile)].count;
  };
  for (const auto read :
       {+[] { (void)take_profile(); }, +[] { (void)take_samples(); }}) {
    ASSERT_EQ(0, profiling::switch_on({4096, 64 << 20}).error);
    std::vector<void *> blocks(1000);
    for (void *&block : blocks) block = keeps_few_blocks(pool, 4096);
    const unsigned before = stopped_in_malloc::stopped;
    (void)memdiag_test::others_go_on(read, [&] {
      if (stopped_in_malloc::stopped == before) return;
      profiling::switch_off();
      EXPECT_EQ(0u, profiles()) << "it waits without a View";
    });
    EXPECT_EQ(mallctl::serves_malloc(), before != stopped_in_malloc::stopped)
        << "it may wait";
    profiling::switch_off();
    EXPECT_EQ(0u, profiles());
    for (void *const block : blocks) pools::free(pool, block, 4096);
  }
}

}  // namespace
}  // namespace memdiag::profile
