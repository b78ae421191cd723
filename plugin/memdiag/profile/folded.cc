#include "plugin/memdiag/profile/folded.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>
#include <utility>

#include "mysys/memdiag/base/interruption.h"

namespace memdiag::profile {
namespace {

constexpr uint64_t most_bytes = std::numeric_limits<int64_t>::max();

/** @return empty: this is no line of folded() */
std::optional<std::pair<std::string_view, uint64_t>> parse_line(
    std::string_view line) {
  const size_t space = line.rfind(' ');
  if (space == std::string_view::npos || space == 0) return std::nullopt;
  const std::string_view number = line.substr(space + 1);
  uint64_t bytes = 0;
  const auto [end, error] =
      std::from_chars(number.data(), number.data() + number.size(), bytes);
  if (error != std::errc() || end != number.data() + number.size() ||
      bytes > most_bytes)
    return std::nullopt;
  return std::pair{line.substr(0, space), bytes};
}

}  // namespace

std::string folded(const Profile &profile, const Symbols &symbols,
                   First_frame first) {
  std::map<std::string, double> lines;
  for (const auto &[pool, stacks] : folded_stacks(profile, symbols, first))
    for (const auto &[stack, live] : stacks) lines[stack] += live.bytes;
  std::string text;
  for (const auto &[stack, bytes] : lines)
    if (bytes >= 0.5)
      text += stack + ' ' + std::to_string(std::llround(bytes)) + '\n';
  return text;
}

std::optional<Folded_bytes> parse_folded(std::string_view text,
                                         size_t *wrong_line) {
  Folded_bytes stacks;
  for (size_t number = 1; !text.empty() && !is_interrupted(); ++number) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    const auto parsed =
        end == std::string_view::npos ? std::nullopt : parse_line(line);
    if (!parsed && (end == std::string_view::npos || !line.empty())) {
      *wrong_line = number;
      return std::nullopt;
    }
    text.remove_prefix(end + 1);
    if (!parsed) continue;
    auto found = stacks.find(parsed->first);
    if (found == stacks.end()) {
      if (stacks.size() == most_earlier_stacks) {
        *wrong_line = number;
        return std::nullopt;
      }
      found = stacks.emplace(parsed->first, 0).first;
    }
    found->second = std::min(most_bytes, found->second + parsed->second);
  }
  return stacks;
}

}  // namespace memdiag::profile
