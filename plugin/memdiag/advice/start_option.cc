#include "plugin/memdiag/advice/start_option.h"

#include <algorithm>
#include <charconv>
#include <string>

namespace memdiag::advisor {
namespace {

/** As the server reads it: bytes, or a number with one of K, M, G, T, P, E. */
std::optional<uint64_t> number_of(std::string_view text) {
  constexpr std::string_view units = "KMGTPE";
  uint64_t number = 0;
  const char *const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{}) return std::nullopt;
  if (rest == end) return number;
  const size_t unit = units.find(static_cast<char>(*rest & ~0x20));
  if (rest + 1 != end || unit == units.npos) return std::nullopt;
  const size_t shift = 10 * (unit + 1);
  if (number > (UINT64_MAX >> shift)) return std::nullopt;
  return number << shift;
}

}  // namespace

std::optional<uint64_t> last_number(std::span<const char *const> arguments,
                                    std::string_view name) {
  constexpr std::string_view loose = "loose-";
  std::optional<uint64_t> result;
  for (size_t i = 1; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if (!argument.starts_with("--")) continue;
    const size_t equals = argument.find('=');
    std::string option(argument.substr(2, equals - 2));
    std::replace(option.begin(), option.end(), '_', '-');
    if (option.starts_with(loose)) option.erase(0, loose.size());
    // The shortest that means no other option of InnoDB.
    const size_t shortest = name.size() - 3;
    if (option.size() < shortest || !name.starts_with(option)) continue;
    if (option.size() < name.size()) return std::nullopt;
    if (equals != argument.npos)
      result = number_of(argument.substr(equals + 1));
    else
      result =
          i + 1 < arguments.size() ? number_of(arguments[i + 1]) : std::nullopt;
  }
  return result;
}

}  // namespace memdiag::advisor
