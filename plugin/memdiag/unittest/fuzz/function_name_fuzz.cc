/* Names of functions in the symbol tables of other libraries, and what shows
them. */

#include "plugin/memdiag/profile/function_name.h"

#include <algorithm>

#include "plugin/memdiag/profile/frames_text.h"
#include "plugin/memdiag/profile_export/xml_text.h"
#include "plugin/memdiag/unittest/fuzz/fuzz.h"

using namespace memdiag::profile;
using memdiag_test::require;

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  const std::string text(memdiag_test::text_of(bytes, size));
  require(shorten(text).size() <= text.size());
  const std::string name = function_name(text);
  (void)kind_of_frame(name);
  for (const char byte : folded_name(name))
    require(byte != ';' && static_cast<unsigned char>(byte) >= ' ');
  for (const char byte : xml_text(name))
    require(byte != '<' && byte != '>' && byte != '"' && byte != '\0');
  return 0;
}
