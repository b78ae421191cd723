/*
  The server's memory limit and its safe limit, as they are now: what the
  sampler, the tables, the status variables and the meter show.

  Readers share a reading that is young enough. The sampler reads each second,
  and so feeds the window of the safe limit; without the sampler
  (memdiag_history_interval_ms = 0) the window has only the moments at which a
  table, a status variable or the meter was read.

  Threads: any. No thread waits while another one reads files: it gets the last
  reading, or unknown figures.
*/

#ifndef MEMDIAG_LIMITS_H
#define MEMDIAG_LIMITS_H

#include <cstdint>
#include <string>

#include "plugin/memdiag/base/reading.h"

namespace memdiag::limits {

struct Figures {
  /** The lowest limit of the control group and those above, or the machine's
  memory where that is less. */
  Reading limit_bytes;
  /** host::Limit_figures */
  Reading room_bytes;
  /** host::Limit_figures: machine_bytes, available_bytes, group_limit_bytes,
  and what is free below the limit of the tightest group. @{ */
  Reading machine_bytes;
  Reading available_bytes;
  Reading group_limit_bytes;
  Reading group_room_bytes;
  /** @} */
  /** The limit of the tightest group; above group_limit_bytes if a group above
  has less room. */
  Reading group_room_limit_bytes;
  /** host/safe_limit.h */
  Reading safe_bytes;
  /** The file that has the use it is computed from; "": the server is in no
  control group that has one. */
  std::string safe_source;
};

/** @param max_age_us  an earlier reading may be as old as this, or 5 s old
while another thread reads; if it is older still, all figures are unknown
@throws std::bad_alloc */
Figures now(uint64_t max_age_us);

/** Bytes that the server will take without a new statement or session; empty:
not known. It may throw std::bad_alloc. Called by any thread that calls now(),
with the mutex of the reading held: it must not call now(). */
using Growth = Reading (*)();

/** nullptr: nothing, the default. */
void set_growth(Growth growth);

}  // namespace memdiag::limits

#endif  // MEMDIAG_LIMITS_H
