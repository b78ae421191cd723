/*
  The log buffer's pages become resident before redo records need them.

  The log buffer is a ring of 64 MB that is not written at start (patch 0014).
  The first use of a page is a page fault. Without this file it happens in a
  thread that has reserved space in the log and not yet copied its records, and
  all later records wait for it. So a background thread makes the next pages
  resident, until each page of the ring was used once.

  The way is madvise(MADV_POPULATE_WRITE), which changes no content, so other
  threads may write into the same pages meanwhile. Kernels before 5.14 do not
  have it. Pages become resident on their first use there.

  Ownership: the ring is the log's. A range is a copy.
  Threads: log_files_governor only, which calls every 10 ms.
  Locks: the checkpointer's mutex, which each resize of the ring holds. It is
  only tried, so this never waits; a later call makes up for it. It is held for
  most_ahead bytes at most, half a millisecond.
  Errors: if the kernel refuses, that ring is left alone.
  Units: bytes. A position counts the bytes that were ever put into the ring, as
  an LSN does.
*/

#ifndef MEMDIAG_LOG_PAGES_H
#define MEMDIAG_LOG_PAGES_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

struct log_t;

namespace memdiag {

/** Says which part of a ring is needed next, once for each part. */
class Ring_ahead {
 public:
  /** Does not cross the end of the ring. */
  struct Range {
    size_t offset;
    size_t bytes;
  };

  /** As many times what was written between two calls. Calls are late when the
  processors are busy, which is when it matters. */
  static constexpr uint64_t times_ahead = 4;
  static constexpr uint64_t most_ahead = uint64_t{4} << 20;

  explicit Ring_ahead(size_t ring_bytes) : m_ring_bytes(ring_bytes) {}

  /** @param position  the end of what is written. The first one starts the
  count, later ones are not smaller. */
  std::optional<Range> next(uint64_t position) {
    if (!m_first) m_first = m_last = m_done = position;
    const uint64_t ahead = times_ahead * (position - m_last);
    m_last = position;
    m_ahead = std::min(std::max(m_ahead, ahead), most_ahead);

    const uint64_t begin = std::max(m_done, position);
    const uint64_t end = std::min(position + m_ahead, *m_first + m_ring_bytes);
    if (begin >= end) return std::nullopt;
    const size_t offset = begin % m_ring_bytes;
    const size_t bytes = std::min<uint64_t>(end - begin, m_ring_bytes - offset);
    m_done = begin + bytes;
    return Range{.offset = offset, .bytes = bytes};
  }

 private:
  size_t m_ring_bytes;
  std::optional<uint64_t> m_first{};
  uint64_t m_last{0};
  uint64_t m_done{0};
  /** Grows only: a server that was busy once will be so again. */
  uint64_t m_ahead{0};
};

/** Make the next pages of the log's ring resident. */
void make_log_pages(log_t &log);

}  // namespace memdiag

#endif  // MEMDIAG_LOG_PAGES_H
