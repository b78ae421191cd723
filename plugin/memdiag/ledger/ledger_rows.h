/*
  The ledger: every resident byte of the process once, by its purpose. These
  are its rows, a pure function of figures; ledger_reader.h reads the figures.

  A pool's resident bytes are split by what jemalloc counts (pool_shares.h),
  the buffer pool's by InnoDB's page counts. The last row, "unexplained", is
  VmRSS less all others.

  Errors: a figure that could not be read is empty. So is each row that needs
  it, and so is "unexplained".
  Threads: pure functions. Units: bytes.
*/

#ifndef MEMDIAG_LEDGER_ROWS_H
#define MEMDIAG_LEDGER_ROWS_H

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "mysys/memdiag/pages/extents.h"
#include "mysys/memdiag/pages/regions.h"
#include "plugin/memdiag/allocator/allocator_snapshot.h"
#include "plugin/memdiag/ledger/pool_shares.h"

namespace memdiag::ledger {

/** Pages of the InnoDB buffer pool, as InnoDB counts them. */
struct Buffer_pool_pages {
  uint64_t page_bytes;
  /** Pages with data of a file; dirty_pages are among them. */
  uint64_t data_pages;
  uint64_t dirty_pages;
  /** The share of them in huge pages that the system has reserved
  (large_pages=ON), which VmRSS does not count. part: these counts do not tell
  which of the pages. */
  enum class In_reserved : uint8_t { none, part, all };
  In_reserved in_reserved{In_reserved::none};
  /** The balloon has given the memory of so many frames back (balloon.h). */
  uint64_t parked_bytes{0};
};

/** Resident pages of file mappings of one kind. */
struct File_bytes {
  /** Unchanged pages: they are the file's. */
  Reading file;
  /** Pages that the process wrote to: they are its own copies. */
  Reading own;
};

struct Figures {
  Reading rss_bytes;
  std::array<Reading, region_kinds> regions;
  std::array<uint64_t, region_kinds> regions_mapped;
  File_bytes program;
  File_bytes libraries;
  File_bytes files;
  /** The brk() heap, which serves malloc() calls that bypass jemalloc. */
  Reading heap_bytes;
  /** Anonymous memory outside of regions and of the brk() heap: mostly the
  allocator's. */
  Reading anonymous_bytes;
  std::optional<All_pools> pools;
  /** Exact form: a walk of the same moment. Cheap form: the last walk;
  anonymous_bytes may then be extrapolated from it. */
  std::optional<Walked> walked;
  std::optional<Buffer_pool_pages> buffer_pool;
};

enum class Precision : uint8_t { cheap, exact };

struct Row {
  const char *component;
  /** The pool's or the region's name; "" for components without parts. */
  const char *name;
  const char *state;
  /** Only "unexplained" can be negative: the process gave memory back between
  the reading of its parts and the reading of VmRSS. */
  std::optional<int64_t> resident_bytes;
  /** Share of VmRSS. */
  std::optional<double> percent;
  Reading mapped_bytes;
};

/** The resident bytes of all rows add up to rss_bytes.
@throws std::bad_alloc */
std::vector<Row> rows(const Figures &figures, Precision precision);

}  // namespace memdiag::ledger

#endif  // MEMDIAG_LEDGER_ROWS_H
