#include "plugin/memdiag/profile/reader.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "mysys/memdiag/base/clock.h"
#include "mysys/memdiag/profiling/code_ranges.h"
#include "mysys/memdiag/profiling/profiler.h"
#include "mysys/memdiag/routes/routes.h"
#include "plugin/memdiag/profile/modules.h"

namespace memdiag::profile {
namespace {

using Route_names = std::vector<routes::Row>;

Site copy_of(const profiling::Site &site, const Route_names &routes,
             bool with_addresses) {
  Site copy;
  copy.number = site.number;
  copy.pool = spec_of(site.pool).name;
  copy.route = site.account != 0 && site.account < routes.size()
                   ? routes[site.account].name
                   : "malloc";
  copy.allocated_bytes = site.allocated_bytes;
  copy.allocated_objects = site.allocated_objects;
  copy.look = site.look;
  if (with_addresses)
    copy.addresses.assign(site.frames.begin(), site.frames.end());
  return copy;
}

std::vector<Site> copies_of(std::span<const profiling::Site> sites,
                            bool with_addresses) {
  const Route_names routes = routes::all();
  std::vector<Site> copies;
  copies.reserve(sites.size());
  for (const profiling::Site &site : sites)
    copies.push_back(copy_of(site, routes, with_addresses));
  return copies;
}

Live_sample copy_of(const profiling::Sample &sample, uint64_t epoch_us) {
  Live_sample copy{
      sample.bytes, sample.time_us + epoch_us, sample.site, {}, {}};
  if (sample.session != 0) copy.session = sample.session;
  if (sample.digest != Digest{}) copy.digest = sample.digest;
  return copy;
}

struct Copy {
  profiling::Status status{};
  /** The moment of the samples. */
  uint64_t time_us{0};
  std::vector<Live_sample> samples;
  /** Their frames lie in the vector below. */
  std::vector<profiling::Site> sites;
  std::vector<uintptr_t> frames;
};

/** Empty: the profiler is off. */
std::optional<Copy> copy_profile() {
  Copy copy;
  uint64_t end = 0;
  uint64_t epoch_us = 0;
  size_t samples = 0;
  size_t sites = 0;
  size_t frames = 0;
  do {
    // Without a View: switch_off() waits for one, and this thread may wait for
    // memory. Sites come meanwhile, samples up to `end` only go.
    copy.samples.clear();
    copy.samples.reserve(samples);
    copy.sites.clear();
    copy.sites.reserve(sites + sites / 8);
    copy.frames.clear();
    copy.frames.reserve(frames + frames / 8);
    samples = sites = frames = 0;

    const profiling::View view;
    if (!view) return std::nullopt;
    if (const profiling::Status status = view.status();
        status.since_us != copy.status.since_us) {
      copy.status = status;
      end = view.samples().added();
      epoch_us = epoch_of_monotonic_us();
      copy.time_us = clock_us(CLOCK_MONOTONIC) + epoch_us;
    }
    view.samples().for_each(end, [&](const profiling::Sample &sample) {
      ++samples;
      if (copy.samples.size() < copy.samples.capacity())
        copy.samples.push_back(copy_of(sample, epoch_us));
    });
    // A sample's site is there before it; sites that come later do no harm.
    view.sites().for_each([&](const profiling::Site &site) {
      ++sites;
      frames += site.frames.size();
      if (copy.sites.size() == copy.sites.capacity() ||
          copy.frames.capacity() - copy.frames.size() < site.frames.size())
        return;
      const auto begin = copy.frames.insert(
          copy.frames.end(), site.frames.begin(), site.frames.end());
      profiling::Site &own = copy.sites.emplace_back(site);
      own.frames = {begin, copy.frames.end()};
    });
  } while (samples > copy.samples.size() || sites > copy.sites.size());
  return copy;
}

/** The entry of samples of one site and digest, in order of time. */
Entry entry_of(std::span<const Live_sample> samples, uint64_t sample_bytes) {
  Entry entry{};
  entry.site = samples.front().site;
  entry.digest = samples.front().digest;
  for (const Live_sample &sample : samples)
    entry.live += weight_of(sample.bytes, sample_bytes);
  entry.samples = samples.size();
  entry.oldest_us = samples.front().time_us;
  entry.median_us = samples[samples.size() / 2].time_us;
  return entry;
}

/** @param samples  as set_medians() sorts them */
std::vector<Entry> entries_of(std::span<const Live_sample> samples,
                              uint64_t sample_bytes) {
  const auto key = [](const Live_sample &sample) {
    return std::tie(sample.site, sample.digest);
  };
  std::vector<Entry> entries;
  for (auto first = samples.begin(); first != samples.end();) {
    const auto last = std::find_if(
        first, samples.end(),
        [&](const Live_sample &sample) { return key(sample) != key(*first); });
    entries.push_back(entry_of({first, last}, sample_bytes));
    first = last;
  }
  return entries;
}

}  // namespace

const Site *Samples::site(uint32_t number) const {
  const auto found = std::lower_bound(
      sites.begin(), sites.end(), number,
      [](const Site &site, uint32_t wanted) { return site.number < wanted; });
  return found != sites.end() && found->number == number ? &*found : nullptr;
}

std::optional<Profile> take_profile(Samples *of_same_moment) {
  auto copy = copy_profile();
  if (!copy) return std::nullopt;
  const profiling::Status &status = copy->status;
  Profile profile{};
  profile.time_us = copy->time_us;
  profile.since_us = status.since_us;
  profile.sample_bytes = status.sample_bytes;
  profile.dropped_samples = status.dropped_samples;
  profile.sites = copies_of(copy->sites, true);
  if (of_same_moment != nullptr)
    *of_same_moment = {profile.time_us, profile.sample_bytes,
                       copies_of(copy->sites, false), copy->samples};
  // Stacks through plugins that were loaded meanwhile are whole from now on.
  profile.modules = modules_of_this_process();
  profile.code_left_out = profiling::code_ranges_left_out();
  separate_modules(&profile.modules, [&profile](const auto &visit) {
    for (Site &site : profile.sites) visit(&site);
  });
  set_medians(copy->samples, &profile.sites);
  profile.entries = entries_of(copy->samples, profile.sample_bytes);
  return profile;
}

std::optional<Samples> take_samples() {
  auto copy = copy_profile();
  if (!copy) return std::nullopt;
  return Samples{copy->time_us, copy->status.sample_bytes,
                 copies_of(copy->sites, false), std::move(copy->samples)};
}

void set_medians(std::span<Live_sample> samples, std::vector<Site> *sites) {
  std::sort(samples.begin(), samples.end(),
            [](const Live_sample &a, const Live_sample &b) {
              return std::tie(a.site, a.digest, a.time_us) <
                     std::tie(b.site, b.digest, b.time_us);
            });
  std::vector<uint64_t> times;
  auto sample = samples.begin();
  for (Site &site : *sites) {
    while (sample != samples.end() && sample->site < site.number) ++sample;
    times.clear();
    for (; sample != samples.end() && sample->site == site.number; ++sample)
      times.push_back(sample->time_us);
    if (times.empty()) continue;
    const auto median = times.begin() + times.size() / 2;
    std::nth_element(times.begin(), median, times.end());
    site.median_us = *median;
  }
}

}  // namespace memdiag::profile
