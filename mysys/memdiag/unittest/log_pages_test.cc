/* Which pages of the log buffer become resident next. */

#include "storage/innobase/memdiag_log_pages.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace memdiag_test {

using memdiag::Ring_ahead;

constexpr size_t ring_bytes = size_t{16} << 20;
constexpr uint64_t start = 5 * ring_bytes + 1000;

/** The bytes of the range; 0 without one. */
size_t bytes(Ring_ahead &ahead, uint64_t position) {
  const auto range = ahead.next(position);
  return range ? range->bytes : 0;
}

TEST(LogPages, NothingIsAheadOfARingThatIsNotWritten) {
  Ring_ahead ahead(ring_bytes);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(0u, bytes(ahead, start));
}

TEST(LogPages, ARangeFollowsWhatWasWritten) {
  Ring_ahead ahead(ring_bytes);
  ahead.next(start);
  const auto range = ahead.next(start + 100);
  ASSERT_TRUE(range);
  EXPECT_EQ(1100u, range->offset);
  EXPECT_EQ(100 * Ring_ahead::times_ahead, range->bytes);
  // The distance stays when less is written, and what is done is not repeated.
  EXPECT_EQ(10u, bytes(ahead, start + 110));
  EXPECT_EQ(0u, bytes(ahead, start + 110));
}

TEST(LogPages, TheDistanceHasALimit) {
  Ring_ahead ahead(ring_bytes);
  ahead.next(start);
  EXPECT_EQ(Ring_ahead::most_ahead, bytes(ahead, start + ring_bytes / 2));
}

TEST(LogPages, AWriterThatIsFasterIsNotFollowed) {
  Ring_ahead ahead(ring_bytes);
  ahead.next(start);
  ahead.next(start + 100);
  const auto range = ahead.next(start + 10'000);
  ASSERT_TRUE(range);
  EXPECT_EQ(11'000u, range->offset);
}

TEST(LogPages, EachByteIsMadeOnceAndThenNone) {
  constexpr uint64_t step = ring_bytes / 64;
  Ring_ahead ahead(ring_bytes);
  ahead.next(start);
  ahead.next(start + 1);  // the distance is small at first
  std::vector<bool> made(ring_bytes / 64);
  for (uint64_t position = start + 1; position < start + 3 * ring_bytes;
       position += step) {
    const auto range = ahead.next(position);
    if (!range) continue;
    ASSERT_LE(range->offset + range->bytes, ring_bytes);
    EXPECT_LT(position, start + ring_bytes);
    for (size_t at = range->offset; at < range->offset + range->bytes; at += 64)
      made.at(at / 64) = true;
  }
  // The first step was written by others.
  size_t missing = 0;
  for (const bool one : made) missing += one ? 0 : 64;
  EXPECT_LE(missing, step + 64);
  EXPECT_EQ(0u, bytes(ahead, start + 4 * ring_bytes));
}

}  // namespace memdiag_test
