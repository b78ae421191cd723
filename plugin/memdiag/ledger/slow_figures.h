/*
  Figures of the ledger that are slow to read and change slowly: thread stacks,
  the buffer pool and file mappings, whose many page tables the kernel walks.
  The cheap form of the ledger takes them from the last reading, corrected by
  what is quick to count: the number of stacks, and InnoDB's pages of data.

  Threads: pure functions, but for Slow_regions, which reads the list of
  regions when it is made. Units: bytes.
*/

#ifndef MEMDIAG_SLOW_FIGURES_H
#define MEMDIAG_SLOW_FIGURES_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "mysys/memdiag/pages/regions.h"
#include "plugin/memdiag/ledger/ledger_rows.h"

namespace memdiag::ledger {

inline constexpr auto stack_kind =
    static_cast<size_t>(Region_kind::thread_stack);
inline constexpr auto buffer_pool_kind =
    static_cast<size_t>(Region_kind::buffer_pool);

struct Buffer_pool_bytes {
  uint64_t mapped;
  uint64_t resident;
  /** Pages of data, as InnoDB counts them; empty while it is not up. */
  Reading data;
  uint64_t parked;
};

struct Slow_figures {
  /** Resident bytes of that many stacks. */
  uint64_t stack_bytes;
  size_t stacks;
  Buffer_pool_bytes buffer_pool;
  File_bytes program;
  File_bytes libraries;
  File_bytes files;
  uint64_t heap_bytes;
};

/** The present figures of these regions that are quick to count. */
class Slow_regions {
 public:
  explicit Slow_regions(const std::optional<Buffer_pool_pages> &counted);

  /** @return true: figures that were read earlier still describe these regions,
  to about 1% of the buffer pool and an eighth of the stacks */
  bool fit(const Slow_figures &earlier) const;

  /** Resident bytes now, from earlier figures that fit. */
  uint64_t stack_bytes(const Slow_figures &earlier) const;
  uint64_t buffer_pool_bytes(const Slow_figures &earlier) const;

  const std::array<regions::Total, region_kinds> &totals() const {
    return m_totals;
  }
  /** `resident` is not known and 0. */
  const Buffer_pool_bytes &buffer_pool() const { return m_buffer_pool; }

 private:
  const std::array<regions::Total, region_kinds> m_totals;
  Buffer_pool_bytes m_buffer_pool{};
};

}  // namespace memdiag::ledger

#endif  // MEMDIAG_SLOW_FIGURES_H
