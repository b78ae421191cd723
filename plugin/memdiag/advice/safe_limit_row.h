/*
  The row of MEMDIAG_HOST with the safe limit of the control group.

  A pure function. Units: bytes.
*/

#ifndef MEMDIAG_SAFE_LIMIT_ROW_H
#define MEMDIAG_SAFE_LIMIT_ROW_H

#include <optional>
#include <string>

#include "plugin/memdiag/history/limits.h"
#include "plugin/memdiag/host/host.h"

namespace memdiag::advisor {

struct Safe_limit_row {
  host::Row row;
  /** "", or why the figure is not known. */
  std::string warning;
};

/** @return empty: the server is in no control group that has one
@throws std::bad_alloc */
inline std::optional<Safe_limit_row> safe_limit_row(
    const limits::Figures &figures) {
  if (figures.safe_source.empty()) return std::nullopt;
  Safe_limit_row result{
      {"cgroup", "safe_limit", std::nullopt, {}, "bytes", figures.safe_source},
      ""};
  if (figures.safe_bytes)
    result.row.number = static_cast<double>(*figures.safe_bytes);
  else
    result.warning = "the safe limit of the control group is not known: " +
                     figures.safe_source +
                     ", memory.stat beside it, or the free pages of InnoDB's "
                     "buffer pool could not be read";
  return result;
}

}  // namespace memdiag::advisor

#endif  // MEMDIAG_SAFE_LIMIT_ROW_H
