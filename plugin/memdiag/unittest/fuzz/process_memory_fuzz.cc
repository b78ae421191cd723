/* /proc/self/statm and /proc/self/maps. */

#include "plugin/memdiag/ledger/process_memory.h"

#include <algorithm>

#include "plugin/memdiag/unittest/fuzz/fuzz.h"

using namespace memdiag::process_memory;
using memdiag_test::require;

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  const std::string_view text = memdiag_test::text_of(bytes, size);
  (void)parse_statm(text);
  const Mappings found = parse_maps(text, "/usr/sbin/mysqld",
                                    {{0x1000, 0x5000}, {0x7000, 0x9000}});
  const auto ends = std::count(text.begin(), text.end(), '\n');
  require(found.bad_lines <= static_cast<size_t>(ends) + 1);
  for (const Mapping &one : found.all) require(one.range.begin < one.range.end);
  return 0;
}
