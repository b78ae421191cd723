/* Rows of history as vectors, for tests that look at several of them. */

#ifndef MEMDIAG_TEST_COLLECT_ROWS_H
#define MEMDIAG_TEST_COLLECT_ROWS_H

#include <span>
#include <vector>

#include "plugin/memdiag/history/history_rows.h"

namespace memdiag {

inline std::vector<History_row> history_rows(
    std::span<const black_box::Sample> run) {
  std::vector<History_row> rows;
  history_rows(run, [&rows](const History_row &row) {
    rows.push_back(row);
    return true;
  });
  return rows;
}

inline std::vector<Run_history_row> history_rows(
    std::span<const black_box::Sample> former,
    std::span<const black_box::Sample> run) {
  std::vector<Run_history_row> rows;
  history_rows(former, run, [&rows](const Run_history_row &row) {
    rows.push_back(row);
    return true;
  });
  return rows;
}

inline std::vector<History_pool_row> history_pool_rows(
    std::span<const black_box::Sample> former,
    std::span<const black_box::Sample> run) {
  std::vector<History_pool_row> rows;
  history_pool_rows(former, run, [&rows](const History_pool_row &row) {
    rows.push_back(row);
    return true;
  });
  return rows;
}

}  // namespace memdiag

#endif  // MEMDIAG_TEST_COLLECT_ROWS_H
