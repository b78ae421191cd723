/* Texts of /proc, /sys and control groups. */

#include "plugin/memdiag/unittest/fuzz/fuzz.h"
#include "plugin/memdiag/unittest/host/kernel_text_rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  testing::GTEST_FLAG(break_on_failure) = true;
  memdiag_test::expect_sane(memdiag_test::text_of(bytes, size));
  return 0;
}
