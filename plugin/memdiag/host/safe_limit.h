/*
  The safe limit: how low the limit of the control group may be set now without
  a kill.

  The safe limit is the group's highest need of the last minute plus a margin: a
  sixteenth or 32 MiB, whichever is more. The group is the one with the lowest
  limit, or the server's own if no group has a limit. The need is the sum of
  - the memory in use, without page cache that the kernel can drop at once
    (Limit_figures::kept_bytes). Anonymous memory counts even with swap: writing
    it out may take longer than the kernel waits.
  - the free pages of the buffer pool. They fill when data is read, without a
    new statement or session.

  Why a minute: use goes up and down with the load, and a limit that fits
  between two peaks kills at the next one. Why a margin: the kernel counts for
  each CPU and adds up later; some pages are busy when it wants to reclaim them;
  and a server without any page cache reads its own code from disk again and
  again.

  The safe limit does not cover future statements and sessions that need more.
  When another group gets the lowest limit, the needs of the former one count
  until their minute is over.

  Errors: unknown while a figure is not known.
  Threads: an object belongs to one thread. Units: bytes.
*/

#ifndef MEMDIAG_SAFE_LIMIT_H
#define MEMDIAG_SAFE_LIMIT_H

#include <cstdint>
#include <deque>

#include "plugin/memdiag/base/reading.h"

namespace memdiag::host {

class Safe_limit {
 public:
  static constexpr uint64_t window_us = 60'000'000;
  static constexpr uint64_t least_rest_bytes = 32 << 20;
  static constexpr uint64_t rest_part = 16;

  /** @param now_us  the time of a clock that does not go back
  @param needed_bytes  empty: not known
  @throws std::bad_alloc */
  void add(uint64_t now_us, Reading needed_bytes);

  /** As of the last add(). */
  Reading bytes() const;

 private:
  struct Need {
    uint64_t time_us;
    uint64_t bytes;
  };

  /** The needs of the window; each is higher than all that follow it. */
  std::deque<Need> m_needs;
  bool m_known{false};
};

}  // namespace memdiag::host

#endif  // MEMDIAG_SAFE_LIMIT_H
