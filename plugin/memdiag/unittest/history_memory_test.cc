/*
  The sampler without memory: a figure that it has none for is unknown, and it
  goes on. A program of its own, because its operator new is; only in presets
  with a sanitizer, because elsewhere that is jemalloc's, which is linked whole.
*/

#include "plugin/memdiag/history/history.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <string>

#include "mysys/memdiag/unittest/test.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

namespace {

/** Whether threads that are not the test's own get no memory. */
constinit std::atomic<bool> fails{false};
constinit thread_local bool is_of_test = false;

}  // namespace

void *operator new(size_t size, const std::nothrow_t &) noexcept {
  return fails && !is_of_test ? nullptr : malloc(size == 0 ? 1 : size);
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

/** The first sample of which a figure is, or is no more, unknown. */
Sample last_when(uint64_t Sample::*figure, bool is_unknown) {
  for (int i = 0; i < 1000; ++i) {
    const auto samples = history::this_run();
    if (!samples.empty() && (samples.back().*figure == unknown) == is_unknown)
      return samples.back();
    memdiag_test::sleep_ms(10);
  }
  ADD_FAILURE() << "in vain";
  return {};
}

TEST(HistoryMemory, WithoutItFiguresAreUnknownAndTheThreadGoesOn) {
  is_of_test = true;
  char name[] = "/tmp/memdiag_history.XXXXXX";
  const std::string folder = mkdtemp(name);
  history::interval_ms = 10;
  history::capacity = 100;
  ASSERT_EQ(
      0, history::start(folder + "/" + history::file_name, 90704).thread_error);
  EXPECT_EQ(0u, last_when(&Sample::buffer_pool_bytes, false).buffer_pool_bytes);
  fails = true;
  (void)last_when(&Sample::rss_bytes, true);
  const Sample without = last_when(&Sample::buffer_pool_bytes, true);
  fails = false;
  const Sample with = last_when(&Sample::buffer_pool_bytes, false);
  EXPECT_LT(without.sequence, with.sequence);
  EXPECT_EQ(0u, with.buffer_pool_bytes);
  history::stop();
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace memdiag

#endif
