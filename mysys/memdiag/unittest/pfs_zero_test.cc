/* Statistics of Performance Schema whose empty state is zero. */

#include "storage/perfschema/memdiag_pfs_zero.h"

#include <gtest/gtest.h>

#include <climits>

namespace memdiag_test {

using memdiag::Minimum;

TEST(PfsZero, ZerosAreTheHighestMinimum) {
  Minimum minimum;
  memset(&minimum, 0, sizeof minimum);
  EXPECT_EQ(ULLONG_MAX, minimum);
  minimum = 0;
  EXPECT_EQ(0u, minimum);
  minimum = 12345;
  EXPECT_EQ(12345u, minimum);
  EXPECT_TRUE(minimum > 12344u && minimum < 12346u);
  minimum = ULLONG_MAX;
  const Minimum zeros{};
  EXPECT_EQ(0, memcmp(&minimum, &zeros, sizeof zeros));
}

TEST(PfsZero, OnlyWhatWasWrittenIsReset) {
  struct Stat {
    int first;
    char between[100];
    char last;
    int resets;
    void reset() {
      *this = Stat{};
      resets = 1;
    }
  } stat{};
  memdiag::reset_if_written(&stat);
  EXPECT_EQ(0, stat.resets);
  stat.last = 1;
  memdiag::reset_if_written(&stat);
  EXPECT_EQ(1, stat.resets);
  EXPECT_EQ(0, stat.last);
}

}  // namespace memdiag_test
