/* The search for a document's matches in the match lists of a phrase. */

#include "storage/innobase/memdiag/fts_match.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace memdiag_test {

using memdiag::find_match;

size_t comparisons = 0;

/** The number of a document. It counts how often one is compared. */
struct Doc_id {
  uint64_t number;
  bool operator==(const Doc_id &other) const {
    ++comparisons;
    return number == other.number;
  }
  bool operator<(const Doc_id &other) const {
    ++comparisons;
    return number < other.number;
  }
};

struct Match {
  Doc_id doc_id;
};

/** Matches in the documents 1, 0, 3, 2, 5, 4, ...: of each two, the later one
was committed first. */
std::vector<Match> out_of_order(size_t count) {
  std::vector<Match> matches;
  for (uint64_t i = 0; i < count; ++i) matches.push_back({{i ^ 1}});
  return matches;
}

class FtsMatch : public testing::Test {
  void SetUp() override { comparisons = 0; }
};

TEST_F(FtsMatch, AllSearchesOfAQueryReadTheListOnce) {
  const std::vector<Match> matches = out_of_order(10000);
  size_t next = 0;
  size_t hits = 0;
  for (size_t i = 1; i < matches.size(); i += 10) {
    EXPECT_EQ(&matches[i], find_match(matches.data(), matches.size(),
                                      matches[i].doc_id, &next));
    ++hits;
  }
  // Each search begins with the match that the last one found.
  EXPECT_LE(comparisons, matches.size() + hits);
}

TEST_F(FtsMatch, AMatchBeforeTheLastOneIsFound) {
  const std::vector<Match> matches = out_of_order(100);
  size_t next = 0;
  for (const size_t i : {99, 0, 50, 49, 50, 99})
    EXPECT_EQ(&matches[i], find_match(matches.data(), matches.size(),
                                      matches[i].doc_id, &next));
}

TEST_F(FtsMatch, WithoutAMatchEachIsReadOnce) {
  const std::vector<Match> matches = out_of_order(100);
  for (size_t begin : {size_t{0}, size_t{37}, matches.size()}) {
    comparisons = 0;
    size_t next = begin;
    EXPECT_EQ(nullptr,
              find_match(matches.data(), matches.size(), Doc_id{1000}, &next));
    EXPECT_EQ(matches.size(), comparisons);
    EXPECT_EQ(&matches[5], find_match(matches.data(), matches.size(),
                                      matches[5].doc_id, &next));
  }
  size_t next = 0;
  EXPECT_EQ(nullptr, find_match<Match>(nullptr, size_t{0}, Doc_id{0}, &next));
}

}  // namespace memdiag_test
