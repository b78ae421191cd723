/*
  What Performance Schema counts of memory instruments. Reads its counters
  without a lock, as its own tables do, and all of them in one pass over the
  threads.
*/

#ifndef MEMDIAG_PERFSCHEMA_MEMORY_H
#define MEMDIAG_PERFSCHEMA_MEMORY_H

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace memdiag::perfschema {

/** A row of memory_summary_global_by_event_name. */
struct Counted {
  /** Performance Schema's, which keeps it. */
  std::string_view name;
  /** What comes while it is not is not counted. */
  bool enabled;
  /** CURRENT_NUMBER_OF_BYTES_USED and CURRENT_COUNT_USED. */
  uint64_t bytes;
  uint64_t blocks;
  /** HIGH_NUMBER_OF_BYTES_USED: of an instrument that is counted by thread the
  sum of the threads' highest, so it may be too high, and never too low. */
  uint64_t high_bytes;
};

/** @param only  names of instruments; none: all there are
@return none if Performance Schema is off
@throws std::bad_alloc */
std::vector<Counted> counted(std::span<const char *const> only = {});

}  // namespace memdiag::perfschema

#endif  // MEMDIAG_PERFSCHEMA_MEMORY_H
