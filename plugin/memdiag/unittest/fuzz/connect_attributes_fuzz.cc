/* The connection attributes that a client sent. */

#include "plugin/memdiag/base/connect_attributes.h"

#include "plugin/memdiag/unittest/fuzz/fuzz.h"

using memdiag::find_attribute;
using memdiag::take_encoded;
using memdiag_test::is_within;
using memdiag_test::require;

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  const std::string_view attributes = memdiag_test::text_of(bytes, size);
  for (const char *const name : {"program_name", "a"}) {
    auto part = find_attribute(attributes, name);
    if (!part) continue;
    require(is_within(*part, attributes));
    require(take_encoded(&*part) == name);
    require(take_encoded(&*part) && part->empty());
  }
  return 0;
}
