/*
  Reads the ledger: figures of the kernel, of jemalloc and of InnoDB become
  rows (ledger_rows.h).

  Two forms:
  - Exact: the kernel is asked for every page, and the allocator's extents are
    walked (mysys/memdiag/pages/extents.h): some 10 ms for each 200 MB in small
    blocks. If VmRSS has changed meanwhile by more than 0.25%, all is read
    again, up to four times.
  - Cheap: figures are extrapolated from the last reading (pool_shares.h,
    slow_figures.h). If more than 1% of VmRSS stays unexplained, the mappings
    are read again; the walk and the slow figures are renewed by the rules of
    recent.h, so that they take at most 1% of the time.

  Errors: a figure that cannot be read is empty, as is each row that needs it,
  with a line in `warnings`.
  Threads: any; nothing is stopped, so figures that are read one after the
  other differ by what changes in between. Memory: nothing comes from a pool.
  Units: bytes.
*/

#ifndef MEMDIAG_LEDGER_READER_H
#define MEMDIAG_LEDGER_READER_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mysys/memdiag/base/clock.h"
#include "mysys/memdiag/pages/extents.h"
#include "mysys/memdiag/pages/regions.h"
#include "plugin/memdiag/allocator/allocator_snapshot.h"
#include "plugin/memdiag/ledger/ledger_rows.h"
#include "plugin/memdiag/ledger/recent.h"
#include "plugin/memdiag/ledger/slow_figures.h"

namespace memdiag::ledger {

struct Ledger {
  std::vector<Row> rows;
  std::vector<std::string> warnings;
};

/** Remembers the last reading for the cheap form. */
class Reader {
 public:
  /** As clock_us(). */
  using Clock = uint64_t (*)(clockid_t);

  constexpr explicit Reader(Clock clock = clock_us) : m_clock(clock) {}

  /** @param snapshot     the allocator's figures
  @param buffer_pool  empty while InnoDB is not up
  @throws std::bad_alloc */
  Ledger take(const Snapshot &snapshot,
              const std::optional<Buffer_pool_pages> &buffer_pool,
              Precision precision);

  /** Resident bytes of stacks and of the buffer pool by the last reading;
  empty where it does not describe the present any more.
  @throws std::bad_alloc */
  regions::Resident recent_regions(
      const std::optional<Buffer_pool_pages> &buffer_pool);

  /** The last walk of extents, at most a minute old while a walk takes less
  than 0.6 s. Without one, the extents are walked now.
  @return empty: the kernel does not tell
  @throws std::bad_alloc */
  std::optional<extents::Walk> recent_walk(
      const std::optional<Buffer_pool_pages> &buffer_pool);

 private:
  uint64_t now_us() const { return m_clock(CLOCK_MONOTONIC); }
  Figures read(const Snapshot &snapshot,
               const std::optional<Buffer_pool_pages> &buffer_pool,
               Precision precision, std::vector<std::string> *warnings);
  std::optional<Walked> walk(const std::vector<Address_range> &ranges,
                             uint64_t anonymous_bytes, const All_pools &pools);

  const Clock m_clock;
  Recent<Walked> m_walked;
  Recent<Slow_figures> m_slow;
};

/** The process's only one outside of tests. */
Reader &reader();

}  // namespace memdiag::ledger

#endif  // MEMDIAG_LEDGER_READER_H
