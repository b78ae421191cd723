#include "plugin/memdiag/advice/start_option.h"

#include <algorithm>
#include <string>

#include "plugin/memdiag/base/size_text.h"

namespace memdiag::advisor {
namespace {

/** As the server reads it. */
std::optional<uint64_t> number_of(std::string_view text) {
  return bytes_of(text, "KMGTPE");
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
