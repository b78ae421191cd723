/*
  What the kernel counts as kept, read within malloc(): a reader that keeps its
  files open and allocates nothing once they are open.

  A control group: its limit, and its use, less page cache and kernel memory
  that the kernel takes back by itself. The program's code is page cache, too.
  Without it the server does nothing but read it again. So the most of it that
  was mapped stays counted, also while the kernel has taken it. memory.stat
  takes longer than the use. So its part is kept for a second while it is small.
  The process: its resident memory that is no file's (/proc/self/statm).

  Upstream looks whether a thread has 20 KB of its stack left, and may call
  malloc() then. So a reading takes little of it.

  Threads: one at a time. open_*() may not run beside read(): the caller sees to
  that. Errors: read() is empty. Units: bytes; microseconds.
*/

#ifndef MEMDIAG_KEPT_READER_H
#define MEMDIAG_KEPT_READER_H

#include <cstdint>
#include <string>

#include "plugin/memdiag/base/reading.h"

namespace memdiag::host {

class Kept_reader {
 public:
  Kept_reader() = default;
  ~Kept_reader() { close_all(); }
  Kept_reader(const Kept_reader &) = delete;
  Kept_reader &operator=(const Kept_reader &) = delete;

  /** @param limit_file  need not be there
  @param code_bytes  mapped files count up to this
  @return 0, or an errno */
  int open_group(const std::string &usage_file, const std::string &stat_file,
                 const std::string &limit_file, int version,
                 uint64_t code_bytes);
  int open_process(const std::string &statm_file);
  void close_all();

  /** @param exact_bytes  read memory.stat each time while the kernel can take
                          back more than this */
  Reading read(uint64_t now_us, uint64_t exact_bytes);
  /** The group's limit when its use was read last. Empty: it is not known. */
  Reading limit_bytes() const { return m_limit_bytes; }

 private:
  int m_usage{-1};
  int m_stat{-1};
  int m_limit{-1};
  bool m_of_process{false};
  int m_version{2};
  uint64_t m_code_bytes{0};
  /** The most of it that was mapped, as far as the group pays for it. */
  uint64_t m_mapped_bytes{0};
  Reading m_reclaimable;
  Reading m_limit_bytes;
  uint64_t m_stat_us{0};
  char m_stat_text[16 << 10];
};

}  // namespace memdiag::host

#endif  // MEMDIAG_KEPT_READER_H
