/*
  The sampler without memory: a figure that it has none for is unknown, and it
  goes on. A program of its own, because its operator new is; only in presets
  with a sanitizer, because elsewhere that is jemalloc's, which is linked whole.
*/

#include "plugin/memdiag/history/sampler.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

#include "plugin/memdiag/unittest/own_new.h"

namespace {

constinit std::atomic<bool> fails{false};

}  // namespace

bool memdiag_test::may_allocate() noexcept { return !fails; }

namespace memdiag {
namespace {

using black_box::Sample;
using black_box::unknown;

uint64_t clock_now_us = 1;
uint64_t test_clock(clockid_t) { return clock_now_us; }

TEST(HistoryMemory, WithoutItFiguresAreUnknownAndTheSamplerGoesOn) {
  history::Sampler sampler(nullptr, test_clock);
  EXPECT_EQ(0u, sampler.take().buffer_pool_bytes);
  clock_now_us += 60'000'000;
  fails = true;
  const Sample without = sampler.take();
  fails = false;
  EXPECT_EQ(unknown, without.rss_bytes);
  EXPECT_EQ(unknown, without.limit_bytes);
  EXPECT_EQ(unknown, without.allocated_bytes);
  EXPECT_EQ(unknown, without.buffer_pool_bytes);
  clock_now_us += 60'000'000;
  const Sample with = sampler.take();
  EXPECT_NE(unknown, with.rss_bytes);
  EXPECT_NE(unknown, with.limit_bytes);
  EXPECT_NE(unknown, with.allocated_bytes);
  EXPECT_EQ(0u, with.buffer_pool_bytes);
}

}  // namespace
}  // namespace memdiag

#else

TEST(HistoryMemory, WithoutItFiguresAreUnknownAndTheSamplerGoesOn) {
  GTEST_SKIP() << "operator new is jemalloc's here";
}

#endif
