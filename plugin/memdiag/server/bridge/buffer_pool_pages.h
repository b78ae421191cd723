/* InnoDB's page counts in the forms of others, which know no InnoDB. */

#ifndef MEMDIAG_BUFFER_POOL_PAGES_H
#define MEMDIAG_BUFFER_POOL_PAGES_H

#include <cstddef>
#include <optional>

#include "mysys/memdiag/pages/regions.h"
#include "plugin/memdiag/base/reading.h"
#include "plugin/memdiag/ledger/ledger_rows.h"
#include "storage/innobase/memdiag/balloon.h"
#include "storage/innobase/memdiag/innodb.h"

namespace memdiag {

inline regions::Total buffer_pool_regions() {
  return regions::totals()[static_cast<size_t>(Region_kind::buffer_pool)];
}

/** Empty: InnoDB is not up. */
inline std::optional<ledger::Buffer_pool_pages> buffer_pool_pages() {
  const auto pool = innodb::buffer_pool();
  if (!pool) return std::nullopt;
  const regions::Total regions = buffer_pool_regions();
  using In_reserved = ledger::Buffer_pool_pages::In_reserved;
  const In_reserved in_reserved =
      regions.reserved_bytes == 0                      ? In_reserved::none
      : regions.reserved_bytes == regions.mapped_bytes ? In_reserved::all
                                                       : In_reserved::part;
  return ledger::Buffer_pool_pages{pool->page_size, pool->data_pages,
                                   pool->dirty_pages, in_reserved,
                                   balloon::parked_bytes()};
}

/** Bytes of the buffer pool's free pages, which it takes as data are read.
Pages that were in use before are resident already and count here, too. Reserved
pages, which no limit counts, do not; where only a part of the pool lies in
them, this is the most that it can be. Empty: InnoDB is not up. Threads: any. It
takes the mutexes of the regions. */
inline Reading buffer_pool_growth() {
  const auto pool = innodb::buffer_pool();
  if (!pool) return std::nullopt;
  const regions::Total regions = buffer_pool_regions();
  const Reading free_bytes = product(pool->free_pages, pool->page_size);
  // Without reserved pages the regions may be fewer than there are.
  if (regions.reserved_bytes == 0) return free_bytes;
  return lower(free_bytes, regions.mapped_bytes - regions.reserved_bytes);
}

}  // namespace memdiag

#endif  // MEMDIAG_BUFFER_POOL_PAGES_H
