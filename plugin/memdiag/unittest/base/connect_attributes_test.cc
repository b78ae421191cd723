#include "plugin/memdiag/base/connect_attributes.h"

#include <gtest/gtest.h>

#include <string>

namespace memdiag {
namespace {

using namespace std::string_literals;

std::string encoded(const std::string &text) {
  if (text.size() < 251) return static_cast<char>(text.size()) + text;
  return "\xfc"s + static_cast<char>(text.size() & 255) +
         static_cast<char>(text.size() >> 8) + text;
}

std::string pair(const std::string &name, const std::string &value) {
  return encoded(name) + encoded(value);
}

TEST(ConnectAttributes, FindsTheNameAnywhere) {
  const std::string wanted = pair("program_name", "mysql");
  for (const std::string &before :
       {""s, pair("_os", "Linux"), pair("_pid", "1") + pair("a", "")})
    for (const std::string &after : {""s, pair("_platform", "x86_64")})
      EXPECT_EQ(find_attribute(before + wanted + after, "program_name"),
                wanted);
}

TEST(ConnectAttributes, NeitherBeginningsNorValuesAreTheName) {
  EXPECT_FALSE(find_attribute(pair("program", "a") +
                                  pair("program_names", "b") +
                                  pair("x", "program_name"),
                              "program_name"));
}

TEST(ConnectAttributes, LongValues) {
  const std::string wanted = pair("program_name", std::string(1000, 'x'));
  EXPECT_EQ(
      find_attribute(pair("a", std::string(300, 'b')) + wanted, "program_name"),
      wanted);
}

TEST(ConnectAttributes, EachPlaceWhereTheTextIsCutShort) {
  const std::string all = pair("a", std::string(300, 'b')) +
                          pair("program_name", std::string(260, 'c'));
  for (size_t length = 0; length < all.size(); ++length)
    EXPECT_FALSE(find_attribute(all.substr(0, length), "program_name"))
        << length;
  EXPECT_TRUE(find_attribute(all, "program_name"));
}

TEST(ConnectAttributes, LengthsThatAreNone) {
  for (const std::string &bad :
       {"\xfb"s, "\xff"s, ""s + '\0', "\xfe\xff\xff\xff\xff\xff\xff\xff\xff"s,
        "\xfd\xff\xff\xff"s})
    EXPECT_FALSE(
        find_attribute(bad + pair("program_name", "x"), "program_name"));
}

}  // namespace
}  // namespace memdiag
