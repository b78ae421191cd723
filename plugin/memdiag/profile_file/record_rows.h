/*
  The rows of MEMDIAG_LAST_RUN_PROFILE and MEMDIAG_PROFILE_HISTORY, made from
  what the flight recorder wrote.

  The functions that make rows look up names in files (symbols.h has the cost).
  Threads: any. Errors: std::bad_alloc; a file that cannot be read has no names.
  Units: bytes of size classes; microseconds since the epoch.
*/

#ifndef MEMDIAG_RECORD_ROWS_H
#define MEMDIAG_RECORD_ROWS_H

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plugin/memdiag/base/reading.h"
#include "plugin/memdiag/profile_file/recorded_run.h"

namespace memdiag::profile {

/** Bytes that a stack held for a statement at the peak of the last run, and
before the ramp that led there. */
struct Last_run_profile_row {
  std::optional<std::string> pool;
  std::optional<std::string> route;
  std::optional<std::string> digest;
  uint64_t peak_bytes;
  /** Empty: there is no snapshot from before the ramp. */
  Reading before_bytes;
  std::optional<int64_t> growth_bytes;
  uint64_t error_bytes;
  Timestamp peak;
  std::optional<Timestamp> before;
  uint64_t peak_rss_bytes;
  std::optional<std::string> frames;
  std::optional<std::string> folded;
};

/** The largest growth first. Without a snapshot from before the ramp: the
largest amount first. */
std::vector<Last_run_profile_row> last_run_profile_rows(
    const Recorded_run &run);

/** One stack in one snapshot. */
struct Profile_history_row {
  /** 0: this run, 1: the one before. */
  uint64_t run;
  uint64_t time_us;
  /** "period", "new_high" or "before_ramp". */
  const char *reason;
  uint64_t rss_bytes;
  uint64_t live_bytes;
  std::optional<std::string> pool;
  std::optional<std::string> digest;
  uint64_t stack_bytes;
  uint64_t stack_bytes_error;
  std::optional<std::string> frames;
};

/** In order of time; within a snapshot, the largest first.
@param add  @return false: no more rows are wanted */
void profile_history_rows(
    const Recorded_run &run, uint64_t number,
    const std::function<bool(const Profile_history_row &)> &add);

/** Paths of the run's modules that have another build ID now: their functions
have no names, unless the debug file of the former build is installed. Modules
are the same if their files have the same name.
@param now  modules of this process */
std::vector<std::string> replaced_modules(const Recorded_run &run,
                                          std::span<const Module> now);

}  // namespace memdiag::profile

#endif  // MEMDIAG_RECORD_ROWS_H
