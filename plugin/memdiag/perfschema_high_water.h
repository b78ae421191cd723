/*
  What Performance Schema saw of a memory instrument. Reads its counters without
  a lock, as its own tables do.
*/

#ifndef MEMDIAG_PERFSCHEMA_HIGH_WATER_H
#define MEMDIAG_PERFSCHEMA_HIGH_WATER_H

#include <cstdint>
#include <optional>
#include <string_view>

namespace memdiag::perfschema {

/** HIGH_NUMBER_OF_BYTES_USED of memory_summary_global_by_event_name: of an
instrument that is counted by thread the sum of the threads' highest, so it may
be too high, and never too low. Empty if nobody counts: Performance Schema or
the instrument is off. */
std::optional<uint64_t> high_water(std::string_view instrument);

}  // namespace memdiag::perfschema

#endif  // MEMDIAG_PERFSCHEMA_HIGH_WATER_H
