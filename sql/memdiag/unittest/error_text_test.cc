/* The text of a prepared statement's error. */

#include "sql/memdiag/error_text.h"

#include <cstdio>
#include <cstring>

#include "mysys/memdiag/unittest/test.h"

namespace memdiag_test {

TEST(ErrorText, TakesNoMemoryUntilItIsWritten) {
  memdiag::Error_text<512> text;
  *text = '\0';
  EXPECT_FALSE(text.has_buffer());
  EXPECT_LE(sizeof(text), sizeof(void *));
}

TEST(ErrorText, IsWrittenAndReadAsAnArray) {
  memdiag::Error_text<16> text;
  snprintf(text, sizeof(text), "%d is wrong", 7);
  EXPECT_STREQ("7 is wrong", text);
  *text = '\0';
  EXPECT_EQ(0u, strlen(text));
}

TEST(ErrorText, TakesAsMuchOfATextAsTheArray) {
  memdiag::Error_text<16> text;
  snprintf(text, sizeof(text), "%s", "Incorrect arguments");
  EXPECT_STREQ("Incorrect argum", text);
}

TEST(ErrorText, IsEmptyIfItWasNeverWritten) {
  memdiag::Error_text<16> text;
  EXPECT_STREQ("", text);
}

}  // namespace memdiag_test
