/*
  Huge pages that the system has reserved, which InnoDB takes for its buffer
  pool with large_pages=ON. Neither VmRSS nor, by default, the limit of a
  control group counts them (Documentation/admin-guide/mm/hugetlbpage.rst).

  Threads: any; no state.
*/

#ifndef MEMDIAG_RESERVED_PAGES_H
#define MEMDIAG_RESERVED_PAGES_H

#include <optional>
#include <string>

#include "mysys/memdiag/base/fault.h"
#include "plugin/memdiag/host/kernel_file.h"
#include "plugin/memdiag/host/kernel_text.h"

namespace memdiag::host {

/** The process has such pages. Empty: /proc/self/status cannot be read.
@throws std::bad_alloc */
inline std::optional<bool> has_reserved_pages() {
  const std::string file = "/proc/self/status";
  std::string status;
  if (fault::at(fault::Point::file, fault::digest_of(file)) ||
      kernel_file::read(file, &status) != 0)
    return std::nullopt;
  return kernel_text::amount_of(status, "HugetlbPages").value_or(0) != 0;
}

}  // namespace memdiag::host

#endif  // MEMDIAG_RESERVED_PAGES_H
