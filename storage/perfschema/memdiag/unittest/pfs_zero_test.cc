/* Statistics of Performance Schema whose empty state is zero. */

#include "storage/perfschema/memdiag/zero.h"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>

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

TEST(PfsZero, OnlyWhatWasWrittenIsEmptied) {
  struct Stat {
    int first{0};
    char between[103]{};  // no padding, whose bytes are anything
    char last{0};
  } stat;
  EXPECT_TRUE(memdiag::all_zero(&stat));
  stat.last = 1;
  EXPECT_FALSE(memdiag::all_zero(&stat));
  memdiag::empty_if_written(&stat);
  EXPECT_TRUE(memdiag::all_zero(&stat));

  const long page = sysconf(_SC_PAGESIZE);
  void *const zeros =
      mmap(nullptr, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(MAP_FAILED, zeros);
  // A write would end the process.
  memdiag::empty_if_written(static_cast<Stat *>(zeros));
  munmap(zeros, page);
}

TEST(PfsZero, OnlyWhatIsDifferentIsCopied) {
  struct Stat {
    char bytes[3000];
  };
  const Stat empty{};
  Stat stat{};
  stat.bytes[0] = stat.bytes[1300] = stat.bytes[2999] = 1;
  memdiag::copy_where_different(&stat, empty);
  EXPECT_EQ(0, memcmp(&stat, &empty, sizeof stat));

  const long page = sysconf(_SC_PAGESIZE);
  void *const pages =
      mmap(nullptr, 2 * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(MAP_FAILED, pages);
  // A write would end the process.
  memdiag::copy_where_different(static_cast<Stat *>(pages), empty);
  munmap(pages, 2 * page);
}

}  // namespace memdiag_test
