// elapsed.h: time that has passed by a clock that may be set.

#include "plugin/memdiag/base/elapsed.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace memdiag_test {

using memdiag::may_have_passed;

TEST(Elapsed, TimePassesAtItsEnd) {
  EXPECT_FALSE(may_have_passed(10, 100, 100));
  EXPECT_FALSE(may_have_passed(10, 100, 109));
  EXPECT_TRUE(may_have_passed(10, 100, 110));
  EXPECT_TRUE(may_have_passed(10, 0, UINT64_MAX));
}

TEST(Elapsed, FromAStartThatIsToComeAnyTimeMayHavePassed) {
  EXPECT_TRUE(may_have_passed(10, 101, 100));
  EXPECT_TRUE(may_have_passed(10, UINT64_MAX, 0));
}

}  // namespace memdiag_test
