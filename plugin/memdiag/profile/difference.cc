#include "plugin/memdiag/profile/difference.h"

#include <algorithm>
#include <map>
#include <utility>

namespace memdiag::profile {
namespace {

/** Equal growths keep their order. */
template <typename Changed>
void largest_growth_first(std::vector<Changed> *changes) {
  std::stable_sort(changes->begin(), changes->end(),
                   [](const Changed &a, const Changed &b) {
                     return a.change.bytes() > b.change.bytes();
                   });
}

}  // namespace

std::vector<Site_change> difference_by_site(const Profile &before,
                                            const Profile &after) {
  std::map<uint32_t, Change> sites;
  for (const Entry &entry : before.entries)
    sites[entry.site].before += entry.live;
  for (const Entry &entry : after.entries)
    sites[entry.site].after += entry.live;
  std::vector<Site_change> changes;
  changes.reserve(sites.size());
  for (const auto &[site, change] : sites) changes.push_back({site, change});
  largest_growth_first(&changes);
  return changes;
}

std::vector<Stack_change> difference_by_stack(const Profile &before,
                                              const Symbols &before_symbols,
                                              const Profile &after,
                                              const Symbols &after_symbols,
                                              First_frame first) {
  std::map<std::pair<std::string, std::string>, Change> stacks;
  for (auto &[pool, lives] : folded_stacks(before, before_symbols, first))
    for (auto &[stack, live] : lives) stacks[{pool, stack}].before = live;
  for (auto &[pool, lives] : folded_stacks(after, after_symbols, first))
    for (auto &[stack, live] : lives) stacks[{pool, stack}].after = live;
  std::vector<Stack_change> changes;
  changes.reserve(stacks.size());
  for (const auto &[place, change] : stacks)
    changes.push_back({place.first, place.second, change});
  largest_growth_first(&changes);
  return changes;
}

}  // namespace memdiag::profile
