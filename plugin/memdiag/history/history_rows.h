/*
  Makes the rows of MEMDIAG_HISTORY and MEMDIAG_HISTORY_POOLS from samples. Pure
  functions that throw std::bad_alloc only.
*/

#ifndef MEMDIAG_HISTORY_ROWS_H
#define MEMDIAG_HISTORY_ROWS_H

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "plugin/memdiag/base/reading.h"
#include "plugin/memdiag/history/black_box.h"

namespace memdiag {

struct History_row {
  uint64_t time_us;
  Reading rss_bytes;
  Reading swap_bytes;
  Reading rss_peak_bytes;
  std::optional<Timestamp> rss_peak_time;
  Reading rss_peak_session;
  Reading rss_peak_session_bytes;
  std::optional<std::string> rss_peak_digest;
  /** Over the minute before the sample, or the part of it that has samples. */
  std::optional<double> rss_bytes_per_second;
  /** Slope and fit of the line through the last quarter of an hour (trend.h).
   */
  std::optional<double> trend_bytes_per_second;
  std::optional<double> trend_r2;
  Reading limit_bytes;
  /** Time until that line reaches the limit, or has grown by all that is left
  of one; empty: never. */
  Reading seconds_until_limit;
  Reading allocated_bytes;
  Reading active_bytes;
  Reading resident_bytes;
  Reading dirty_bytes;
  Reading metadata_bytes;
  Reading buffer_pool_bytes;
  std::optional<const char *> largest_pool;
  Reading largest_pool_bytes;
  /** The pool that grew most in that minute. */
  std::optional<const char *> grown_pool;
  Reading grown_pool_bytes;
  uint64_t purges;
  uint64_t purged_bytes;
};

struct Run_history_row : History_row {
  /** 0: this run, 1: the last, 2: the one before that. */
  uint64_t run;
  uint64_t started_us;
  uint64_t process;
  std::string version;
  /** Empty: the run has not ended. */
  std::optional<bool> shut_down;
};

struct History_pool_row {
  /** 0: this run. */
  uint64_t run;
  uint64_t time_us;
  const char *pool;
  Reading live_bytes;
  Reading dirty_bytes;
};

/** Takes a row; false: no more are wanted. */
template <typename Row>
using Take_row = std::function<bool(const Row &)>;

/** Rows are made one by one, so that a million of them takes no memory.
@param run  samples of one run, oldest first */
void history_rows(std::span<const black_box::Sample> run,
                  const Take_row<History_row> &take);

/** @param former  samples of former runs, oldest first
@param run  those of this run */
void history_rows(std::span<const black_box::Sample> former,
                  std::span<const black_box::Sample> run,
                  const Take_row<Run_history_row> &take);

void history_pool_rows(std::span<const black_box::Sample> former,
                       std::span<const black_box::Sample> run,
                       const Take_row<History_pool_row> &take);

}  // namespace memdiag

#endif  // MEMDIAG_HISTORY_ROWS_H
