/*
  Sums over a profile.

  Threads: any. Errors: std::bad_alloc. Units: profile.h.
*/

#ifndef MEMDIAG_PROFILE_TOTALS_H
#define MEMDIAG_PROFILE_TOTALS_H

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "plugin/memdiag/profile/profile.h"

namespace memdiag::profile {

/** The index of a site in profile.sites; empty: it has none with that number.
 */
inline std::optional<size_t> index_of_site(const Profile &profile,
                                           uint32_t number) {
  const auto found = std::lower_bound(
      profile.sites.begin(), profile.sites.end(), number,
      [](const Site &site, uint32_t n) { return site.number < n; });
  if (found == profile.sites.end() || found->number != number)
    return std::nullopt;
  return static_cast<size_t>(found - profile.sites.begin());
}

/** Live blocks of each site, for all digests together, in the order of
profile.sites. Entries without a Site (Entry::site) are in no element. */
inline std::vector<Amount> live_by_site(const Profile &profile) {
  std::vector<Amount> live(profile.sites.size());
  for (const Entry &entry : profile.entries)
    if (const auto index = index_of_site(profile, entry.site))
      live[*index] += entry.live;
  return live;
}

/** A pool's name for people. */
inline const char *pool_or_unknown(const Site &site) {
  return site.pool.empty() ? "unknown" : site.pool.c_str();
}

}  // namespace memdiag::profile

#endif  // MEMDIAG_PROFILE_TOTALS_H
