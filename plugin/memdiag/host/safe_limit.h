/*
  The safe limit: how low the limit of the control group may be set now without
  a kill.

  It is the most that the group needed within the last minute, and a sixteenth
  or 32 MiB more, whichever is more. The group is the one with the lowest limit,
  or without a limit the server's own. It needs
  - what it uses, but for the page cache that the kernel can drop at once
    (Limit_figures::kept_bytes). Anonymous memory counts even where there is
    swap: writing it out may take longer than the kernel waits.
  - what it will take without a new statement or session: the free pages of the
    buffer pool, which fill as data are read.

  The minute: use goes up and down with the load, and a limit that fits between
  two peaks kills at the next one. The rest on top: the kernel counts by CPU and
  adds up later, some pages are busy when it looks for one, and a load without
  any page cache reads the program's own code from disk again and again.

  It does not know what statements and sessions of the future will take. After
  another group has got the lowest limit, the former one's minute counts on.

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
