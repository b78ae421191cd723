/*
  Takes the profile of the running server as plain data.

  Reading stops no thread (sample_table.h). A sample may be missing if it comes
  or goes meanwhile.

  Threads: any. take_profile() takes the dynamic linker's lock (modules.h).
  Switching the profiler off waits while samples are copied.
  Errors: std::bad_alloc; empty while the profiler is off, and `of_same_moment`
  is unchanged then.
*/

#ifndef MEMDIAG_PROFILE_READER_H
#define MEMDIAG_PROFILE_READER_H

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "plugin/memdiag/profile/profile.h"

namespace memdiag::profile {

struct Samples;

/** Live blocks now, by site and digest; rss_bytes is left 0.
@param of_same_moment  gets the samples that the profile is made of, if given */
std::optional<Profile> take_profile(Samples *of_same_moment = nullptr);

/** A sampled block that is live. */
struct Live_sample {
  uint64_t bytes;
  uint64_t time_us;
  /** Site::number; 0: there was no room for the stack. */
  uint32_t site;
  /** The session's number in PROCESSLIST; empty: a thread without a session. */
  std::optional<uint64_t> session;
  std::optional<Digest> digest;
};

struct Samples {
  uint64_t time_us;
  uint64_t sample_bytes;
  /** In ascending order of their numbers, without addresses. */
  std::vector<Site> sites;
  /** In no order. */
  std::vector<Live_sample> samples;

  /** nullptr: the site is not known. */
  const Site *site(uint32_t number) const;
};

std::optional<Samples> take_samples();

/** Sets Site::median_us of the sites that have samples.
@param samples  in any order; it sorts them by site, digest and time
@param sites    in ascending order of their numbers */
void set_medians(std::span<Live_sample> samples, std::vector<Site> *sites);

}  // namespace memdiag::profile

#endif  // MEMDIAG_PROFILE_READER_H
