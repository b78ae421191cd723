/* The count of different words. */

#include "storage/innobase/memdiag/fts_count.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace memdiag_test {

using memdiag::Different;
using memdiag::hash_of_word;

uint64_t hash_of(const std::string &word) {
  return hash_of_word(reinterpret_cast<const unsigned char *>(word.data()),
                      word.size());
}

uint64_t counted(uint64_t words, unsigned times) {
  Different different;
  for (unsigned i = 0; i < times; ++i)
    for (uint64_t word = 0; word < words; ++word)
      different.add(hash_of("word" + std::to_string(word)));
  return different.count();
}

TEST(Fts_count, no_word_is_none) { EXPECT_EQ(0u, Different{}.count()); }

TEST(Fts_count, few_and_many_words_are_counted_within_three_percent) {
  for (const uint64_t words : {10, 1000, 30'000, 50'000, 300'000, 2'000'000}) {
    SCOPED_TRACE(words);
    EXPECT_NEAR(words, counted(words, 1), 0.03 * words);
  }
}

TEST(Fts_count, a_word_counts_once) {
  EXPECT_EQ(counted(20'000, 1), counted(20'000, 5));
}

TEST(Fts_count, the_case_of_a_letter_makes_no_other_word) {
  EXPECT_EQ(hash_of("Fluss_7Z"), hash_of("fluss_7z"));
  EXPECT_NE(hash_of("fluss"), hash_of("flusz"));
  EXPECT_NE(hash_of("@"), hash_of("`"));
}

TEST(Fts_count, the_longest_run_is_counted) {
  Different different;
  different.add(0);
  different.add(UINT64_MAX);
  EXPECT_EQ(2u, different.count());
}

}  // namespace memdiag_test
