/* What changed from one profile to another. */

#include "plugin/memdiag/profile/difference.h"

#include <gtest/gtest.h>

#include "plugin/memdiag/unittest/profile_for_test.h"

namespace memdiag::profile {
namespace {

using memdiag_test::Profile_maker;

TEST(Difference, BySite) {
  Profile_maker before;
  const uint32_t grows = before.add_site({"f"});
  const uint32_t shrinks = before.add_site({"g"});
  const uint32_t stays = before.add_site({"h"});
  Profile_maker after;
  after.profile.sites = before.profile.sites;
  const uint32_t comes = after.add_site({"i"});
  before.add_live(grows, 100, 10, std::nullopt, 9);
  before.add_live(shrinks, 50);
  before.add_live(stays, 70);
  // Two statements share a site.
  after.add_live(grows, 200, 20, Digest{1}, 8);
  after.add_live(grows, 300, 30, Digest{2}, 8);
  after.add_live(shrinks, 20);
  after.add_live(stays, 70);
  after.add_live(comes, 60);
  const auto changes = difference_by_site(before.profile, after.profile);
  ASSERT_EQ(4u, changes.size());
  EXPECT_EQ(grows, changes[0].site);
  EXPECT_EQ(400, changes[0].change.bytes());
  EXPECT_EQ(40, changes[0].change.objects());
  EXPECT_EQ(5, changes[0].change.bytes_error());
  EXPECT_TRUE(changes[0].change.is_significant());
  EXPECT_EQ(comes, changes[1].site);
  EXPECT_EQ(60, changes[1].change.bytes());
  EXPECT_EQ(stays, changes[2].site);
  EXPECT_EQ(0, changes[2].change.bytes());
  EXPECT_FALSE(changes[2].change.is_significant());
  EXPECT_EQ(shrinks, changes[3].site);
  EXPECT_EQ(-30, changes[3].change.bytes());
}

TEST(Difference, WithinTwoErrorsItMayBeChance) {
  Change change;
  change.before = {100, 1, 3, 0};
  change.after = {104, 1, 1, 0};
  EXPECT_EQ(2, change.bytes_error());
  EXPECT_TRUE(change.is_significant());
  change.after.bytes = 103.9;
  EXPECT_FALSE(change.is_significant());
  change.after.bytes = 96;
  EXPECT_TRUE(change.is_significant());
}

TEST(Difference, BetweenRunsByNames) {
  Profile_maker before;
  before.add({"only_before", "main"}, 10);
  before.add({"f", "main"}, 100, "session");
  before.add({"f", "main"}, 7, "statement");
  Profile_maker after;
  after.add({"new", "main"}, 5);
  after.add({"my_malloc", "new", "main"}, 4);
  const uint32_t site = after.add({"f", "main"}, 150, "session");
  after.add_live(site, 150, 1, Digest{7});
  const auto changes = difference_by_stack(before.profile, before.symbols(),
                                           after.profile, after.symbols());
  ASSERT_EQ(5u, changes.size());
  EXPECT_EQ("session", changes[0].pool);
  EXPECT_EQ("main;f", changes[0].stack);
  EXPECT_EQ(200, changes[0].change.bytes());
  EXPECT_EQ("main;new", changes[1].stack);
  EXPECT_EQ("main;new;my_malloc", changes[2].stack);
  EXPECT_EQ("statement", changes[3].pool);
  EXPECT_EQ(-7, changes[3].change.bytes());
  EXPECT_EQ("main;only_before", changes[4].stack);
  const auto by_statement =
      difference_by_stack(before.profile, before.symbols(), after.profile,
                          after.symbols(), First_frame::digest);
  EXPECT_EQ(digest_text(Digest{7}) + ";main;f", by_statement[0].stack);
  EXPECT_EQ(150, by_statement[0].change.bytes());
  EXPECT_EQ("no statement;main;f", by_statement[1].stack);
  EXPECT_EQ(50, by_statement[1].change.bytes());
}

TEST(Difference, OfNothing) {
  EXPECT_TRUE(difference_by_site(Profile{}, Profile{}).empty());
  EXPECT_TRUE(
      difference_by_stack(Profile{}, Symbols(), Profile{}, Symbols()).empty());
}

}  // namespace
}  // namespace memdiag::profile
