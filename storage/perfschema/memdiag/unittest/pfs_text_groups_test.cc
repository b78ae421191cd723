/* Places of old statements' texts in Performance Schema's memory. */

#include "storage/perfschema/memdiag/text_groups.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <vector>

namespace memdiag_test {

using memdiag::halvings_for;
using memdiag::Text_groups;
using memdiag::Text_place;

TEST(PfsTextGroups, APartHoldsTheText) {
  for (size_t length : {0u, 1u, 7u, 8u, 70u, 1000u, 1024u, 1048576u})
    for (size_t used : {0u, 1u, 8u, 100u, 128u, 129u, 512u, 513u, 1024u}) {
      if (used > length) continue;
      const Text_place place{0, 0, halvings_for(used, length)};
      EXPECT_LE(used, place.size(length)) << length;
    }
  EXPECT_EQ(3u, halvings_for(128, 1024));
  EXPECT_EQ(2u, halvings_for(129, 1024));
  EXPECT_EQ(0u, halvings_for(513, 1024));
}

TEST(PfsTextGroups, ShortTextsShareAGroup) {
  Text_groups groups(10);
  for (unsigned i = 0; i < 8; ++i) {
    const Text_place place = groups.find(3);
    EXPECT_EQ((Text_place{0, i, 3}), place);
    EXPECT_EQ(i * 128, place.begin(1024));
    groups.take(place);
  }
  EXPECT_EQ((Text_place{1, 0, 3}), groups.find(3));
}

TEST(PfsTextGroups, TheLastGroupIsNotShared) {
  Text_groups groups(2);
  groups.take({0, 0, 0});
  EXPECT_EQ((Text_place{1, 0, 0}), groups.find(3));
  EXPECT_EQ((Text_place{0, 0, 0}), Text_groups(1).find(2));
}

TEST(PfsTextGroups, EachRecordAlwaysHasAPlaceOfItsOwn) {
  std::mt19937 random(1);
  for (unsigned records : {1u, 2u, 10u, Text_groups::most}) {
    std::vector<std::optional<Text_place>> places(records);
    for (unsigned turn = 0; turn < 20000; ++turn) {
      const unsigned index = turn % records;
      places[index].reset();
      Text_groups groups(records);
      std::vector<unsigned> taken(records);
      for (const auto &place : places)
        if (place) groups.take(*place);
      const Text_place found = groups.find(random() % 4);
      ASSERT_LT(found.group, records);
      places[index] = found;
      for (const auto &place : places) {
        if (!place) continue;
        const size_t begin = place->begin(8);
        for (size_t at = begin; at < begin + place->size(8); ++at) {
          ASSERT_EQ(0u, taken[place->group] & (1U << at)) << records;
          taken[place->group] |= 1U << at;
        }
      }
    }
  }
}

}  // namespace memdiag_test
