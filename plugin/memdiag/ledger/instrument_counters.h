/*
  One memory instrument's counters in Performance Schema, as a plain struct: the
  rows of MEMDIAG_INSTRUMENTS are made from it without the server.
*/

#ifndef MEMDIAG_INSTRUMENT_COUNTERS_H
#define MEMDIAG_INSTRUMENT_COUNTERS_H

#include <cstdint>
#include <string_view>

namespace memdiag::perfschema {

/** A row of memory_summary_global_by_event_name. */
struct Counted {
  /** Performance Schema owns the text. */
  std::string_view name;
  /** Blocks that come while an instrument is disabled are not counted. */
  bool enabled;
  /** CURRENT_NUMBER_OF_BYTES_USED and CURRENT_COUNT_USED. */
  uint64_t bytes;
  uint64_t blocks;
  /** HIGH_NUMBER_OF_BYTES_USED. An instrument that is counted by thread has the
  sum of the threads' highest values here: possibly too high, never too low. */
  uint64_t high_bytes;
};

}  // namespace memdiag::perfschema

#endif  // MEMDIAG_INSTRUMENT_COUNTERS_H
