#include "plugin/memdiag/profile/folded.h"

#include <cmath>
#include <map>
#include <vector>

#include "plugin/memdiag/profile/frames_text.h"
#include "plugin/memdiag/profile/totals.h"

namespace memdiag::profile {

std::string folded(const Profile &profile, const Symbols &symbols,
                   const Folded_options &options) {
  const std::vector<Amount> live = live_by_site(profile);
  std::map<std::string, double> lines;
  for (size_t i = 0; i < profile.sites.size(); ++i) {
    const Site &site = profile.sites[i];
    std::string stack;
    if (options.pool_first) stack = folded_name(pool_or_unknown(site)) + ';';
    stack += folded_stack(site.addresses, symbols);
    lines[std::move(stack)] += live[i].bytes;
  }
  std::string text;
  for (const auto &[stack, bytes] : lines)
    if (bytes >= 0.5)
      text += stack + ' ' + std::to_string(std::llround(bytes)) + '\n';
  return text;
}

}  // namespace memdiag::profile
