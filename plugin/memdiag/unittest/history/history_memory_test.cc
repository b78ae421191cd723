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

namespace {

constinit std::atomic<bool> fails{false};

}  // namespace

void *operator new(size_t size, const std::nothrow_t &) noexcept {
  return fails ? nullptr : malloc(size == 0 ? 1 : size);
}
void *operator new(size_t size) {
  void *const block = operator new(size, std::nothrow);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}
// Inlined, they look like a free() of what new returned (GCC 12).
[[gnu::noinline]] void operator delete(void *block) noexcept { free(block); }
[[gnu::noinline]] void operator delete(void *block, size_t) noexcept {
  free(block);
}

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

#endif
