/*
  The columns of INFORMATION_SCHEMA.MEMDIAG_LAST_RUN.
*/

#ifndef MEMDIAG_LAST_RUN_TABLE_H
#define MEMDIAG_LAST_RUN_TABLE_H

#include <array>

#include "plugin/memdiag/tables/column.h"
#include "plugin/memdiag/history/history_rows.h"
#include "plugin/memdiag/tables/history_table.h"
#include "plugin/memdiag/tables/shared_columns.h"

namespace memdiag {

inline constexpr Table last_run_table = [] {
  using Row = Last_run_row;
  return Table{
      "MEMDIAG_LAST_RUN",
      "The samples of the run before this one, and of runs before that as far "
      "as there is room for memdiag_history_samples: how it ended for a server "
      "that was killed. They are in memdiag_history.bin in the data directory.",
      0x0101,
      join(
          std::array{
              column<Row, &Row::run>("RUN", Unit::count,
                                     "1: the last run; 2: the one before it."),
              moment_column<Row, &Row::started_us>("STARTED",
                                                   "When the run began."),
              column<Row, &Row::process>("PROCESS", Unit::none,
                                         "The number of its process."),
              text_column<Row, &Row::version>("VERSION", 16,
                                              "The server's version."),
              column<Row, &Row::shut_down>(
                  "SHUT_DOWN", Unit::none,
                  "Whether it was shut down: NO of a server that was killed or "
                  "crashed.")},
          detail::sample_columns<Row>())};
}();

static_assert(fingerprint(last_run_table) == 2755016462u,
              "columns changed: raise the table's version, then set this");

}  // namespace memdiag

#endif  // MEMDIAG_LAST_RUN_TABLE_H
