/* Which full-text caches are asked for, and what they gave. */

#include "storage/innobase/memdiag/asked_caches.h"

#include <gtest/gtest.h>

namespace memdiag::innodb {
namespace {

constexpr uint64_t second = 1'000'000;
constexpr uint64_t mb = 1 << 20;

/** The first look, a hundred seconds after the machine's start. */
Asked_caches asked_for_two() {
  Asked_caches caches;
  caches.begin(100 * second);
  EXPECT_TRUE(caches.see(1, 8 * mb));
  EXPECT_TRUE(caches.see(2, mb));
  EXPECT_EQ(0U, caches.end());
  return caches;
}

TEST(Asked_caches, one_is_asked_for_once_while_it_is_written) {
  Asked_caches caches;
  for (uint64_t i = 0; i < 5; ++i) {
    caches.begin((100 + i) * second);
    EXPECT_EQ(i == 0, caches.see(1, 8 * mb)) << i;
    EXPECT_EQ(0U, caches.end()) << i;
  }
  caches.begin(105 * second);
  EXPECT_EQ(8 * mb, caches.end()) << "it was written, or the table is dropped";
  caches.begin(106 * second);
  EXPECT_EQ(0U, caches.end()) << "that counts once";
}

TEST(Asked_caches, one_that_is_filled_anew_is_asked_for_again) {
  Asked_caches caches = asked_for_two();
  caches.begin(101 * second);
  EXPECT_TRUE(caches.see(1, 3 * mb)) << "it was written";
  EXPECT_TRUE(caches.see(2, 2 * mb)) << "it has grown";
  EXPECT_EQ(5 * mb, caches.end());
}

TEST(Asked_caches, one_that_could_not_be_written_is_asked_for_each_minute) {
  Asked_caches caches = asked_for_two();
  for (uint64_t i = 1; i <= 130; ++i) {
    caches.begin((100 + i) * second);
    EXPECT_EQ(i % 60 == 0, caches.see(1, 8 * mb)) << i;
    EXPECT_EQ(i == 1 ? mb : 0U, caches.end()) << i;
  }
}

TEST(Asked_caches, what_was_asked_long_ago_is_forgotten) {
  Asked_caches caches = asked_for_two();
  caches.begin(131 * second);
  EXPECT_TRUE(caches.see(2, mb));
  EXPECT_EQ(0U, caches.end()) << "it is not known who wrote it";
}

}  // namespace
}  // namespace memdiag::innodb
