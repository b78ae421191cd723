/*
  The columns of INFORMATION_SCHEMA.MEMDIAG_LAST_RUN.
*/

#ifndef MEMDIAG_LAST_RUN_TABLE_H
#define MEMDIAG_LAST_RUN_TABLE_H

#include <array>

#include "plugin/memdiag/history/history_rows.h"
#include "plugin/memdiag/tables/column.h"
#include "plugin/memdiag/tables/history_table.h"
#include "plugin/memdiag/tables/shared_columns.h"

namespace memdiag {

inline constexpr Table last_run_table = [] {
  using Row = Last_run_row;
  return Table{
      "MEMDIAG_LAST_RUN",
      "The last samples of earlier runs, up to memdiag_history_samples in all: "
      "the end of a server that was killed. They are in memdiag_history.bin in "
      "the data directory.",
      0x0101,
      join(std::array{column<Row, &Row::run>(
                          "RUN", Unit::none,
                          "1: the last run; 2: the one before it."),
                      moment_column<Row, &Row::started_us>("STARTED",
                                                           "Start of the run."),
                      column<Row, &Row::process>("PROCESS", Unit::none,
                                                 "The run's process id."),
                      text_column<Row, &Row::version>("VERSION", 16,
                                                      "The server's version."),
                      column<Row, &Row::shut_down>(
                          "SHUT_DOWN", Unit::none,
                          "NO: the server was killed or crashed.")},
           detail::sample_columns<Row>())};
}();

static_assert(fingerprint(last_run_table) == 2755016462u,
              "columns changed: raise the table's version, then set this");

}  // namespace memdiag

#endif  // MEMDIAG_LAST_RUN_TABLE_H
