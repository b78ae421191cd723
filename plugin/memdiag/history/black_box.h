/*
  The black box: samples of the server's memory that outlive the process,
  however it ends. A Box keeps them in memory for readers, and writes each to a
  file with one pwrite(). From then on the kernel has it: SIGKILL loses nothing,
  and a power failure loses the last half minute at most.

  Format: a page with a header, then room for `capacity` records of former runs,
  then a ring of `capacity` records of this run. Numbers are in this machine's
  byte order. A record is a sample with its checksum (FNV-1a, 64 bits: Fowler,
  Noll, Vo) and is valid by itself; a half-written or damaged one fails its
  checksum. The header names the layout and the list of pools; a file with
  another header is not read, and kept under another name (record_file.h).

  Each start writes a new file with the newest records of the old one, and
  renames it over the old one. A server that is killed repeatedly thus keeps
  the samples of the first run. A server that dies before its first sample
  leaves nothing: InnoDB recovers and allocates its buffer pool before. Until
  InnoDB has locked its files, another server may run in the same directory,
  and its file must stay.

  Files under a running server:
  - A deleted or renamed file is left alone: this run's samples are in memory
    only.
  - A file that was truncated, or whose header was overwritten, is written anew
    from memory with the next sample.
  - A failed write (full disk, I/O error) is reported to the caller and tried
    again 60 samples later, a minute by default, then with all samples that were
    missed.
  - A file that could not be made is tried again as often. Until then the file
    of former runs gets one sample of this run, now and then in place of its
    oldest. So the next start does not take an older run for the last one.

  Errors: no state of the file ends the process. Without a file, samples are in
  memory only.
*/

#ifndef MEMDIAG_BLACK_BOX_H
#define MEMDIAG_BLACK_BOX_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "mysys/memdiag/accounting/digests.h"
#include "mysys/memdiag/pools/pools.h"

namespace memdiag::black_box {

/** Stands for a figure that could not be read. */
constexpr uint64_t unknown = UINT64_MAX;

struct Pool_sample {
  uint64_t live_bytes;
  uint64_t dirty_bytes;
};

/** The server's memory at a moment, as far as the file has it: a change is
another format. Without padding, because records are compared and summed byte by
byte. Bytes; moments are microseconds since the epoch. */
struct Saved_sample {
  /** Numbers the samples of all runs; assigned by Box::append(). */
  uint64_t sequence;
  uint64_t time_us;
  /** When the run began, its process id and its server's version (90704). */
  uint64_t run_us;
  uint32_t process;
  uint32_t version;
  /** 1: the last sample of a run that was shut down, to its end. */
  uint64_t ended;

  /** As the kernel counts: /proc/self/status. */
  uint64_t rss_bytes;
  uint64_t swap_bytes;
  /** The highest RSS of the run so far, and the time of the first sample that
  shows it. */
  uint64_t rss_peak_bytes;
  uint64_t rss_peak_us;
  /** The session that held most when the peak had last risen by 1 MiB: its
  number, its bytes and the digest of its statement (zeros: none). */
  uint64_t rss_peak_processlist_id;
  uint64_t rss_peak_session_bytes;
  sessions::Digest rss_peak_digest;
  /** The control group's limit, or the machine's memory if that is less. */
  uint64_t limit_bytes;
  /** The least that is left below a limit: other processes use a part of it. */
  uint64_t room_bytes;
  /** As the columns of MEMDIAG_ALLOCATOR and MEMDIAG_POOLS. */
  uint64_t allocated_bytes;
  uint64_t active_bytes;
  uint64_t resident_bytes;
  uint64_t dirty_bytes;
  uint64_t metadata_bytes;
  uint64_t purges;
  uint64_t purged_bytes;
  /** Resident bytes of the InnoDB buffer pool. */
  uint64_t buffer_pool_bytes;
  std::array<Pool_sample, pool_count> pools;
};

/** Memory has more figures than the file. They are unknown of former runs. */
struct Sample : Saved_sample {
  /** InnoDB's redo log buffer, and the resident part of it. */
  uint64_t log_buffer_bytes{unknown};
  uint64_t log_buffer_resident_bytes{unknown};
  /** Resident pages of mapped files and of shared memory, where files of a
  tmpfs count: RssFile and RssShmem. */
  uint64_t file_bytes{unknown};
};

/** As it is in a file. */
struct Record {
  uint64_t checksum;
  Saved_sample sample;
};
/** Size of a file for each sample of its capacity: one of this run and one of
former runs. */
constexpr size_t file_bytes_per_sample = 2 * sizeof(Record);

/** The records of a file. */
struct Contents {
  /** In the order of their sequence numbers. */
  std::vector<Sample> samples;
  /** The server that Box::open() was given. 0: not known. */
  uint64_t server{0};
  /** The number of records with a wrong checksum. */
  size_t damaged{0};
  /** The errno if the file could not be read; EBADMSG: another build's or
  server's; or 0. */
  int error{0};
};

/** The largest number of samples of a run that a file has room for. */
constexpr size_t max_capacity = 86400;

/** Parses any bytes.
@return false: not a file of this build; contents are unchanged
@throws std::bad_alloc */
bool parse(std::span<const std::byte> file, Contents *contents);

/** Reads a file; one that does not exist is empty.
@param server  as Recorder::open(); a file of another is empty, too
@return a remark for the error log, or ""
@throws std::bad_alloc */
std::string load(const std::string &path, uint64_t server, Contents *contents);

/** Threads: open(), append() and end() belong to one thread at a time;
former_runs() and this_run() may be called from any thread once open() has
returned. A mutex is
held while samples are copied, so append() may wait for a reader. It is never
held while the file is read or written. */
class Box {
 public:
  Box() = default;
  ~Box();
  Box(const Box &) = delete;
  Box &operator=(const Box &) = delete;

  /** Write a new file in place of `path`; if that fails, append() tries it
  again. To be called once.
  @param capacity  samples of a run, 1 to max_capacity
  @param former    oldest first; the newest `capacity` are kept
  @param server    tells whose file it is (Recorder::open())
  @return 0, or the errno that says why samples are kept in memory only
  @throws std::bad_alloc */
  int open(const std::string &path, size_t capacity,
           std::span<const Sample> former, uint64_t server);

  /** Add a sample of this run, in place of the oldest if there are `capacity`.
  @return 0, or the errno of writing it to the file; the sample is then in
  memory only. 0 also while a write that failed, or a file that could not be
  made, waits for its next attempt. */
  int append(Sample sample) noexcept;

  /** The run is shut down: its newest sample says so from now on. It does not
  wait for the next attempt: a file that could not be made is made now.
  @return 0, or the errno of writing that */
  int end() noexcept;

  /** Oldest first. They do not change any more. */
  const std::vector<Sample> &former_runs() const { return m_former; }
  /** Copies of the newest samples up to the first that is older than a moment,
  in the order in which they were taken: time_us falls where the clock was set
  back. Inside an Interruptible that ends the read (interruption.h), some are
  missing.
  @param since_us  since the epoch
  @throws std::bad_alloc */
  std::vector<Sample> this_run(uint64_t since_us = 0) const;

  /** Samples from one attempt to write to the next, after one that failed. */
  static constexpr unsigned retry_after_samples = 60;

 private:
  int make() noexcept;
  int write_newest() noexcept;
  void mark_former_file(Sample sample) const noexcept;
  int write_all() const;

  std::string m_path;
  /** The name of a file that is being made. */
  std::string m_fresh;
  int m_file{-1};
  size_t m_capacity{0};
  uint64_t m_server{0};
  uint64_t m_sequence{0};
  /** The file lacks samples, because a write failed. */
  bool m_is_behind{false};
  /** Samples until the next attempt to write. */
  unsigned m_retry_in{0};
  std::vector<Sample> m_former;
  /** Protects the two below. */
  mutable std::mutex m_mutex;
  /** A ring: sample n of this run is at n % m_capacity. */
  std::vector<Sample> m_ring;
  uint64_t m_appended{0};
};

}  // namespace memdiag::black_box

#endif  // MEMDIAG_BLACK_BOX_H
