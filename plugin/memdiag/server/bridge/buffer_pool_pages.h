/* InnoDB's page counts in the forms of others, which know no InnoDB. */

#ifndef MEMDIAG_BUFFER_POOL_PAGES_H
#define MEMDIAG_BUFFER_POOL_PAGES_H

#include <optional>

#include "plugin/memdiag/base/reading.h"
#include "plugin/memdiag/host/reserved_pages.h"
#include "plugin/memdiag/ledger/ledger_rows.h"
#include "storage/innobase/memdiag/balloon.h"
#include "storage/innobase/memdiag/innodb.h"

namespace memdiag {

/** Empty: InnoDB is not up, or it is not known whether VmRSS counts the pages.
@throws std::bad_alloc */
inline std::optional<ledger::Buffer_pool_pages> buffer_pool_pages() {
  const auto pool = innodb::buffer_pool();
  const auto reserved = host::has_reserved_pages();
  if (!pool || !reserved) return std::nullopt;
  return ledger::Buffer_pool_pages{pool->page_size, pool->data_pages,
                                   pool->dirty_pages, *reserved,
                                   balloon::parked_bytes()};
}

/** Bytes of the buffer pool's free pages, which it takes as data are read.
Pages that were in use before are resident already and count here, too. Empty:
InnoDB is not up, or it is not known whether a limit counts the pages. Threads:
any. It takes no lock. @throws std::bad_alloc */
inline Reading buffer_pool_growth() {
  const auto pool = innodb::buffer_pool();
  const auto reserved = host::has_reserved_pages();
  if (!pool || !reserved) return std::nullopt;
  // It takes none that a limit counts.
  if (*reserved) return 0;
  return product(pool->free_pages, pool->page_size);
}

}  // namespace memdiag

#endif  // MEMDIAG_BUFFER_POOL_PAGES_H
