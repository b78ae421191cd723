/*
  The black box: samples of the server's memory in a file that is mapped into
  memory, so that they outlive the process however it ends. Who writes a sample
  makes no system call; what the kernel has not yet written to disk when the
  process is killed, it writes later. A machine that loses its power may take
  the last half minute with it.

  Format: a page that says what follows, then room for `capacity` records of
  former runs and a ring of as many of this run. Numbers are as this machine has
  them. A record is a checksum and a sample; each says which run it is of, and
  is believed or not by itself: FNV-1a, 64 bits (Fowler, Noll, Vo). What is half
  written, or was damaged since, does not fit its checksum. Another layout or
  another list of pools is another format.

  Each start makes a new file, of the newest records of the old one, and puts it
  in the old one's place: a server that is killed again and again, or that
  somebody restarts before he looks, keeps what the first one left.

  No SIGBUS: all blocks of the file are reserved before it is mapped, and it may
  be removed at any time. To cut a mapped file short would be fatal, of any
  program's; nothing of ours does.
  Threads: those who share a Box see to it that they use it one at a time.
  Errors: no file ends anything. What cannot be read is told and left; where
  none can be made, the same is kept in memory.
*/

#ifndef MEMDIAG_BLACK_BOX_H
#define MEMDIAG_BLACK_BOX_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "mysys/memdiag/pools/pools.h"
#include "mysys/memdiag/accounting/sessions.h"

namespace memdiag::black_box {

/** Of a figure: it could not be read. */
constexpr uint64_t unknown = UINT64_MAX;

struct Pool_sample {
  uint64_t live_bytes;
  uint64_t dirty_bytes;
};

/** The server's memory at a moment, without padding. Moments are microseconds
since the epoch. */
struct Sample {
  /** Over all runs; given by Box::append(). */
  uint64_t sequence;
  uint64_t time_us;
  /** When the run began, its process and its server's version (90704). */
  uint64_t run_us;
  uint32_t process;
  uint32_t version;
  /** 1: the run's last, taken when the server was shut down. */
  uint64_t ended;

  /** As the kernel counts: /proc/self/status. */
  uint64_t rss_bytes;
  uint64_t swap_bytes;
  /** Highest RSS of the run so far, and when that was seen. */
  uint64_t rss_peak_bytes;
  uint64_t rss_peak_us;
  /** Who had most then, if anybody knew: a session by its number, what it had,
  and the digest of its statement; zeros: none. */
  uint64_t rss_peak_processlist_id;
  uint64_t rss_peak_session_bytes;
  sessions::Digest rss_peak_digest;
  /** What the process may have: of the control group, or of the machine. */
  uint64_t limit_bytes;
  /** As the columns of MEMDIAG_ALLOCATOR and MEMDIAG_POOLS. */
  uint64_t allocated_bytes;
  uint64_t active_bytes;
  uint64_t resident_bytes;
  uint64_t dirty_bytes;
  uint64_t metadata_bytes;
  uint64_t purges;
  uint64_t purged_bytes;
  /** Of the InnoDB buffer pool, in physical memory. */
  uint64_t buffer_pool_bytes;
  std::array<Pool_sample, pool_count> pools;
};

/** As it is in a file. */
struct Record {
  uint64_t checksum;
  Sample sample;
};
/** What a file takes for each sample that it has room for: of this run, and of
former ones. */
constexpr size_t file_bytes_per_sample = 2 * sizeof(Record);

/** What a file, or a part of it, has. */
struct Contents {
  /** In the order of their numbers. */
  std::vector<Sample> samples;
  /** Records that are not whole. */
  size_t damaged{0};
};

/** The largest number of samples of a run that a file has room for. */
constexpr size_t max_capacity = 86400;

/** Reads what was in a file, whatever that is.
@param[out] contents  what was found
@return false: it is no file of this build's
@throws std::bad_alloc */
bool parse(std::span<const std::byte> file, Contents *contents);

/** Reads a file; one that does not exist is empty.
@return what is to be said of it; empty: nothing
@throws std::bad_alloc */
std::string load(const std::string &path, Contents *contents);

class Box {
 public:
  Box() = default;
  ~Box();
  Box(const Box &) = delete;
  Box &operator=(const Box &) = delete;

  /** Make a new file in place of `path`, and map it. To be called once.
  @param capacity  up to max_capacity
  @param former    oldest first; the newest `capacity` are kept
  @return 0, or the errno that says why samples are kept in memory only */
  int open(const std::string &path, size_t capacity,
           std::span<const Sample> former);

  void append(Sample sample) noexcept;

  /** Oldest first; those of this run that are not older than a moment.
  @throws std::bad_alloc */
  std::vector<Sample> former_runs() const;
  std::vector<Sample> this_run(uint64_t since_us = 0) const;

 private:
  std::byte *record_at(size_t index) const;

  std::byte *m_begin{nullptr};
  size_t m_capacity{0};
  uint64_t m_sequence{0};
  uint64_t m_appended{0};
};

}  // namespace memdiag::black_box

#endif  // MEMDIAG_BLACK_BOX_H
