#include "plugin/memdiag/profile/profile_rows.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "mysys/memdiag/base/interruption.h"
#include "mysys/memdiag/profiling/profiler.h"
#include "plugin/memdiag/base/text.h"
#include "plugin/memdiag/profile/frames_text.h"
#include "plugin/memdiag/profile/totals.h"

namespace memdiag::profile {
namespace {

uint64_t rounded(double value) {
  return static_cast<uint64_t>(std::llround(value));
}

uint64_t error_of(double variance) { return rounded(std::sqrt(variance)); }

double age_s(uint64_t now_us, uint64_t then_us) {
  return now_us > then_us ? static_cast<double>(now_us - then_us) / 1e6 : 0;
}

std::optional<std::string> text_of(const std::optional<Digest> &digest) {
  return digest ? sessions::text_of(*digest) : std::nullopt;
}

/** Live blocks of one site, over all digests. */
struct Sum {
  Amount live;
  uint64_t samples{0};
  uint64_t oldest_us{UINT64_MAX};
  /** The median of the entry with most samples, where Site has none. */
  uint64_t median_us{0};
  uint64_t most_samples{0};
  std::optional<Digest> digest;
  double most_bytes{0};

  void add(const Entry &entry) {
    live += entry.live;
    samples += entry.samples;
    oldest_us = std::min(oldest_us, entry.oldest_us);
    if (entry.samples > most_samples) {
      most_samples = entry.samples;
      median_us = entry.median_us;
    }
    if (entry.digest && entry.live.bytes > most_bytes) {
      most_bytes = entry.live.bytes;
      digest = entry.digest;
    }
  }
};

Profile_row row_of(const Sum &sum, uint64_t now_us) {
  Profile_row row{};
  row.live_bytes = rounded(sum.live.bytes);
  row.live_bytes_error = error_of(sum.live.bytes_variance);
  row.live_objects = rounded(sum.live.objects);
  row.live_objects_error = error_of(sum.live.objects_variance);
  row.samples = sum.samples;
  if (sum.samples > 0) {
    row.oldest_s = age_s(now_us, sum.oldest_us);
    row.median_s = age_s(now_us, sum.median_us);
  }
  row.digest = text_of(sum.digest);
  return row;
}

using Class_key = std::pair<std::string, uint64_t>;

/** A size class of a pool, over all of its arenas. */
struct Class_sum {
  uint64_t slabs{0};
  uint64_t live_blocks{0};
  uint64_t capacity_blocks{0};
  uint64_t waste_bytes{0};

  double utilisation() const {
    return static_cast<double>(live_blocks) /
           static_cast<double>(capacity_blocks);
  }
};

/** Classes with a figure that could not be read are left out: the statement has
a warning for it. */
std::map<Class_key, Class_sum> classes_of(std::span<const Bin_row> bins) {
  std::map<Class_key, Class_sum> classes;
  for (const Bin_row &bin : bins) {
    if (!bin.size || !bin.slabs || !bin.live_blocks || !bin.capacity_blocks ||
        !bin.waste_bytes || *bin.slabs == 0)
      continue;
    Class_sum &of = classes[{bin.pool, *bin.size}];
    of.slabs += *bin.slabs;
    of.live_blocks += *bin.live_blocks;
    of.capacity_blocks += *bin.capacity_blocks;
    of.waste_bytes += *bin.waste_bytes;
  }
  return classes;
}

/** Old samples of a class, by site. */
using Holders = std::map<uint32_t, std::vector<const Live_sample *>>;

std::map<Class_key, Holders> holders_of(const Samples &samples) {
  std::map<Class_key, Holders> holders;
  for (const Live_sample &sample : samples.samples) {
    const Site *const site = samples.site(sample.site);
    if (site == nullptr || sample.time_us + old_us > samples.time_us) continue;
    holders[{site->pool, sample.bytes}][sample.site].push_back(&sample);
  }
  return holders;
}

}  // namespace

std::vector<Profile_row> profile_rows(const Profile &profile,
                                      const Symbols &symbols) {
  std::map<uint32_t, Sum> sums;
  for (const Entry &entry : profile.entries) sums[entry.site].add(entry);
  std::vector<Profile_row> rows;
  for (const Site &site : profile.sites) {
    if (is_interrupted()) return rows;
    Profile_row row = row_of(sums[site.number], profile.time_us);
    sums.erase(site.number);
    if (site.median_us != 0)
      row.median_s = age_s(profile.time_us, site.median_us);
    row.stack = site.number;
    row.pool = site.pool;
    row.route = site.route;
    row.allocated_bytes = site.allocated_bytes;
    row.frames = readable_frames(site.addresses, symbols);
    row.folded = folded_stack(site.addresses, symbols);
    rows.push_back(std::move(row));
  }
  // Site 0, and one that was not complete yet when the sites were read.
  for (const auto &[number, sum] : sums)
    if (sum.samples > 0) rows.push_back(row_of(sum, profile.time_us));
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Profile_row &a, const Profile_row &b) {
                     return a.live_bytes > b.live_bytes;
                   });
  return rows;
}

Sample_row sample_row(const Samples &samples, const Live_sample &sample) {
  Sample_row row{};
  row.bytes = sample.bytes;
  row.age_s = age_s(samples.time_us, sample.time_us);
  row.session = sample.session;
  row.digest = text_of(sample.digest);
  if (const Site *const site = samples.site(sample.site)) {
    row.stack = site->number;
    row.pool = site->pool;
    row.route = site->route;
  }
  return row;
}

std::vector<Stack_row> stack_rows(const Profile &profile,
                                  const Symbols &symbols) {
  std::vector<Stack_row> rows;
  for (const Site &site : profile.sites) {
    if (is_interrupted()) return rows;
    for (size_t i = 0; i < site.addresses.size(); ++i) {
      const Symbol &symbol = symbols[site.addresses[i]];
      Stack_row &row = rows.emplace_back();
      row.stack = site.number;
      row.frame = i + 1;
      if (symbol.is_known()) row.function = symbol.name;
      if (!symbol.module) {
        row.address = text("0x%" PRIx64, site.addresses[i]);
        continue;
      }
      const Module &module = profile.modules[*symbol.module];
      row.module = module.path;
      row.module_address = text("0x%" PRIx64, symbol.offset);
      if (!module.build_id.empty()) row.build_id = module.build_id;
    }
  }
  return rows;
}

std::vector<Pinned_row> pinned_rows(std::span<const Bin_row> bins,
                                    const Samples &samples,
                                    const Profile &profile,
                                    const Symbols &symbols) {
  std::map<uint32_t, const Site *> site_of;
  for (const Site &site : profile.sites) site_of[site.number] = &site;
  const auto holders = holders_of(samples);
  std::vector<Pinned_row> rows;
  for (const auto &[key, sum] : classes_of(bins)) {
    if (is_interrupted()) break;
    const auto found = holders.find(key);
    if (found == holders.end() || sum.utilisation() >= nearly_empty) continue;
    std::vector<Pinned_row> of_class;
    for (const auto &[number, blocks] : found->second) {
      Pinned_row &row = of_class.emplace_back();
      row.pool = key.first;
      row.size = key.second;
      row.slabs = sum.slabs;
      row.utilisation = sum.utilisation();
      row.waste_bytes = sum.waste_bytes;
      row.stack = number;
      row.samples = blocks.size();
      Amount amount;
      std::vector<uint64_t> times;
      std::map<Digest, size_t> digests;
      for (const Live_sample *const block : blocks) {
        amount += weight_of(block->bytes, samples.sample_bytes);
        times.push_back(block->time_us);
        if (block->digest) ++digests[*block->digest];
      }
      row.objects = rounded(amount.objects);
      row.objects_error = error_of(amount.objects_variance);
      row.share =
          sum.live_blocks == 0
              ? 0
              : std::min(amount.objects / static_cast<double>(sum.live_blocks),
                         1.0);
      std::nth_element(times.begin(), times.begin() + times.size() / 2,
                       times.end());
      row.median_s = age_s(samples.time_us, times[times.size() / 2]);
      const auto most = std::max_element(
          digests.begin(), digests.end(),
          [](const auto &a, const auto &b) { return a.second < b.second; });
      if (most != digests.end()) row.digest = sessions::text_of(most->first);
      if (const auto site = site_of.find(number); site != site_of.end())
        row.frames = readable_frames(site->second->addresses, symbols);
    }
    std::sort(of_class.begin(), of_class.end(),
              [](const Pinned_row &a, const Pinned_row &b) {
                return std::tie(b.objects, a.stack) <
                       std::tie(a.objects, b.stack);
              });
    if (of_class.size() > stacks_of_a_class) of_class.resize(stacks_of_a_class);
    std::move(of_class.begin(), of_class.end(), std::back_inserter(rows));
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Pinned_row &a, const Pinned_row &b) {
                     return a.waste_bytes > b.waste_bytes;
                   });
  return rows;
}

std::vector<Digest_row> digest_rows(std::span<const sessions::Digest_row> rows,
                                    const Profile *profile,
                                    const Symbols &symbols) {
  std::vector<Digest_row> made;
  made.reserve(rows.size());
  for (const sessions::Digest_row &row : rows) {
    if (is_interrupted()) break;
    Digest_row &of = made.emplace_back(Digest_row{row, {}, {}});
    const uint32_t number =
        profiling::current_site({row.peak_stack.run, row.peak_stack.site});
    if (profile == nullptr || number == 0) continue;
    const auto index = index_of_site(*profile, number);
    if (!index) continue;
    of.peak_site = number;
    of.peak_frames = readable_frames(profile->sites[*index].addresses, symbols);
  }
  return made;
}

}  // namespace memdiag::profile
