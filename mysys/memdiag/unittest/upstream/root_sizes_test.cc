/* How much memory roots needed for the same text before. */

#include "mysys/memdiag/upstream/root_sizes.h"

#include "mysys/memdiag/unittest/test.h"

namespace memdiag_test {

TEST(RootSizes, WhatWasNotedIsFound) {
  memdiag::Root_sizes sizes;
  const uint64_t text = 0x123456789abcdef0;
  EXPECT_EQ(0u, sizes.find(text));
  sizes.note(text, 9384);
  EXPECT_EQ(9384u, sizes.find(text));
  sizes.note(text, 9392);
  EXPECT_EQ(9392u, sizes.find(text));
  sizes.note(text, UINT32_MAX);
  EXPECT_EQ(UINT32_MAX, sizes.find(text));
}

TEST(RootSizes, AnotherTextIsUnknown) {
  memdiag::Root_sizes sizes;
  const uint64_t text = 0x123456789abcdef0;
  sizes.note(text, 9384);
  // In the same entry, and next to it.
  EXPECT_EQ(0u, sizes.find(text ^ (uint64_t{1} << 40)));
  EXPECT_EQ(0u, sizes.find(text + 1));
  sizes.note(text ^ (uint64_t{1} << 40), 100);
  EXPECT_EQ(0u, sizes.find(text));
}

TEST(RootSizes, WhatIsTooLargeIsNotNoted) {
  memdiag::Root_sizes sizes;
  sizes.note(7, size_t{UINT32_MAX} + 1);
  EXPECT_EQ(0u, sizes.find(7));
}

}  // namespace memdiag_test
