/* InnoDB's page counts in the forms of others, which know no InnoDB. */

#ifndef MEMDIAG_BUFFER_POOL_PAGES_H
#define MEMDIAG_BUFFER_POOL_PAGES_H

#include <optional>
#include <string>

#include "plugin/memdiag/base/reading.h"
#include "plugin/memdiag/host/kernel_file.h"
#include "plugin/memdiag/host/kernel_text.h"
#include "plugin/memdiag/ledger/ledger_rows.h"
#include "storage/innobase/memdiag_innodb.h"

namespace memdiag {

/** Empty while InnoDB is not up. */
inline std::optional<ledger::Buffer_pool_pages> buffer_pool_pages() {
  const auto pool = innodb::buffer_pool();
  if (!pool) return std::nullopt;
  return ledger::Buffer_pool_pages{pool->page_size, pool->data_pages,
                                   pool->dirty_pages};
}

/** The buffer pool lies in huge pages that are reserved (large_pages=ON), and
not in memory that a limit counts. Reads /proc/self/status. */
inline bool has_reserved_pages() {
  std::string status;
  return kernel_file::read("/proc/self/status", &status) == 0 &&
         kernel_text::amount_of(status, "HugetlbPages").value_or(0) != 0;
}

/** Free pages of the buffer pool, which it takes as data are read. Pages that
were in use before are resident already and count here, too. */
inline Reading buffer_pool_growth() {
  const auto pool = innodb::buffer_pool();
  if (!pool) return std::nullopt;
  if (has_reserved_pages()) return 0;
  return product(pool->free_pages, pool->page_size);
}

}  // namespace memdiag

#endif  // MEMDIAG_BUFFER_POOL_PAGES_H
