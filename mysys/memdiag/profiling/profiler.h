/*
  The heap profiler: samples of what the process allocates, with the stack, pool
  and route of each, kept for as long as the block lives.

  jemalloc chooses the sampled blocks at random: on average one for each
  `sample_bytes` that a thread allocates (opt.lg_prof_sample). It calls this
  layer's hooks on the thread that allocates or frees, for blocks of malloc()
  and of pools alike. The profiler does not know blocks from before it was
  switched on. A block of s bytes is sampled with the probability p(s) =
  1-exp(-s/sample_bytes), so a sample stands for 1/p(s) objects.

  jemalloc gets the same stack for all samples, so its own tables stay at some
  2 KB for each thread that was sampled. A small block that is sampled takes
  pages of its own while it lives: 8 KB for a block of up to 4 KB.

  Memory: `memory_bytes`, mapped when the profiler is switched on and unmapped
  when it is switched off. A sample, or a stack, that finds no room is counted.
  Threads: any. The hooks take no lock, allocate nothing and never wait.
  switch_on() and switch_off() take a mutex. switch_off() waits until no hook
  and no View uses the memory any more. After a second it leaves the memory to
  the last View that ends, or to the next switch, on or off. Errors: values; see
  switch_on(). Units: bytes of size classes; microseconds since the epoch.
*/

#ifndef MEMDIAG_PROFILER_H
#define MEMDIAG_PROFILER_H

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "mysys/memdiag/profiling/sample_table.h"
#include "mysys/memdiag/profiling/site_table.h"

namespace memdiag::profiling {

/** Less memory is of no use: this has room for 10,000 samples, 2,500 stacks. */
constexpr uint64_t least_memory_bytes = 2 << 20;
constexpr uint64_t most_memory_bytes = uint64_t{4} << 30;
/** sample_bytes is a power of two up to this. */
constexpr uint64_t most_sample_bytes = uint64_t{1} << 30;

/** Objects that a sample of so many bytes stands for. With sample_bytes 1
jemalloc samples each block, and each stands for itself. */
inline double objects_of_sample(uint64_t bytes, uint64_t sample_bytes) {
  if (sample_bytes <= 1) return 1;
  return -1 / std::expm1(-static_cast<double>(bytes) /
                         static_cast<double>(sample_bytes));
}

struct Settings {
  uint64_t sample_bytes;
  uint64_t memory_bytes;
  /** Hand jemalloc the stacks too, so that its own dumps (prof.dump) have them.
  Its tables then grow with the number of stacks. For tests. */
  bool stacks_for_jemalloc{false};
};

/** The outcome of switching on. */
struct Switched {
  /** 0, or an errno. */
  int error;
  /** What failed: a control of jemalloc, "mmap", or the setting "sample_bytes"
  or "memory_bytes"; nullptr: nothing. A constant. "sample_bytes" with ENOENT:
  jemalloc's profiler was not initialised (prof:false). */
  const char *step;
};

/** Begin an empty profile. If the profiler is on, end the present one first.
EINVAL: a setting is out of range, and the present profile goes on. After any
other error the profiler is off. */
[[nodiscard]] Switched switch_on(const Settings &settings) noexcept;
/** The caller has no View: it would wait a second for itself. */
void switch_off() noexcept;

/** True while the profiler is on: one load. */
bool is_on() noexcept;

/** Facts about the allocating thread that this layer does not know. */
struct Context {
  uint64_t session;
  /** Zeros: none, or not known yet. */
  Digest digest;
};
/** Called in the hook, on the allocating thread: it must neither allocate nor
take a lock. */
using Context_reader = void (*)(Context *) noexcept;
/** nullptr: none. Set before the profiler is switched on. A hook may still call
the former reader until switch_off() has ended. */
void set_context_reader(Context_reader reader) noexcept;

/** A site's number is valid for one run of the profiler. */
struct Site_of_run {
  uint32_t run;
  /** 0: none. */
  uint32_t site;
};
/** The site's number, if that run of the profiler still goes on; else 0. */
uint32_t current_site(Site_of_run site) noexcept;

/** @name Events of the calling thread @{ */
/** A statement has ended. Its samples that were taken before its digest was
known get it now.
@param digest  zeros: none
@return the site that held most at the statement's peak */
Site_of_run statement_ended(const unsigned char *digest) noexcept;
/** @} */

struct Status {
  uint64_t since_us;
  uint64_t sample_bytes;
  uint64_t memory_bytes;
  /** Since since_us: samples that found no room, and samples that count for
  site 0 because their stack found none. */
  uint64_t dropped_samples;
  uint64_t dropped_stacks;
};

struct Profile;

/** Keeps the profile readable while it exists. It stops no thread. switch_off()
waits for it, so it should not exist for long. */
class View {
 public:
  View() noexcept;
  ~View();
  View(const View &) = delete;
  View &operator=(const View &) = delete;

  /** false: the profiler is off, and nothing below may be called. */
  explicit operator bool() const { return m_profile != nullptr; }
  const Sample_table &samples() const;
  const Site_table &sites() const;
  Status status() const;

 private:
  const Profile *m_profile;
};

/** @name Around fork(), see mysys/memdiag/fork.cc @{ */
void hold() noexcept;
void let_go(bool in_child) noexcept;
/** @} */

}  // namespace memdiag::profiling

#endif  // MEMDIAG_PROFILER_H
