/* A text that memdiag_profile('difference', ...) is given. */

#include "plugin/memdiag/profile/folded.h"
#include "plugin/memdiag/profile_export/difference.h"
#include "plugin/memdiag/unittest/fuzz/fuzz.h"

using namespace memdiag::profile;
using memdiag_test::require;

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  size_t wrong_line = 0;
  const auto stacks =
      parse_folded(memdiag_test::text_of(bytes, size), &wrong_line);
  require(stacks.has_value() == (wrong_line == 0));
  if (!stacks) return 0;
  for (const auto &[stack, live] : *stacks)
    require(!stack.empty() && live <= INT64_MAX);
  const auto changes = difference(*stacks, {}, {});
  require(changes.size() <= stacks->size());
  (void)folded_difference(changes);
  return 0;
}
