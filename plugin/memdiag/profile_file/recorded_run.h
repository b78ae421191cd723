/*
  What the flight recorder's file (profile_file.h) has of a run of the server,
  as values: they do not refer to the file.

  Threads: plain values. Units: bytes; microseconds since the epoch.
*/

#ifndef MEMDIAG_RECORDED_RUN_H
#define MEMDIAG_RECORDED_RUN_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "plugin/memdiag/profile/profile.h"
#include "plugin/memdiag/profile_file/record_policy.h"

namespace memdiag::profile {

/** @name Room of each part @{ */
constexpr size_t file_modules = 256;
constexpr size_t file_sites = 2048;
constexpr size_t file_ramps = 6;
constexpr size_t file_highs = 5;
constexpr size_t file_history = 1440;
/** The most amounts of a snapshot: in a ramp, in the history. */
constexpr size_t ramp_amounts = 256;
constexpr size_t history_amounts = 40;
/** Frames of a site. A deeper stack loses its outermost frames. */
constexpr size_t file_frames = 128;
/** @} */

/** Estimates of the live blocks of one site for one digest. It has no padding,
because records are compared and summed byte by byte. */
struct Site_amount {
  /** Site::number; 0: unknown. */
  uint32_t site;
  uint32_t samples;
  /** Zeros: no statement, or not known. */
  Digest digest;
  uint64_t bytes;
  uint64_t objects;
  /** Standard errors. */
  uint64_t bytes_error;
  uint64_t objects_error;
  /** Times of the oldest and the median sample. A writer that does not know the
   * median gives the mean. */
  uint64_t oldest_us;
  uint64_t median_us;
};

/** The moment of a snapshot. */
struct Moment {
  uint64_t time_us;
  uint64_t rss_bytes;
  /** Sums over all sites, also those for which the snapshot has no room. */
  uint64_t live_bytes;
  uint64_t live_bytes_error;
  /** Since the profiler was switched on. */
  uint64_t dropped_samples;
};

struct Snapshot {
  Moment moment;
  /** When the profiler was switched on, and its R. */
  uint64_t since_us;
  uint64_t sample_bytes;
  Record_reason reason;
  /** The ramp's number, from 1; 0: a snapshot of the history. */
  uint32_t ramp;
  /** true: the snapshot from before the ramp. */
  bool is_before_ramp;
  /** The largest first. */
  std::vector<Site_amount> amounts;
};

/** Identifies a run of the server. */
struct Run_id {
  uint64_t started_us;
  uint32_t process;
  /** The server's version: 90704. */
  uint32_t version;
  /** A hash of its UUID, so that a copied data directory tells nothing of the
  server that it was copied from. 0: not known, or the run is from a file. */
  uint64_t server{0};
};

/** A part of a file, as values: it does not refer to the file. Its addresses
are unambiguous (separate_modules()). */
struct Recorded_run {
  Run_id id;
  /** When the run was shut down; 0: it was killed, or still runs. */
  uint64_t ended_us{0};
  std::vector<Module> modules;
  /** In order of time. Snapshots of ramps are not in the history. */
  std::vector<Snapshot> ramps;
  std::vector<Snapshot> history;

  /** The snapshot with the highest RSS. It is one of a ramp if there is any
  ramp. nullptr: there is no snapshot. */
  const Snapshot *at_peak() const;
  /** The snapshot from before the ramp that led to the peak. If there is none:
  the one with the lowest RSS before the peak. nullptr: not known. */
  const Snapshot *before_ramp() const;

  /** A snapshot as a profile. One entry of site 0, which has no stack, contains
  all amounts without room or without a stored site. So the sums are complete.
  @throws std::bad_alloc */
  Profile profile_of(const Snapshot &snapshot) const;

  /** A site. After the profiler was switched on again, the same number is
  another site; since_us tells them apart. In this order. */
  struct Stored_site {
    uint64_t since_us;
    Site site;
  };
  std::vector<Stored_site> sites;
};

struct Contents {
  /** Empty: there is no run that recorded anything. */
  std::optional<Recorded_run> former;
  std::optional<Recorded_run> latest;
  /** Records with a wrong checksum. */
  size_t damaged{0};

  /** The run that the next start shows and keeps: the latest; or the former, if
  it was killed after a ramp and the latest recorded for less than
  `long_run_periods` and has no higher peak. nullptr: there is neither. */
  Recorded_run *run_to_keep();
};

/** A run is long if it has more records than this. Record_policy takes the
first at once, and one each minute. The records are counted and their times are
not subtracted: the clock may have been set meanwhile. */
constexpr size_t long_run_periods = 10;

}  // namespace memdiag::profile

#endif  // MEMDIAG_RECORDED_RUN_H
