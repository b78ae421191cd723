/* The containers of the data dictionary's property lists. */

#include "sql/memdiag/properties.h"

#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <random>
#include <string>

namespace memdiag_test {

using Pairs = memdiag::Pairs<std::string>;
using Valid_keys = memdiag::Valid_keys<std::string>;
using Map = std::map<std::string, std::string>;

void expect_same(const Map &map, const Pairs &pairs) {
  ASSERT_EQ(map.size(), pairs.size());
  EXPECT_EQ(map.empty(), pairs.empty());
  auto other = pairs.begin();
  for (const auto &[key, value] : map) {
    EXPECT_EQ(key, other->first);
    EXPECT_EQ(value, other->second);
    ++other;
  }
  EXPECT_EQ(pairs.end(), other);
}

TEST(Properties, PairsDoWhatAMapDoes) {
  Map map;
  Pairs pairs;
  std::mt19937 random(20261123);
  for (int step = 0; step < 5000; ++step) {
    const std::string key(1, static_cast<char>('a' + random() % 12));
    const std::string value = std::to_string(step);
    switch (random() % 8) {
      case 0: {
        const auto in_map = map.find(key);
        const auto in_pairs = pairs.find(key);
        ASSERT_EQ(in_map == map.end(), in_pairs == pairs.end());
        if (in_map == map.end()) break;
        map.erase(in_map);
        pairs.erase(in_pairs);
        break;
      }
      case 1:
        map.insert(map.begin(), {key, value});
        pairs.insert(pairs.begin(), {key, value});
        break;
      case 2:
        if (step % 50 != 0) break;
        map.clear();
        pairs.clear();
        break;
      default:
        map[key] = value;
        pairs[key] = value;
    }
    expect_same(map, pairs);
    const Pairs &constant = pairs;
    ASSERT_EQ(map.find(key) == map.end(), constant.find(key) == constant.end());
  }
}

TEST(Properties, PairsTakeCopiesOfPairs) {
  const Map from{{"one", "1"}, {"three", "3"}, {"two", "2"}};
  Pairs to;
  to["two"] = "II";
  std::copy(from.begin(), from.end(), std::inserter(to, to.begin()));
  expect_same({{"one", "1"}, {"three", "3"}, {"two", "II"}}, to);
  const Pairs copy(to);
  to["one"] = "I";
  EXPECT_EQ("1", copy.find("one")->second);
}

TEST(Properties, PairsHaveNoSpareRoom) {
  Pairs pairs;
  for (const char *key : {"trx_id", "id", "space_id", "root", "table_id"}) {
    pairs[key] = "1";
    EXPECT_EQ(pairs.size(), pairs.capacity());
  }
}

TEST(Properties, KeysAreShared) {
  const std::set<std::string> of_columns{"storage", "srs"};
  const Valid_keys first(of_columns);
  Valid_keys second(of_columns);
  EXPECT_EQ(&*first.begin(), &*of_columns.begin());
  EXPECT_NE(first.end(), first.find("storage"));
  EXPECT_EQ(first.end(), first.find("other"));
  EXPECT_FALSE(first.empty());

  const std::set<std::string> more{"other"};
  second.insert(more.begin(), more.end());
  EXPECT_EQ(3u, second.size());
  EXPECT_NE(second.end(), second.find("other"));
  EXPECT_EQ(first.end(), first.find("other"));
  second.clear();
  EXPECT_TRUE(second.empty());
  EXPECT_TRUE(Valid_keys().empty());
}

}  // namespace memdiag_test
