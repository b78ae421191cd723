/*
  The rows of MEMDIAG_PROFILE, MEMDIAG_SAMPLES, MEMDIAG_STACKS, MEMDIAG_PINNED
  and MEMDIAG_DIGESTS, made from a profile.

  Threads: any. Errors: std::bad_alloc. After the statement was killed
  (interruption.h) rows are missing. digest_rows() asks the profiler whether the
  run of a stack still goes on; all else depends on the arguments alone.
  Units: bytes of size classes; seconds of age.
*/

#ifndef MEMDIAG_PROFILE_ROWS_H
#define MEMDIAG_PROFILE_ROWS_H

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mysys/memdiag/accounting/digests.h"
#include "plugin/memdiag/allocator/allocator_snapshot.h"
#include "plugin/memdiag/base/reading.h"
#include "plugin/memdiag/profile/profile.h"
#include "plugin/memdiag/profile/reader.h"
#include "plugin/memdiag/profile/symbols.h"

namespace memdiag::profile {

/** A site. */
struct Profile_row {
  /** Empty: the sum of stacks that found no room. */
  Reading stack;
  std::optional<std::string> pool;
  std::optional<std::string> route;
  uint64_t live_bytes;
  uint64_t live_bytes_error;
  uint64_t live_objects;
  uint64_t live_objects_error;
  uint64_t samples;
  Reading allocated_bytes;
  /** Empty: nothing lives. */
  std::optional<double> oldest_s;
  std::optional<double> median_s;
  /** The digest that has most of the site's live bytes. */
  std::optional<std::string> digest;
  std::optional<std::string> frames;
  std::optional<std::string> folded;
};

/** One for each site, the one with most live bytes first. */
std::vector<Profile_row> profile_rows(const Profile &profile,
                                      const Symbols &symbols);

/** A live sample. */
struct Sample_row {
  uint64_t bytes;
  double age_s;
  Reading stack;
  Reading session;
  std::optional<std::string> digest;
  std::optional<std::string> pool;
  std::optional<std::string> route;
};

Sample_row sample_row(const Samples &samples, const Live_sample &sample);

/** A frame of a stack. */
struct Stack_row {
  uint64_t stack;
  /** From 1, the allocation first. */
  uint64_t frame;
  /** Empty: the module is known. With both, a reader could compute where the
  module was loaded. */
  std::optional<std::string> address;
  std::optional<std::string> function;
  /** The server reads no line numbers. */
  std::optional<std::string> file;
  Reading line;
  std::optional<std::string> module;
  std::optional<std::string> module_address;
  std::optional<std::string> build_id;
};

std::vector<Stack_row> stack_rows(const Profile &profile,
                                  const Symbols &symbols);

/** A stack whose old blocks keep slabs of a size class alive. */
struct Pinned_row {
  std::string pool;
  uint64_t size;
  uint64_t slabs;
  double utilisation;
  uint64_t waste_bytes;
  Reading stack;
  uint64_t samples;
  uint64_t objects;
  uint64_t objects_error;
  /** The share of the class's live blocks; a ratio. */
  double share;
  double median_s;
  std::optional<std::string> digest;
  /** Empty: the stack came after the profile was taken. */
  std::optional<std::string> frames;
};

/** A block of this age is old: the purger and decay have run long since. */
constexpr uint64_t old_us = 60'000'000;
/** Slabs of a class are nearly empty if fewer of their blocks live. A ratio. */
constexpr double nearly_empty = 0.5;
/** A class has so many rows: its stacks with most old objects. */
constexpr size_t stacks_of_a_class = 3;

/** @param bins  of all arenas
@param samples  those that `profile` is made of, by take_profile(&samples)
@return the class with most waste first */
std::vector<Pinned_row> pinned_rows(std::span<const Bin_row> bins,
                                    const Samples &samples,
                                    const Profile &profile,
                                    const Symbols &symbols);

/** A statement digest, with the stack that held most at its peak. */
struct Digest_row : sessions::Digest_row {
  /** Empty: the peak is not of this run of the profiler. */
  Reading peak_site;
  std::optional<std::string> peak_frames;
};

/** @param rows  read before the profile was taken: otherwise a stack of a later
run of the profiler would be looked up in this one
@param profile  of now; nullptr: the profiler is off */
std::vector<Digest_row> digest_rows(std::span<const sessions::Digest_row> rows,
                                    const Profile *profile,
                                    const Symbols &symbols);

}  // namespace memdiag::profile

namespace memdiag {

template <>
constexpr Details detail_of<profile::Pinned_row> = detail_of<Bin_row>;

}  // namespace memdiag

#endif  // MEMDIAG_PROFILE_ROWS_H
