#include "plugin/memdiag/profile/folded.h"

#include <cmath>
#include <map>

namespace memdiag::profile {

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

}  // namespace memdiag::profile
