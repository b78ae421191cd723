/*
  The pages of the log buffer become resident before redo records need them.

  The log buffer is a ring. Nothing is written to it at start (patch 0014), so
  the first use of each page is a page fault. Without this file the fault
  happens in a thread that has reserved space in the log and not yet copied its
  records there. No later record reaches the log's files before that copy ends.
  So the thread that governs these files makes the next pages resident, until
  each page was used once.

  It uses madvise(MADV_POPULATE_WRITE), which changes no content, so other
  threads may write to the same pages meanwhile. Kernels before 5.14 do not have
  it. There a page becomes resident by its first use.

  The thread runs every 10 ms, and less often while it makes files for the log.
  It passes over space that was reserved and not made resident meanwhile.

  Ownership: the log owns the ring, and says when it begins and ends.
  Threads: begin() and end() by the thread that allocates and frees the ring,
  make_resident() by one other thread.
  Locks: a mutex, held while a piece becomes resident or the ring changes. So a
  change of innodb_log_buffer_size waits for one piece at most.
  Errors: without MADV_POPULATE_WRITE nothing is done. A piece that the kernel
  refuses for another reason is left out.
  Units: bytes. A position counts all bytes that were ever reserved, as an LSN
  does.
*/

#ifndef MEMDIAG_LOG_PAGES_H
#define MEMDIAG_LOG_PAGES_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

namespace memdiag {

/** Chooses the next part of a ring. It chooses each part once. */
class Ring_ahead {
 public:
  /** It does not cross the end of the ring. */
  struct Piece {
    size_t offset;
    size_t bytes;
  };

  static constexpr size_t most_bytes_of_piece = size_t{256} << 10;

  /** The distance is this many times what was reserved between two calls. Calls
  are late while the processors are busy. */
  static constexpr uint64_t times_ahead = 4;
  /** Two pages of 64 KB, the largest that Linux has. */
  static constexpr uint64_t least_ahead = uint64_t{128} << 10;
  /** The log reserves 2 MB in 10 ms at 200 MB/s. This is times_ahead that much.
  A server that becomes quiet keeps so many pages unused. */
  static constexpr uint64_t most_ahead = uint64_t{8} << 20;

  constexpr explicit Ring_ahead(size_t ring_bytes) : m_ring_bytes(ring_bytes) {}

  /** @param position  the end of the reserved space. The ring's first use
  begins at the first position. */
  void move_to(uint64_t position) {
    if (!m_first) m_first = m_position = m_done = position;
    const uint64_t ahead = times_ahead * (position - m_position);
    m_ahead = std::min(std::max(m_ahead, ahead), most_ahead);
    m_position = position;
    m_done = std::max(m_done, position);
  }

  /** @return the next piece; nothing if all is done for this position */
  std::optional<Piece> next() {
    if (!m_first) return std::nullopt;
    const uint64_t end =
        std::min(m_position + m_ahead, *m_first + m_ring_bytes);
    if (m_done >= end) return std::nullopt;
    const size_t offset = m_done % m_ring_bytes;
    const size_t bytes = std::min<uint64_t>(
        {end - m_done, m_ring_bytes - offset, most_bytes_of_piece});
    m_done += bytes;
    return Piece{.offset = offset, .bytes = bytes};
  }

 private:
  size_t m_ring_bytes;
  std::optional<uint64_t> m_first{};
  uint64_t m_position{0};
  /** Up to here nothing is left to do. */
  uint64_t m_done{0};
  /** It only grows: a server that was busy once will be so again. */
  uint64_t m_ahead{least_ahead};
};

class Log_pages {
 public:
  /** The log has allocated its ring. */
  void begin(void *ring, size_t bytes);
  /** The log is about to free its ring. */
  void end() { begin(nullptr, 0); }

  /** include/uapi/asm-generic/mman-common.h of Linux. glibc has it since 2.35.
   */
  static constexpr int populate_write = 23;

  /** @param position  the end of the reserved space of the log */
  void make_resident(uint64_t position);

 private:
  /** @return false: no piece is left */
  bool make_piece_resident(std::optional<uint64_t> position);

  std::mutex m_mutex;
  char *m_ring{nullptr};
  Ring_ahead m_ahead{0};
};

inline constinit Log_pages log_pages;

}  // namespace memdiag

#endif  // MEMDIAG_LOG_PAGES_H
