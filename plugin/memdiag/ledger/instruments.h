/*
  Memory instruments: the bytes that Performance Schema counts for each, beside
  the bytes that the allocator has handed out for it and the resident part of
  these.

  Both count whole blocks, with the header that the server or InnoDB puts in
  front of them. The difference is the rounding up to a size class, and a header
  where InnoDB leaves it out (aligned blocks). The two are read one after the
  other, so they also differ by what changes in between.

  Resident bytes are estimated: the ledger has the resident part of a pool's
  live bytes, and each instrument of the pool is taken to have the same part.

  Rows are a pure function of figures. An unknown figure is empty, with the
  reason in the note. Threads: any. Units: bytes and blocks.
*/

#ifndef MEMDIAG_INSTRUMENTS_H
#define MEMDIAG_INSTRUMENTS_H

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mysys/memdiag/routes/routes.h"
#include "plugin/memdiag/allocator/allocator_snapshot.h"
#include "plugin/memdiag/ledger/ledger_rows.h"

namespace memdiag::instruments {

/** A row of memory_summary_global_by_event_name. */
struct Counted {
  /** Performance Schema owns the text, for as long as the process lives. */
  std::string_view name;
  /** While an instrument is disabled, new blocks are not counted. */
  bool enabled;
  /** CURRENT_NUMBER_OF_BYTES_USED and CURRENT_COUNT_USED. */
  uint64_t bytes;
  uint64_t blocks;
  /** HIGH_NUMBER_OF_BYTES_USED. An instrument that is counted by thread has the
  sum of the threads' highest: never too low, possibly too high. */
  uint64_t high_bytes;
};

/** Empty: there is no such instrument, or it is off. */
Reading counted_bytes(std::span<const Counted> all, std::string_view name);

/** Bytes of an instrument that a session holds. The text is as Counted's. */
struct Held {
  std::string_view name;
  uint64_t bytes;
};

/** The instrument that counts the blocks of a route: of a place, the one that
Performance Schema counts them under. */
std::string_view event_of(std::string_view route);

/** The resident part of each pool's live bytes. */
using Shares = std::array<std::optional<double>, pool_count>;

Shares shares(std::span<const Pool_row, pool_count> pools,
              std::span<const ledger::Row> ledger);

/** One row of MEMDIAG_INSTRUMENTS. */
struct Row {
  std::string event_name;
  std::optional<const char *> pool;
  Reading counted_bytes;
  Reading counted_blocks;
  Reading live_bytes;
  Reading live_blocks;
  std::optional<int64_t> overhead_bytes;
  Reading resident_bytes;
  const char *note;
};

/** Sorted by name, with the places that allocate without an instrument.
@param routes  in the order of routes::all(): places before instruments
@throws std::bad_alloc */
std::vector<Row> rows(std::span<const routes::Row> routes,
                      std::span<const Counted> counted, const Shares &shares);

}  // namespace memdiag::instruments

#endif  // MEMDIAG_INSTRUMENTS_H
