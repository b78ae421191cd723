/*
  The receipt of a purge: its effect, and its reason. Types only.
*/

#ifndef MEMDIAG_RECEIPT_H
#define MEMDIAG_RECEIPT_H

#include <algorithm>
#include <cstdint>

namespace memdiag {

enum class Purge_reason : uint8_t {
  /** A user or a program asked for it. */
  asked,
  /** The pool fell quiet (Policy::quiet_ms). */
  quiet,
  /** The pool had too many unused pages (Policy::dirty_limit). */
  dirty_limit,
  /** The pool is busy, but needed few of its unused pages lately. */
  excess,
  /** The machine or the cgroup is short of memory. */
  pressure
};
inline constexpr const char *purge_reason_names[] = {
    "asked", "quiet", "dirty_limit", "excess", "pressure"};

namespace purging {

struct Receipt {
  /** Pages of all arenas that the purge was for, those it left alone among
  them. jemalloc counts those that were never written, too, so these can be more
  than RSS. */
  uint64_t arenas_before_bytes;
  uint64_t arenas_after_bytes;
  uint64_t duration_us;
  /** Those that were purged, not those that were left alone. */
  unsigned arenas;
  /** 0, or the errno of the first step that failed; the sizes then count only
  what could be read. */
  int error;
  /** RSS of the process; 0: not known. */
  uint64_t rss_before_bytes{0};
  uint64_t rss_after_bytes{0};

  /** By jemalloc's count: for decisions about pools. 0 if more was allocated
  meanwhile than given back. */
  constexpr uint64_t given_back_bytes() const {
    return arenas_before_bytes > arenas_after_bytes
               ? arenas_before_bytes - arenas_after_bytes
               : 0;
  }

  bool rss_is_known() const {
    return rss_before_bytes != 0 && rss_after_bytes != 0;
  }

  /** For people: what RSS fell by, at most what the arenas gave back. */
  uint64_t released_bytes() const {
    if (!rss_is_known()) return given_back_bytes();
    return std::min(given_back_bytes(), rss_before_bytes > rss_after_bytes
                                            ? rss_before_bytes - rss_after_bytes
                                            : 0);
  }
};

}  // namespace purging
}  // namespace memdiag

#endif  // MEMDIAG_RECEIPT_H
