#include "plugin/memdiag/ceiling/target.h"

#include <strings.h>

#include "plugin/memdiag/base/size_text.h"

namespace memdiag::ceiling {
namespace {

bool is(std::string_view text, std::string_view word) {
  return text.size() == word.size() &&
         strncasecmp(text.data(), word.data(), word.size()) == 0;
}

}  // namespace

std::optional<Target> parse_target(std::string_view text) {
  if (is(text, "OFF")) return Target{};
  if (is(text, "WATCH")) return Target{Target::watch, 0};
  if (is(text, "AUTO")) return Target{Target::automatic, 0};
  const auto bytes = bytes_of(text, "KMGT");
  if (!bytes || *bytes < least_target_bytes) return std::nullopt;
  return Target{Target::bytes, *bytes};
}

}  // namespace memdiag::ceiling
