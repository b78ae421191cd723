#include "plugin/memdiag/profile_export/difference.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "mysys/memdiag/base/interruption.h"
#include "plugin/memdiag/profile/stacks.h"

namespace memdiag::profile {

std::vector<Stack_change> difference(const Folded_bytes &before,
                                     const Profile &after,
                                     const Symbols &after_symbols) {
  const double variance_of_byte =
      after.sample_bytes > 1 ? static_cast<double>(after.sample_bytes) : 0;
  std::map<std::string, Change> stacks;
  for (const auto &[stack, count] : before) {
    if (is_interrupted()) break;
    const auto bytes = static_cast<double>(count);
    stacks[stack].before = {bytes, 0, bytes * variance_of_byte, 0};
  }
  for (const auto &[pool, lives] :
       folded_stacks(after, after_symbols, First_frame::pool))
    for (const auto &[stack, live] : lives) stacks[stack].after += live;
  std::vector<Stack_change> changes;
  for (auto &[stack, change] : stacks) {
    if (is_interrupted()) break;
    // The earlier text has whole bytes.
    change.after.bytes = std::round(change.after.bytes);
    if (change.bytes() != 0) changes.push_back({stack, change});
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const Stack_change &a, const Stack_change &b) {
                     return a.change.bytes() > b.change.bytes();
                   });
  return changes;
}

std::string folded_difference(const std::vector<Stack_change> &changes) {
  std::string text;
  for (const auto &[stack, change] : changes)
    text += stack + ' ' + std::to_string(std::llround(change.before.bytes)) +
            ' ' + std::to_string(std::llround(change.after.bytes)) + '\n';
  return text;
}

}  // namespace memdiag::profile
