#include "plugin/memdiag/ceiling/target.h"

#include <strings.h>

#include <charconv>

namespace memdiag::ceiling {
namespace {

bool is(std::string_view text, std::string_view word) {
  return text.size() == word.size() &&
         strncasecmp(text.data(), word.data(), word.size()) == 0;
}

/** @return empty: no such unit */
std::optional<unsigned> shift_of(std::string_view unit) {
  constexpr std::string_view units[] = {"", "K", "M", "G", "T"};
  for (unsigned i = 0; i < std::size(units); ++i)
    if (is(unit, units[i])) return i * 10;
  return std::nullopt;
}

}  // namespace

std::optional<Target> parse_target(std::string_view text) {
  if (is(text, "OFF")) return Target{};
  if (is(text, "WATCH")) return Target{Target::watch, 0};
  if (is(text, "AUTO")) return Target{Target::automatic, 0};
  uint64_t number = 0;
  const char *const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{}) return std::nullopt;
  const auto shift = shift_of({rest, static_cast<std::size_t>(end - rest)});
  if (!shift || number > (UINT64_MAX >> *shift)) return std::nullopt;
  const uint64_t bytes = number << *shift;
  if (bytes < least_target_bytes) return std::nullopt;
  return Target{Target::bytes, bytes};
}

}  // namespace memdiag::ceiling
