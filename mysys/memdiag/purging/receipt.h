/*
  The receipt of a purge: its effect, and its reason. Types only.
*/

#ifndef MEMDIAG_RECEIPT_H
#define MEMDIAG_RECEIPT_H

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

/** Resident bytes are jemalloc's, of the purged arenas. */
struct Receipt {
  uint64_t resident_before_bytes;
  uint64_t resident_after_bytes;
  uint64_t duration_us;
  unsigned arenas;
  /** 0, or the errno of the first step that failed; the sizes then count only
  what could be read. */
  int error;

  /** 0 if more was allocated meanwhile than given back. */
  constexpr uint64_t released_bytes() const {
    return resident_before_bytes > resident_after_bytes
               ? resident_before_bytes - resident_after_bytes
               : 0;
  }
};

}  // namespace purging
}  // namespace memdiag

#endif  // MEMDIAG_RECEIPT_H
