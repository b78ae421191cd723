/* The difference between an earlier profile and a later one. */

#include "plugin/memdiag/profile_export/difference.h"

#include <gtest/gtest.h>

#include <random>

#include "mysys/memdiag/base/interruption.h"
#include "plugin/memdiag/unittest/mutate.h"
#include "plugin/memdiag/unittest/profile_for_test.h"

namespace memdiag::profile {
namespace {

using memdiag_test::Profile_maker;

Folded_bytes parsed(std::string_view text) {
  size_t wrong_line = 0;
  const auto stacks = parse_folded(text, &wrong_line);
  EXPECT_TRUE(stacks) << wrong_line;
  return stacks.value_or(Folded_bytes{});
}

size_t wrong_line_of(std::string_view text) {
  size_t wrong_line = 0;
  EXPECT_FALSE(parse_folded(text, &wrong_line)) << text;
  return wrong_line;
}

TEST(Difference, ComparesAKeptTextByTheNamesOfFunctions) {
  Profile_maker before;
  before.add({"only_before", "main"}, 10);
  before.add({"f", "main"}, 100, "session");
  before.add({"f", "main"}, 7, "statement");
  before.add({"same", "main"}, 8.4);
  const std::string kept =
      folded(before.profile, before.symbols(), First_frame::pool);
  // Another run: other addresses and numbers of sites.
  Profile_maker after;
  after.add({"new", "main"}, 5);
  after.add({"my_malloc", "new", "main"}, 4);
  const uint32_t site = after.add({"f", "main"}, 150, "session");
  after.add_live(site, 150, 1, Digest{7});
  after.add({"same", "main"}, 7.6);
  const auto changes = difference(parsed(kept), after.profile, after.symbols());
  EXPECT_EQ(
      "session;main;f 100 300\n"
      "general;main;new 0 5\n"
      "general;main;new;my_malloc 0 4\n"
      "statement;main;f 7 0\n"
      "general;main;only_before 10 0\n",
      folded_difference(changes));
  ASSERT_EQ(5u, changes.size());
  EXPECT_EQ("session", changes[0].pool());
  EXPECT_EQ(200, changes[0].change.bytes());
}

/** A map's nodes take 50 times a line of ten bytes. */
TEST(Difference, AKeptTextMayHaveSoManyStacks) {
  std::string text;
  for (size_t i = 0; i < most_earlier_stacks; ++i)
    text += std::to_string(i) + " 1\n";
  const size_t most = text.size();
  text += "5 1\n";
  EXPECT_EQ(most_earlier_stacks, parsed(text).size()) << "one that it has";
  text.resize(most);
  text += "new 1\n";
  EXPECT_EQ(most_earlier_stacks + 1, wrong_line_of(text));
}

TEST(Difference, KillEndsTheReadingOfAKeptText) {
  std::string text;
  for (size_t i = 0; i < 1000; ++i) text += std::to_string(i) + " 1\n";
  size_t asked = 0;
  const Interruptible soon(
      [](const void *context) {
        return ++*static_cast<size_t *>(const_cast<void *>(context)) > 100;
      },
      &asked);
  EXPECT_EQ(100u, parsed(text).size());
  asked = 0;
  Folded_bytes before;
  for (size_t i = 0; i < 1000; ++i) before[std::to_string(i)] = 1;
  Profile_maker after;
  EXPECT_GT(1000u, difference(before, after.profile, after.symbols()).size());
}

TEST(Difference, TheErrorOfAKeptTextIsThatOfTheRate) {
  Profile_maker after;
  const uint32_t site = after.add_site({"f"});
  after.add_live(site, 300, 1, std::nullopt, 5);
  const Symbols symbols = after.symbols();
  after.profile.sample_bytes = 16;
  EXPECT_EQ(1605, difference(parsed("general;f 100\n"), after.profile, symbols)
                      .at(0)
                      .change.bytes_variance());
  after.profile.sample_bytes = 1;
  EXPECT_EQ(5, difference(parsed("general;f 100\n"), after.profile, symbols)
                   .at(0)
                   .change.bytes_variance());
}

TEST(Difference, OfNothing) {
  EXPECT_TRUE(difference({}, Profile{}, Symbols()).empty());
  EXPECT_EQ("", folded_difference({}));
}

TEST(Parse_folded, WhatFoldedWrites) {
  EXPECT_EQ((Folded_bytes{{"a;b", 3}, {"a;operator new", 18}}),
            parsed("a;b 3\n\na;operator new 10\na;operator new 8\n\n"));
  EXPECT_TRUE(parsed("").empty());
  EXPECT_EQ((Folded_bytes{{"f", INT64_MAX}}),
            parsed("f 9223372036854775807\nf 1\n"));
}

TEST(Parse_folded, NamesTheFirstLineThatIsWrong) {
  EXPECT_EQ(1u, wrong_line_of("folded"));
  EXPECT_EQ(2u, wrong_line_of("a 1\nb;c 2"));
  EXPECT_EQ(3u, wrong_line_of("a 1\n\nb;c\n"));
  EXPECT_EQ(1u, wrong_line_of(" 1\n"));
  for (const char *number : {"", "-1", "+1", "1x", "0x1", "1.5",
                             "9223372036854775808", "99999999999999999999999"})
    EXPECT_EQ(1u, wrong_line_of(std::string("a ") + number + "\n")) << number;
}

TEST(Parse_folded, AnyTextDoesNoHarm) {
  std::mt19937 random(20261124);
  Profile_maker after;
  after.add({"f", "main"}, 150, "session");
  const Symbols symbols = after.symbols();
  for (int i = 0; i < 2000; ++i) {
    size_t wrong_line = 0;
    const std::string text = memdiag_test::mutate(
        "session;main;f 100\ngeneral;main;g 9\n;; 5\n", &random);
    if (const auto before = parse_folded(text, &wrong_line))
      (void)folded_difference(difference(*before, after.profile, symbols));
    else
      EXPECT_NE(0u, wrong_line);
  }
}

}  // namespace
}  // namespace memdiag::profile
