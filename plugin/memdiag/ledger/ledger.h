/*
  The ledger: every resident byte of the process once, by what it is for.

  The kernel says which pages are there (of anonymous memory by mincore, of
  files by the page map); the regions and the allocator say whose they are; what
  is left of VmRSS is shown as unexplained. Rows are a pure function of figures.

  Two forms, which differ in the allocator's pages only:
  - exact: its extents are walked (mysys/memdiag/pages/extents.h), which takes the longer
  the more of them there are; anew, a few times, if VmRSS has changed meanwhile.
  - cheap: the allocator's pages are what jemalloc counts now, less those that
  the last walk found never to have been written. Stacks, by their number, the
  buffer pool, by its pages of data, and pages of files are of the last look,
  too: asking for them takes the longer the more there are. If all of it is more
  than a hundredth off VmRSS, the kernel is asked for the allocator's pages as a
  whole, which are shared out alike, and there is another walk and look as soon
  as the last one took less than a hundredth of the time; at the latest after a
  minute.

  Limits: pages in no extent are taken for the allocator's metadata as far as it
  counts any; pages that it counts as dirty are taken to be there.

  Errors: a figure that cannot be read is empty, as is every row that needs it,
  with a line in `warnings`.
  Threads: any; nothing stops meanwhile, so rows are apart by what changes while
  they are read. Nothing of the pools is allocated. Units: bytes.
*/

#ifndef MEMDIAG_LEDGER_H
#define MEMDIAG_LEDGER_H

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plugin/memdiag/allocator/allocator_snapshot.h"
#include "mysys/memdiag/pages/extents.h"
#include "storage/innobase/memdiag_innodb.h"
#include "mysys/memdiag/pages/regions.h"

namespace memdiag::ledger {

/** What jemalloc counts of a pool. */
struct Pool_figures {
  uint64_t live_bytes;
  uint64_t active_bytes;
  uint64_t dirty_bytes;
  uint64_t muzzy_bytes;
  uint64_t metadata_bytes;
};
using All_pools = std::array<Pool_figures, pool_count>;

/** A walk, and what jemalloc counted at its time. */
struct Walked {
  extents::Walk walk;
  All_pools pools;
  /** What mincore() counted that the walk did not: pages of zeros that were
  only read. */
  uint64_t only_read_bytes;
};

/** Pages of files of a kind, and its pages that are no file's any more. */
struct File_bytes {
  Reading file;
  Reading own;
};

struct Figures {
  Reading rss_bytes;
  std::array<Reading, region_kinds> regions;
  std::array<uint64_t, region_kinds> regions_mapped;
  File_bytes program;
  File_bytes libraries;
  File_bytes files;
  Reading heap_bytes;
  /** Anonymous memory that is nobody else's: the allocator's, mostly. */
  Reading anonymous_bytes;
  std::optional<All_pools> pools;
  /** Exact: of the same moment. Cheap: the last, and anonymous_bytes may be
  what is to be expected by it. */
  std::optional<Walked> walked;
  std::optional<innodb::Buffer_pool> buffer_pool;
};

enum class Precision : uint8_t { cheap, exact };

struct Row {
  const char *component;
  /** Of which there are several: the pool's, the region's name. */
  const char *name;
  const char *state;
  /** Negative only of what is unexplained: more was found than the process had
  a moment later. */
  std::optional<int64_t> resident_bytes;
  std::optional<double> percent;
  Reading mapped_bytes;
};

/** Their resident bytes add up to rss_bytes. */
std::vector<Row> rows(const Figures &figures, Precision precision);

struct Ledger {
  std::vector<Row> rows;
  std::vector<std::string> warnings;
};

/** Read everything now; the allocator's figures are the snapshot's.
@param buffer_pool  InnoDB's figures, if it is up
@throws std::bad_alloc */
Ledger take(const Snapshot &snapshot,
            const std::optional<innodb::Buffer_pool> &buffer_pool,
            Precision precision);

/** Of the kinds of regions that take long to ask for, what the last look found,
while it is as good as another one. @throws std::bad_alloc */
regions::Resident recent_regions(
    const std::optional<innodb::Buffer_pool> &buffer_pool);

/** The last walk, a minute old at most while one takes less than half a second;
if there is none as recent, one of now. @return empty: it is not known */
std::optional<extents::Walk> recent_walk(
    const std::optional<innodb::Buffer_pool> &buffer_pool);

}  // namespace memdiag::ledger

#endif  // MEMDIAG_LEDGER_H
