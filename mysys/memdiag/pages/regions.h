/*
  Regions: memory that the server has from the system without an allocator in
  between. The code that maps it adds it here, and removes it before unmapping.

  Stacks are found by the threads that have them: each is linked to the others
  from its own thread-local storage when it begins, and unlinked when it ends.
  The C library keeps stacks of ended threads for the next ones (40 MB at most):
  those are not regions. Neither are stacks of threads that the server does not
  know, jemalloc's for example.

  Ownership: none; the layer only remembers addresses.
  Threads: every function may be called from any thread, before main() and at
  exit too. Adding and removing take a mutex that is held for a microsecond.
  Both are rare: only chunks, blocks of megabytes and threads are added. Errors:
  adding cannot fail. What does not fit is counted. Memory: a fixed table. Lists
  of what there is are the caller's. Units: bytes; pages of the system's size.
*/

#ifndef MEMDIAG_REGIONS_H
#define MEMDIAG_REGIONS_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "mysys/memdiag/pages/presence.h"

namespace memdiag {

enum class Region_kind : uint8_t {
#define MEMDIAG_REGION(kind, name, instrument, purpose) kind,
#include "mysys/memdiag/pages/region_list.h"
#undef MEMDIAG_REGION
  count
};
constexpr size_t region_kinds = static_cast<size_t>(Region_kind::count);

namespace regions {

/** Room for 2 TB of buffer pool in chunks of 128 MB. */
constexpr size_t max_regions = 16384;

/** The kind of region that an instrument accounts for; Region_kind::other for
an instrument that region_list.h does not name. */
Region_kind kind_of(std::string_view instrument);

/** Reserved: huge pages that the system has set aside (large_pages=ON). Neither
VmRSS nor, by default, the limit of a control group counts them
(Documentation/admin-guide/mm/hugetlbpage.rst). InnoDB takes ordinary pages for
each allocation that finds too few of them. */
enum class Pages : uint8_t { ordinary, reserved };

/** Add a region, or change it where one begins at that address.
@param bytes  rounded up to pages, as the system maps them */
void add(Region_kind kind, void *address, size_t bytes,
         Pages pages = Pages::ordinary) noexcept;
/** Forget it; nothing happens where none begins at that address. */
void remove(void *address) noexcept;

/** Add the calling thread's stack until the thread ends. It may be called
again. */
void add_stack_of_thread() noexcept;
/** The calling thread's stack, if it was added; else empty. No lock. */
Address_range stack_of_this_thread() noexcept;
/** Give back the pages of the calling thread's stack that its functions do not
use now. They are zero when they are used again. One system call, if the stack
was added. */
void give_back_unused_stack() noexcept;

struct Region {
  Address_range range;
  Region_kind kind;
  Pages pages{Pages::ordinary};
};

enum class Stacks : bool { without, with };

/** All regions, in no order. The more threads there are, the longer it takes to
go through their stacks.
@throws std::bad_alloc */
std::vector<Region> list(Stacks stacks = Stacks::with);

struct Total {
  uint64_t count;
  uint64_t mapped_bytes;
  /** The part of mapped_bytes in reserved pages. */
  uint64_t reserved_bytes;
};

/** Sums of each kind, without going through the stacks. */
std::array<Total, region_kinds> totals();

/** Some region of the kind lies in reserved pages. No lock. */
bool has_reserved(Region_kind kind) noexcept;

/** Bytes of each kind that are in physical memory; empty: not known. */
using Resident = std::array<std::optional<uint64_t>, region_kinds>;

const char *name(Region_kind kind);

struct Row {
  const char *name;
  const char *purpose;
  uint64_t count;
  uint64_t mapped_bytes;
  /** The part of mapped_bytes in physical memory; empty if the system did not
  tell. Pages that are swapped out are not in it, nor are reserved ones. */
  std::optional<uint64_t> resident_bytes;
  /** Regions that found no room in the table since the server started. */
  uint64_t untracked;
};

/** Sums of each kind.
@param error  0, or the errno of the first read that failed
@param known  kinds of which the system need not be asked
@throws std::bad_alloc */
std::array<Row, region_kinds> all(int *error, const Resident &known = {});

/** Bytes of a region, or of a part of one, in physical memory. A stack is used
from its end on: the search ends at 128 KB of which nothing is there. It thus
asks for few pages of a thousand stacks.
@param scan  asked where it can be, but not about stacks; see Presence
@return empty: the system did not tell, which errno explains */
std::optional<uint64_t> resident_bytes(Address_range range, Region_kind kind,
                                       const Page_scan *scan = nullptr);

/** The same of a region: none in reserved pages, which mincore() shows. */
std::optional<uint64_t> resident_bytes(const Region &region,
                                       const Page_scan *scan = nullptr);

/** The same of all of a kind, by mincore(). @throws std::bad_alloc */
std::optional<uint64_t> resident_bytes(Region_kind kind);

/** Around fork(), see mysys/memdiag/fork.cc: both mutexes are held. */
void hold() noexcept;
void let_go(bool in_child) noexcept;

}  // namespace regions
}  // namespace memdiag

#endif  // MEMDIAG_REGIONS_H
