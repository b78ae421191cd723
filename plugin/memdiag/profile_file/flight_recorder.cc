#include "plugin/memdiag/profile_file/flight_recorder.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <iterator>
#include <new>
#include <span>
#include <utility>

#include "mysys/memdiag/profiling/profiler.h"
#include "mysys/memdiag/routes/routes.h"
#include "plugin/memdiag/profile/modules.h"
#include "plugin/memdiag/profile_file/amount_table.h"
#include "plugin/memdiag/profile_file/file_reader.h"

namespace memdiag::profile {

/** The memory in which a snapshot is made. */
struct Flight_recorder::Buffers {
  /** A copy of a site: the profile's own ends with the View. */
  struct Stack {
    uint32_t number;
    Pool pool;
    pools::Account account;
    uint32_t look;
    size_t frames;
    std::array<uint64_t, file_frames> addresses;
  };

  Amount_table sums{amounts_room};
  std::array<Site_amount, ramp_amounts> amounts;
  std::array<Stack, ramp_amounts> stacks;
  /** Names of routes, by their numbers: registered after begin(), a route has
  none here. */
  std::vector<std::string> routes;

  /** The largest that a snapshot has room for, in order of their sites. */
  std::span<const Site_amount> largest() noexcept {
    const auto rows = sums.rows();
    const auto begin = amounts.begin();
    const auto end = begin + std::min(rows.size(), ramp_amounts);
    std::partial_sort_copy(rows.begin(), rows.end(), begin, end,
                           [](const Site_amount &a, const Site_amount &b) {
                             return a.bytes > b.bytes;
                           });
    std::sort(begin, end, [](const Site_amount &a, const Site_amount &b) {
      return a.site < b.site;
    });
    return {begin, end};
  }

  /** What a snapshot needs of the profile. */
  struct Copied {
    profiling::Status status;
    std::span<const Site_amount> amounts;
    /** The sites of these amounts. */
    std::span<const Stack> stacks;
  };

  /** @return empty: the profiler is off, or was switched on at another time.
  Until begin() the file has its numbers for other sites. */
  std::optional<Copied> copy(uint64_t since_us) noexcept {
    const profiling::View view;
    if (!view) return std::nullopt;
    const profiling::Status status = view.status();
    if (status.since_us != since_us) return std::nullopt;
    sums.clear();
    const uint64_t epoch_us = epoch_of_monotonic_us();
    view.samples().for_each([&](const profiling::Sample &sample) {
      sums.add(sample.site, sample.digest,
               weight_of(sample.bytes, status.sample_bytes),
               sample.time_us + epoch_us);
    });
    const auto of_largest = largest();
    size_t copied = 0;
    view.sites().for_each([&](const profiling::Site &site) {
      const auto found = std::lower_bound(
          of_largest.begin(), of_largest.end(), site.number,
          [](const Site_amount &a, uint32_t n) { return a.site < n; });
      if (found == of_largest.end() || found->site != site.number) return;
      Stack &stack = stacks[copied++];
      stack.number = site.number;
      stack.pool = site.pool;
      stack.account = site.account;
      stack.look = site.look;
      stack.frames = std::min(site.frames.size(), file_frames);
      std::copy_n(site.frames.begin(), stack.frames, stack.addresses.begin());
    });
    return Copied{status, of_largest, std::span{stacks}.first(copied)};
  }
};

void Flight_recorder::set_file(const std::string &path, const Run_id &run) {
  m_path = path;
  m_run = run;
}

int Flight_recorder::begin(std::string *remark) {
  if (remark != nullptr) remark->clear();
  if (m_buffers == nullptr) m_buffers = std::make_shared<Buffers>();
  m_buffers->routes.clear();
  for (const routes::Row &route : routes::all())
    m_buffers->routes.push_back(route.name);
  m_policy.reset();
  if (m_file == nullptr || !m_file->has_name(m_path)) {
    auto file = std::make_shared<Profile_file>();
    const auto opened = file->open(m_path, m_run, m_file.get());
    if (opened.error != 0) return opened.error;
    if (remark != nullptr) *remark = opened.remark;
    const std::lock_guard<std::mutex> guard(m_mutex);
    m_file = std::move(file);
  }
  m_policy = std::make_unique<Record_policy>();
  profiling::Status status;
  {
    const profiling::View view;
    if (!view) return 0;
    status = view.status();
  }
  m_since_us = status.since_us;
  m_code = profiling::code_changes();
  return m_file->begin_profile(status.since_us, status.sample_bytes,
                               modules_of_this_process());
}

int Flight_recorder::tick(uint64_t rss_bytes) noexcept {
  if (m_file == nullptr || m_policy == nullptr) return 0;
  const Record_decision decision =
      m_policy->tick(m_clock(CLOCK_MONOTONIC), rss_bytes);
  if (decision.reason == Record_reason::none) return 0;
  const int error = record(decision, rss_bytes);
  if (error != 0) m_policy->failed();
  // The record comes first: it needs no memory.
  const int unnoted = note_loaded_code();
  return error != 0 ? error : unnoted;
}

/** Without this, stacks would end before the code of plugins, components and
loadable functions, which the server loads after its plugins have started.
@return 0 or an errno */
int Flight_recorder::note_loaded_code() noexcept {
  const profiling::Code_changes changes = profiling::code_changes();
  // A look even so: what is unloaded before the next is known up to this one.
  profiling::note_code();
  if (changes == m_code) return 0;
  try {
    const int error = m_file->set_modules(modules_of_this_process());
    if (error == 0) m_code = changes;
    return error;
  } catch (const std::bad_alloc &) {
    return ENOMEM;
  }
}

int Flight_recorder::record(const Record_decision &decision,
                            uint64_t rss_bytes) noexcept {
  Buffers &buffers = *m_buffers;
  // Without a View from here on: a slow disk, or a reader of the file, must not
  // keep the profile's memory when the profiler is switched off.
  const auto copied = buffers.copy(m_since_us);
  if (!copied) return 0;
  int error = 0;
  for (const Buffers::Stack &stack : copied->stacks) {
    if (m_file->has_site(stack.number)) continue;
    const bool has_route =
        stack.account != 0 && stack.account < buffers.routes.size();
    const int failed = m_file->add_site(
        stack.number, spec_of(stack.pool).name,
        has_route ? buffers.routes[stack.account].c_str() : "malloc",
        std::span{stack.addresses}.first(stack.frames), stack.look);
    // Without room the amounts count for site 0.
    if (failed != 0 && failed != ENOSPC) error = failed;
  }
  const profiling::Status &status = copied->status;
  const Amount &total = buffers.sums.total();
  const int failed = m_file->append(
      {m_clock(CLOCK_REALTIME), rss_bytes,
       static_cast<uint64_t>(std::llround(total.bytes)),
       static_cast<uint64_t>(std::llround(std::sqrt(total.bytes_variance))),
       status.dropped_samples},
      decision, copied->amounts);
  return failed != 0 ? failed : error;
}

int Flight_recorder::end() noexcept {
  return m_file == nullptr ? 0 : m_file->end(m_clock(CLOCK_REALTIME));
}

Contents Flight_recorder::runs(std::string *remark) const {
  std::shared_ptr<Profile_file> file;
  {
    const std::lock_guard<std::mutex> guard(m_mutex);
    file = m_file;
  }
  Contents contents;
  std::string words = file != nullptr
                          ? file->read(&contents)
                          : profile::load(m_path, m_run.server, &contents);
  // begin() may have made the file of this run meanwhile.
  const bool is_own =
      file != nullptr ||
      (contents.latest && contents.latest->id.started_us == m_run.started_us &&
       contents.latest->id.process == m_run.process);
  if (!is_own) {
    const Recorded_run *const kept = contents.run_to_keep();
    if (contents.latest && kept == &*contents.latest)
      contents.former = std::move(contents.latest);
    contents.latest.reset();
  }
  if (remark != nullptr) *remark = std::move(words);
  return contents;
}

}  // namespace memdiag::profile
