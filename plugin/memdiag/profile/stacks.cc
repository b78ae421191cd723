#include "plugin/memdiag/profile/stacks.h"

#include <span>
#include <utility>
#include <vector>

#include "mysys/memdiag/base/interruption.h"
#include "plugin/memdiag/base/text.h"
#include "plugin/memdiag/profile/frames_text.h"
#include "plugin/memdiag/profile/totals.h"

namespace memdiag::profile {

std::string digest_text(const Digest &digest) {
  return hex(std::as_bytes(std::span(digest)));
}

Folded_stacks folded_stacks(const Profile &profile, const Symbols &symbols,
                            First_frame first) {
  Folded_stacks stacks;
  const auto add = [&stacks](const Site &site, std::string stack,
                             const Amount &live) {
    stacks[pool_or_unknown(site)][std::move(stack)] += live;
  };
  if (first == First_frame::digest) {
    for (const Entry &entry : profile.entries) {
      if (is_interrupted()) break;
      const auto index = index_of_site(profile, entry.site);
      if (!index) continue;
      const Site &site = profile.sites[*index];
      add(site,
          (entry.digest ? digest_text(*entry.digest) : "no statement") + ';' +
              folded_stack(site.addresses, symbols),
          entry.live);
    }
    return stacks;
  }
  const std::vector<Amount> live = live_by_site(profile);
  for (size_t i = 0; i < profile.sites.size() && !is_interrupted(); ++i) {
    const Site &site = profile.sites[i];
    std::string stack = folded_stack(site.addresses, symbols);
    if (first == First_frame::pool)
      stack = folded_name(pool_or_unknown(site)) + ';' + stack;
    add(site, std::move(stack), live[i]);
  }
  return stacks;
}

}  // namespace memdiag::profile
