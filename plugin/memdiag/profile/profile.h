/*
  A heap profile of one moment, as plain data: reader.h takes it from the
  running server, recorded_run.h from a file of a former run. Everything that
  shows a profile takes this struct: folded stacks, pprof, the flame graph,
  differences, tables.

  Ownership: values, no pointers into the profiler.
  Units: bytes of size classes; microseconds since the epoch.
  Weights: a sample of size s stands for 1/(1-exp(-s/R)) objects where R is
  sample_bytes, and for s times as many bytes. The sums are unbiased; the
  variances are those of Horvitz and Thompson: the sum of
  s*s*(1-p)/(p*p), p = 1-exp(-s/R).
*/

#ifndef MEMDIAG_PROFILE_H
#define MEMDIAG_PROFILE_H

#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace memdiag::profile {

/** SHA-256, as Performance Schema computes it. */
using Digest = std::array<unsigned char, 32>;

/** Module::last_look of a module that was not unloaded. */
constexpr uint32_t module_is_there = UINT32_MAX;

/** An executable or library that is mapped, or was when a sample was taken. */
struct Module {
  std::string path;
  /** In hexadecimal; empty: it has none. */
  std::string build_id;
  /** Addresses of its code, [begin, end). */
  uint64_t begin;
  uint64_t end;
  /** Address minus load bias is an address in the file's symbol table. */
  uint64_t load_bias;
  /** The offset in the file of the byte at `begin`. */
  uint64_t file_offset{0};
  /** @name The looks at which it was there (code_ranges.h) @{ */
  uint32_t first_look{0};
  uint32_t last_look{module_is_there};
  /** @} */
};

/** A distinct origin of allocations: stack, pool and route. Numbers begin with
1. No number is used twice until the profiler is switched off. */
struct Site {
  uint32_t number;
  /** Name of a pool; empty: site 0 of Recorded_run::profile_of(). */
  std::string pool;
  /** Name of a route, or "malloc". */
  std::string route;
  /** Return addresses, the allocation first. A return address is behind the
  call: look up address - 1. */
  std::vector<uint64_t> addresses;
  /** Estimates of all that was allocated since the profiler was switched on,
  freed or not. */
  uint64_t allocated_bytes{0};
  double allocated_objects{0};
  /** When the median of its live samples was taken; 0: it has none, or the
  profile is of a file. */
  uint64_t median_us{0};
  /** The look at which its code was there (code_ranges.h). */
  uint32_t look{0};
};

struct Amount {
  double bytes{0};
  double objects{0};
  /** Variances of the two estimates. The standard error is the root. */
  double bytes_variance{0};
  double objects_variance{0};

  Amount &operator+=(const Amount &other) {
    bytes += other.bytes;
    objects += other.objects;
    bytes_variance += other.bytes_variance;
    objects_variance += other.objects_variance;
    return *this;
  }
};

/** The estimate that one sampled block stands for. With sample_bytes 1 each
block is sampled and stands for itself. */
inline Amount weight_of(uint64_t size, uint64_t sample_bytes) {
  const auto s = static_cast<double>(size);
  if (sample_bytes <= 1) return {s, 1, 0, 0};
  const double p = -std::expm1(-s / static_cast<double>(sample_bytes));
  const double variance = (1 - p) / (p * p);
  return {s / p, 1 / p, s * s * variance, variance};
}

/** Live blocks of one site for one digest. */
struct Entry {
  /** Site::number; 0: a stack that found no room. The profile of the running
  server has no Site 0. Recorded_run::profile_of() makes one. Stacks, pprof and
  live_by_site() leave out an entry without a Site. */
  uint32_t site;
  /** The digest of the statement that allocated; empty: none, or not known. */
  std::optional<Digest> digest;
  Amount live;
  /** The number of samples behind the estimate. */
  uint64_t samples;
  /** When the oldest and the median sample were taken. */
  uint64_t oldest_us;
  uint64_t median_us;
};

struct Profile {
  uint64_t time_us;
  /** When the profiler was switched on. */
  uint64_t since_us;
  /** R: the mean number of bytes between two samples. */
  uint64_t sample_bytes;
  /** VmRSS at that moment; 0: not known. */
  uint64_t rss_bytes;
  std::vector<Module> modules;
  /** In ascending order of their numbers. */
  std::vector<Site> sites;
  /** Each pair of site and digest once. */
  std::vector<Entry> entries;
  /** Samples that found no room, since the profiler was switched on. */
  uint64_t dropped_samples;
  /** Ranges of code at which stacks end, because the profiler had no room for
  them. */
  uint64_t code_left_out{0};
};

}  // namespace memdiag::profile

#endif  // MEMDIAG_PROFILE_H
