/*
  The flight recorder: writes the live profile to the flight recorder's file
  once a minute and at new highs of RSS. So after SIGKILL the next start knows
  which code grew.

  begin() allocates what tick() needs. tick() runs near the limit, so it
  allocates nothing, creates no file and looks up no function name. Only where
  a library was loaded or unloaded since the last record, it allocates some 10
  KB after the record, to write the list of modules anew; stacks reach into the
  library from then on. tick() records the pairs of site and digest with most
  bytes; the snapshot's sum includes all pairs.

  Threads: set_file() comes first. One thread at a time calls it, begin(),
  tick() and end(); any calls runs(). tick() waits while runs() reads the file.
  Errors: an errno; the next tick() tries again. std::bad_alloc where said.
  Units: bytes; microseconds since the epoch.
*/

#ifndef MEMDIAG_FLIGHT_RECORDER_H
#define MEMDIAG_FLIGHT_RECORDER_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "mysys/memdiag/base/clock.h"
#include "mysys/memdiag/profiling/code_ranges.h"
#include "plugin/memdiag/profile_file/profile_file.h"
#include "plugin/memdiag/profile_file/record_policy.h"

namespace memdiag::profile {

class Flight_recorder {
 public:
  /** So many pairs are told apart before the largest are chosen. Of more, the
  small ones lose their digests and then their sites (amount_table.h). */
  static constexpr size_t amounts_room = 4096;

  explicit Flight_recorder(Clock clock = clock_us) : m_clock(clock) {}

  /** It reads and writes nothing; runs() and begin() do.
  @throws std::bad_alloc */
  void set_file(const std::string &path, const Run_id &run);

  /** The profiler was switched on: record it from now on. The first call makes
  the file anew, and so does one that finds it deleted or renamed. The former
  run stays in it.
  @param remark  out: of the file that was there, or ""
  @return 0, or the errno that says why nothing is recorded
  @throws std::bad_alloc */
  int begin(std::string *remark = nullptr);

  /** Record a snapshot if it is due. Nothing is recorded before begin(), while
  the profiler is off, or after it was switched on anew until the next begin().
  @param rss_bytes  the present RSS; if it is not known, do not call
  @return 0, or the errno of writing it */
  int tick(uint64_t rss_bytes) noexcept;

  /** The server is being shut down. @return 0 or an errno */
  int end() noexcept;

  /** Reads the file: it is not kept in memory.
  @param remark  out: why records are missing, or ""
  @return this run's records so far are the latest; the former run is the one
  that Contents::run_to_keep() chose
  @throws std::bad_alloc */
  Contents runs(std::string *remark = nullptr) const;

 private:
  struct Buffers;

  int record(const Record_decision &decision, uint64_t rss_bytes) noexcept;
  int note_loaded_code() noexcept;

  const Clock m_clock;
  std::string m_path;
  Run_id m_run{};
  /** Protects m_file while it is set. */
  mutable std::mutex m_mutex;
  std::shared_ptr<Profile_file> m_file;
  std::unique_ptr<Record_policy> m_policy;
  std::shared_ptr<Buffers> m_buffers;
  /** The profile that begin() found. */
  uint64_t m_since_us{0};
  /** Those that the file's modules include. */
  profiling::Code_changes m_code{};
};

}  // namespace memdiag::profile

#endif  // MEMDIAG_FLIGHT_RECORDER_H
