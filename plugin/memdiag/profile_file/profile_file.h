/*
  The flight recorder's file: profiles of the running server that outlive the
  process, however it ends. Each record goes to the file with one pwrite(). From
  then on the kernel has it: SIGKILL loses nothing.

  Near the limit, a record allocates nothing, creates no file and looks up no
  name: open() allocates every buffer and reserves every block of the file, and
  records store addresses as numbers. The reader of a profile looks the names up
  (symbols.h), as long as the program and its libraries have the same build ids.

  Contents, in two equal parts: a former run, and this run. Each part has
  - one record of the run;
  - modules;
  - sites (numbered stacks), with room for those of the snapshots. A new site
    takes the place of the one that was used longest ago and that no ramp needs;
  - ramps (record_policy.h): a snapshot from before the ramp, and those of its
    last five highs. A new ramp takes the place of the oldest, but never of the
    highest;
  - the history: a ring of snapshots with few amounts each, for a picture of
    live memory over time.

  Format: a page with a header, then fixed-size records in this machine's byte
  order. Each record has a checksum (FNV-1a, 64 bits). If one is half-written or
  damaged, only this record is lost. The header names the layout; a file with
  another header is not read, and kept under another name. When a server first
  records, it writes a new file with the last run that recorded anything, and
  renames it over the old one. A run that recorded nothing does not take the
  place of the one before it. Nor does a short run without a higher peak, if the
  one before it was killed after a ramp: a service that is started again and
  again would lose the evidence.

  Files under a running server:
  - The server goes on writing to a deleted or renamed file, and reading it; the
    next start does not find it. The flight recorder makes a new one with the
    same former run when it is switched on again.
  - If the file was truncated, or its header was overwritten, the next record
    makes the file anew. Its contents are lost, and has_site() is false again.
  - After a failed write (full disk, I/O error) the next record is tried as
    usual. The failed record is missing.

  Size: 17.2 MB on disk from open() on. load(), open() and read() hold as much
  in memory meanwhile. Longer texts are cut: 31 bytes of a pool's name, 95 of a
  route's, 135 of a build id and 511 of a module's path.

  Threads: open() comes first; then any. A mutex is held over the writes of one
  record, and while the file is read.
  Errors: an errno, or a remark for the error log. No state of the file ends the
  process. std::bad_alloc from open() and read() only.
  Units: bytes; microseconds since the epoch.
*/

#ifndef MEMDIAG_PROFILE_FILE_H
#define MEMDIAG_PROFILE_FILE_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/memdiag/profile_file/recorded_run.h"

namespace memdiag::profile {

class Profile_file {
 public:
  Profile_file();
  ~Profile_file();
  Profile_file(const Profile_file &) = delete;
  Profile_file &operator=(const Profile_file &) = delete;

  struct Opened {
    /** 0, or the errno that says why nothing is recorded. */
    int error;
    /** A remark about the file that was there; "": none. */
    std::string remark;
  };
  /** Write a new file in place of `path`. Call it once.
  @param nameless  this run's file until now, which was deleted or renamed: its
                   former run is kept if there is none at `path`
  @throws std::bad_alloc */
  Opened open(const std::string &path, const Run_id &run,
              const Profile_file *nameless = nullptr);

  /** @return false: the file was deleted or renamed, or none is open */
  bool has_name(const std::string &path) const;

  /** The profiler was switched on: the numbers of sites and ramps begin anew
  (so use a new Record_policy). Earlier snapshots keep their sites.
  @return 0 or an errno */
  int begin_profile(uint64_t since_us, uint64_t sample_bytes,
                    std::span<const Module> modules) noexcept;

  /** The modules from now on, in place of those that the file has.
  @return 0 or an errno */
  int set_modules(std::span<const Module> modules) noexcept;

  /** @return true: the file has the site of that number */
  bool has_site(uint32_t number) const noexcept;

  /** Add a site before the snapshot that needs it, if has_site() is false:
  otherwise it takes a second place. The number is not 0.
  @param look  Site::look
  @return 0, or an errno; ENOSPC: ramps need all stored sites. The new site's
  amounts then count for site 0. */
  int add_site(uint32_t number, std::string_view pool, std::string_view route,
               std::span<const uint64_t> addresses, uint32_t look = 0) noexcept;

  /** Add a snapshot with the largest amounts, as many as there is room for.
  @param amounts  in any order, each pair of site and digest once
  @return 0 or an errno */
  int append(const Moment &moment, const Record_decision &decision,
             std::span<const Site_amount> amounts) noexcept;

  /** The server is being shut down.
  @return 0 or an errno */
  int end(uint64_t time_us) noexcept;

  /** Reads the file through the descriptor of open().
  @return a remark, or ""
  @throws std::bad_alloc */
  std::string read(Contents *contents) const;

 private:
  struct Buffers;

  int read_bytes(std::vector<std::byte> *bytes) const;
  int make_intact() noexcept;
  int take_modules(std::span<const Module> modules) noexcept;
  int write_run() noexcept;
  int write_modules() noexcept;
  int write_high(uint32_t ramp) noexcept;
  int write_of_ramp(size_t ramp, size_t place, void *record) noexcept;
  size_t slot_for_site() const noexcept;
  size_t slot_for_ramp(uint32_t ramp) const noexcept;
  void mark_used(const void *record, size_t bit) noexcept;

  mutable std::mutex m_mutex;
  int m_file{-1};
  Run_id m_run{};
  uint64_t m_ended_us{0};
  uint64_t m_since_us{0};
  uint64_t m_sample_bytes{0};
  uint64_t m_sequence{0};
  uint64_t m_history_written{0};
  /** Everything large: allocated by open(). */
  std::unique_ptr<Buffers> m_buffers;
};

}  // namespace memdiag::profile

#endif  // MEMDIAG_PROFILE_FILE_H
