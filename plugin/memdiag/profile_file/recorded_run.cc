#include "plugin/memdiag/profile_file/recorded_run.h"

#include <algorithm>
#include <map>
#include <utility>

namespace memdiag::profile {

const Snapshot *Recorded_run::at_peak() const {
  const Snapshot *peak = nullptr;
  const auto take_if_higher = [&peak](const Snapshot &snapshot) {
    if (peak == nullptr || snapshot.moment.rss_bytes > peak->moment.rss_bytes)
      peak = &snapshot;
  };
  for (const Snapshot &snapshot : ramps)
    if (!snapshot.is_before_ramp) take_if_higher(snapshot);
  if (peak != nullptr) return peak;
  for (const Snapshot &snapshot : ramps) take_if_higher(snapshot);
  for (const Snapshot &snapshot : history) take_if_higher(snapshot);
  return peak;
}

const Snapshot *Recorded_run::before_ramp() const {
  const Snapshot *const peak = at_peak();
  if (peak == nullptr) return nullptr;
  for (const Snapshot &snapshot : ramps)
    if (snapshot.is_before_ramp && &snapshot != peak &&
        snapshot.ramp == peak->ramp && snapshot.since_us == peak->since_us)
      return &snapshot;
  const Snapshot *lowest = nullptr;
  for (const Snapshot &snapshot : history)
    if (snapshot.since_us == peak->since_us &&
        snapshot.moment.time_us < peak->moment.time_us &&
        snapshot.moment.rss_bytes < peak->moment.rss_bytes &&
        (lowest == nullptr ||
         snapshot.moment.rss_bytes <= lowest->moment.rss_bytes))
      lowest = &snapshot;
  return lowest;
}

Profile Recorded_run::profile_of(const Snapshot &snapshot) const {
  const Moment &moment = snapshot.moment;
  Profile profile{moment.time_us,
                  snapshot.since_us,
                  snapshot.sample_bytes,
                  moment.rss_bytes,
                  modules,
                  {},
                  {},
                  moment.dropped_samples};
  const auto squared = [](uint64_t error) {
    return static_cast<double>(error) * static_cast<double>(error);
  };
  std::map<uint32_t, const Site *> used;
  Amount listed;
  Entry rest{};
  for (const Site_amount &amount : snapshot.amounts) {
    const Amount live{
        static_cast<double>(amount.bytes), static_cast<double>(amount.objects),
        squared(amount.bytes_error), squared(amount.objects_error)};
    listed += live;
    const auto site = std::lower_bound(
        sites.begin(), sites.end(), std::pair{snapshot.since_us, amount.site},
        [](const Stored_site &stored, const auto &wanted) {
          return std::pair{stored.since_us, stored.site.number} < wanted;
        });
    if (site == sites.end() || site->since_us != snapshot.since_us ||
        site->site.number != amount.site) {
      rest.live += live;
      rest.samples += amount.samples;
      continue;
    }
    used.emplace(amount.site, &site->site);
    Entry entry{amount.site,    std::nullopt,     live,
                amount.samples, amount.oldest_us, amount.median_us};
    if (amount.digest != Digest{}) entry.digest = amount.digest;
    profile.entries.push_back(entry);
  }
  const double unlisted = static_cast<double>(moment.live_bytes) - listed.bytes;
  if (unlisted > 0) {
    rest.live.bytes += unlisted;
    rest.live.bytes_variance +=
        std::max(0.0, squared(moment.live_bytes_error) - listed.bytes_variance);
  }
  if (rest.live.bytes > 0) {
    profile.entries.push_back(rest);
    profile.sites.push_back({0, "", "", {}});
  }
  for (const auto &[number, site] : used) profile.sites.push_back(*site);
  return profile;
}

Recorded_run *Contents::run_to_keep() {
  if (!latest) return former ? &*former : nullptr;
  const bool former_was_killed =
      former && former->ended_us == 0 && !former->ramps.empty();
  const auto peak = [](const Recorded_run &run) {
    const Snapshot *const snapshot = run.at_peak();
    return snapshot == nullptr ? 0 : snapshot->moment.rss_bytes;
  };
  return former_was_killed && latest->history.size() <= long_run_periods &&
                 peak(*latest) <= peak(*former)
             ? &*former
             : &*latest;
}

}  // namespace memdiag::profile
