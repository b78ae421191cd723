#include "plugin/memdiag/profile_file/record_rows.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "plugin/memdiag/profile/frames_text.h"
#include "plugin/memdiag/profile/stacks.h"
#include "plugin/memdiag/profile/symbols.h"
#include "plugin/memdiag/profile/totals.h"

namespace memdiag::profile {
namespace {

/** The same stack of two moments, which may be of two runs of the profiler. */
struct Key {
  std::string pool;
  std::string route;
  std::string folded;
  std::optional<Digest> digest;

  bool operator<(const Key &other) const {
    return std::tie(pool, route, folded, digest) <
           std::tie(other.pool, other.route, other.folded, other.digest);
  }
};

struct Two_moments {
  Amount peak;
  Amount before;
  std::string frames;
};

using Stacks = std::map<Key, Two_moments>;

/** Adds what lives in a profile to one of the two moments of each stack. */
void add(const Profile &profile, Amount Two_moments::*moment, Stacks *stacks) {
  const Symbols symbols(profile);
  for (const Entry &entry : profile.entries) {
    Key key;
    key.digest = entry.digest;
    std::string frames;
    if (const auto index = index_of_site(profile, entry.site)) {
      const Site &site = profile.sites[*index];
      key.pool = site.pool;
      key.route = site.route;
      key.folded = folded_stack(site.addresses, symbols);
      frames = readable_frames(site.addresses, symbols);
    }
    Two_moments &of = (*stacks)[key];
    of.*moment += entry.live;
    of.frames = std::move(frames);
  }
}

uint64_t rounded(double value) {
  return static_cast<uint64_t>(std::llround(std::max(value, 0.0)));
}

std::optional<std::string> unless_empty(const std::string &text) {
  return text.empty() ? std::nullopt : std::optional<std::string>(text);
}

std::string_view file_of(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

const char *name_of(const Snapshot &snapshot) {
  if (snapshot.is_before_ramp) return "before_ramp";
  return snapshot.reason == Record_reason::new_high ? "new_high" : "period";
}

}  // namespace

std::vector<Last_run_profile_row> last_run_profile_rows(
    const Recorded_run &run) {
  const Snapshot *const peak = run.at_peak();
  if (peak == nullptr) return {};
  const Snapshot *const before = run.before_ramp();
  Stacks stacks;
  add(run.profile_of(*peak), &Two_moments::peak, &stacks);
  if (before != nullptr)
    add(run.profile_of(*before), &Two_moments::before, &stacks);
  std::vector<Last_run_profile_row> rows;
  for (const auto &[key, of] : stacks) {
    Last_run_profile_row &row = rows.emplace_back();
    row.pool = unless_empty(key.pool);
    row.route = unless_empty(key.route);
    if (key.digest) row.digest = digest_text(*key.digest);
    row.peak_bytes = rounded(of.peak.bytes);
    double variance = of.peak.bytes_variance;
    if (before != nullptr) {
      row.before_bytes = rounded(of.before.bytes);
      row.growth_bytes = std::llround(of.peak.bytes - of.before.bytes);
      row.before = Timestamp{before->moment.time_us};
      variance += of.before.bytes_variance;
    }
    row.error_bytes = rounded(std::sqrt(variance));
    row.peak = Timestamp{peak->moment.time_us};
    row.peak_rss_bytes = peak->moment.rss_bytes;
    row.frames = unless_empty(of.frames);
    row.folded = unless_empty(key.folded);
  }
  std::stable_sort(
      rows.begin(), rows.end(),
      [](const Last_run_profile_row &a, const Last_run_profile_row &b) {
        return std::make_pair(a.growth_bytes, a.peak_bytes) >
               std::make_pair(b.growth_bytes, b.peak_bytes);
      });
  return rows;
}

void profile_history_rows(
    const Recorded_run &run, uint64_t number,
    const std::function<bool(const Profile_history_row &)> &add) {
  std::vector<const Snapshot *> snapshots;
  for (const auto *list : {&run.history, &run.ramps})
    for (const Snapshot &snapshot : *list) snapshots.push_back(&snapshot);
  std::stable_sort(snapshots.begin(), snapshots.end(),
                   [](const Snapshot *a, const Snapshot *b) {
                     return a->moment.time_us < b->moment.time_us;
                   });
  // Ramps that begin at one low have a copy of it each.
  const auto is_same_low = [](const Snapshot *a, const Snapshot *b) {
    return a->is_before_ramp && b->is_before_ramp &&
           a->moment.time_us == b->moment.time_us && a->since_us == b->since_us;
  };
  snapshots.erase(std::unique(snapshots.begin(), snapshots.end(), is_same_low),
                  snapshots.end());
  // Each stack is named once, not once for each snapshot.
  std::vector<uint64_t> addresses;
  for (const auto &stored : run.sites)
    addresses.insert(addresses.end(), stored.site.addresses.begin(),
                     stored.site.addresses.end());
  const Symbols symbols(run.modules, std::move(addresses));
  std::map<std::pair<uint64_t, uint32_t>, std::pair<const Site *, std::string>>
      named;
  for (const auto &stored : run.sites)
    named[{stored.since_us, stored.site.number}] = {
        &stored.site, readable_frames(stored.site.addresses, symbols)};
  for (const Snapshot *const snapshot : snapshots)
    for (const Site_amount &amount : snapshot->amounts) {
      Profile_history_row row{};
      row.run = number;
      row.time_us = snapshot->moment.time_us;
      row.reason = name_of(*snapshot);
      row.rss_bytes = snapshot->moment.rss_bytes;
      row.live_bytes = snapshot->moment.live_bytes;
      row.stack_bytes = amount.bytes;
      row.stack_bytes_error = amount.bytes_error;
      if (amount.digest != Digest{}) row.digest = digest_text(amount.digest);
      const auto found = named.find({snapshot->since_us, amount.site});
      if (found != named.end()) {
        row.pool = found->second.first->pool;
        row.frames = found->second.second;
      }
      if (!add(row)) return;
    }
}

std::vector<std::string> replaced_modules(const Recorded_run &run,
                                          std::span<const Module> now) {
  std::vector<std::string> paths;
  for (const Module &former : run.modules) {
    const auto has_file = [&former](const Module &module) {
      return file_of(module.path) == file_of(former.path);
    };
    const auto is_same = [&former](const Module &module) {
      return module.build_id == former.build_id;
    };
    // The kernel's own module has no path and is another one in each kernel.
    if (former.path.starts_with('/') && !former.build_id.empty() &&
        std::any_of(now.begin(), now.end(), has_file) &&
        std::none_of(now.begin(), now.end(), is_same))
      paths.push_back(former.path);
  }
  return paths;
}

}  // namespace memdiag::profile
