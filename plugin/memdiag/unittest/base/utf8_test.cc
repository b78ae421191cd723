// utf8.h: what a column holds of texts of any origin.

#include "plugin/memdiag/base/utf8.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace memdiag::utf8 {
namespace {

std::string cut(std::string_view text, size_t characters) {
  std::string room = "of before";
  return std::string(fitting(text, characters, &room));
}

TEST(Utf8, ATextThatFitsStays) {
  for (const std::string_view text :
       {"", "a", "abc", "\u00e9t\u00e9", "\u20ac\uffff"})
    EXPECT_EQ(cut(text, 3), text);
}

TEST(Utf8, PlainTextIsNotCopied) {
  const std::string text(300, 'x');
  std::string room;
  EXPECT_EQ(fitting(text, 255, &room).data(), text.data());
  EXPECT_EQ(fitting(text, 255, &room).size(), 255u);
}

TEST(Utf8, CharactersAreCountedAndNotCut) {
  EXPECT_EQ(cut("\u20ac\u20ac\u20ac", 2), "\u20ac\u20ac");
  EXPECT_EQ(cut("a\u00e9\u20acx", 3), "a\u00e9\u20ac");
  // The plain part fills the column.
  EXPECT_EQ(cut("abc\u00e9", 3), "abc");
  EXPECT_EQ(cut("\u00e9", 0), "");
}

TEST(Utf8, BytesThatAreNoCharacter) {
  EXPECT_EQ(cut("\xff"
                "a\x80",
                9),
            "?a?");
  // Longer than needed, a surrogate, beyond Unicode, cut short.
  EXPECT_EQ(cut("\xc0\x80", 9), "??");
  EXPECT_EQ(cut("\xe0\x80\xaf", 9), "???");
  EXPECT_EQ(cut("\xed\xa0\x80", 9), "???");
  EXPECT_EQ(cut("\xf4\x90\x80\x80", 9), "????");
  EXPECT_EQ(cut("\u00e9\xe2\x82", 9), "\u00e9??");
}

TEST(Utf8, CharactersBeyondTheServersThreeBytes) {
  EXPECT_EQ(cut("a\U0001f980z", 9), "a?z");
  EXPECT_EQ(cut("\U0001f980\U0001f980", 1), "?");
}

}  // namespace
}  // namespace memdiag::utf8
