/*
  Memory instruments: what Performance Schema counts of each beside what the
  allocator has given out for it and what of that is in physical memory.

  Both count whole blocks, with the header that the server or InnoDB puts before
  them: the difference is what the allocator adds by rounding up to a size
  class, and a header where InnoDB leaves it out (aligned blocks). The two are
  read one after the other, so they are apart by what happens meanwhile.

  Resident bytes are shared out: a pool's live bytes are in physical memory to
  the part that the ledger says, and each instrument's in the same part.

  Rows are a pure function of figures. What is not known is empty, and the note
  says why. Threads: any. Units: bytes and blocks.
*/

#ifndef MEMDIAG_INSTRUMENTS_H
#define MEMDIAG_INSTRUMENTS_H

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plugin/memdiag/allocator/allocator_snapshot.h"
#include "plugin/memdiag/ledger/instrument_counters.h"
#include "plugin/memdiag/ledger/ledger_rows.h"
#include "mysys/memdiag/routes/routes.h"

namespace memdiag::instruments {

/** Of each pool's live bytes, the part in physical memory. */
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

/** In the order of their names; places that allocate without an instrument are
among them. @throws std::bad_alloc */
std::vector<Row> rows(std::span<const routes::Row> routes,
                      std::span<const perfschema::Counted> counted,
                      const Shares &shares);

}  // namespace memdiag::instruments

#endif  // MEMDIAG_INSTRUMENTS_H
