/* The arguments that the server was started with. */

#include "plugin/memdiag/advice/start_option.h"

#include <string>

#include "plugin/memdiag/unittest/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  const std::string text(memdiag_test::text_of(bytes, size));
  std::vector<const char *> arguments;
  for (size_t at = 0; at <= text.size(); at = text.find('\0', at) + 1) {
    arguments.push_back(&text[at]);
    if (text.find('\0', at) == text.npos) break;
  }
  (void)memdiag::advisor::last_number(arguments, "innodb-buffer-pool-size");
  return 0;
}
