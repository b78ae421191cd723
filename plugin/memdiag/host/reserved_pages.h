/*
  Huge pages that the system has reserved, which InnoDB takes for its buffer
  pool with large_pages=ON. Neither VmRSS nor, by default, the limit of a
  control group counts them (Documentation/admin-guide/mm/hugetlbpage.rst).

  Threads: any; no state. Errors: a file that cannot be read has none.
*/

#ifndef MEMDIAG_RESERVED_PAGES_H
#define MEMDIAG_RESERVED_PAGES_H

#include <string>

#include "plugin/memdiag/host/kernel_file.h"
#include "plugin/memdiag/host/kernel_text.h"

namespace memdiag::host {

/** The process has such pages. Reads /proc/self/status.
@throws std::bad_alloc */
inline bool has_reserved_pages() {
  std::string status;
  return kernel_file::read("/proc/self/status", &status) == 0 &&
         kernel_text::amount_of(status, "HugetlbPages").value_or(0) != 0;
}

}  // namespace memdiag::host

#endif  // MEMDIAG_RESERVED_PAGES_H
