/*
  The tables of the samples that the server takes of its memory.
*/

#ifndef MEMDIAG_HISTORY_TABLES_H
#define MEMDIAG_HISTORY_TABLES_H

#include <array>

#include "plugin/memdiag/history/history_rows.h"
#include "plugin/memdiag/tables/column.h"

namespace memdiag {

inline constexpr Table history_table = [] {
  using Row = Run_history_row;
  return Table{
      "MEMDIAG_HISTORY",
      "One row for each sample of the server's memory: one every "
      "memdiag_history_interval_ms, the last memdiag_history_samples "
      "of this run, and as many of earlier runs: the end of a server "
      "that was killed. Those are in memdiag_history.bin in the data "
      "directory. While the server rests, the allocator's figures are "
      "up to ten seconds old. A figure that could not be read is "
      "NULL.",
      0x0103, 3850114325u,
      std::array{
          column<Row, &Row::run>(
              "RUN", Unit::none,
              "0: this run; 1: the last one; 2: the one before it."),
          moment_column<Row, &Row::started_us>("STARTED", "Start of the run."),
          column<Row, &Row::process>("PROCESS", Unit::none,
                                     "The run's process id."),
          text_column<Row, &Row::version>("VERSION", 16,
                                          "The server's version."),
          column<Row, &Row::shut_down>(
              "SHUT_DOWN", Unit::none,
              "NO: the server was killed or crashed, also while it shut down. "
              "NULL: this run. A run that ended while InnoDB started has no "
              "row."),
          moment_column<Row, &Row::time_us>("TIME",
                                            "When the sample was taken."),
          column<Row, &Row::rss_bytes>(
              "RSS_BYTES", Unit::bytes,
              "Physical memory of the process (VmRSS)."),
          column<Row, &Row::swap_bytes>(
              "SWAP_BYTES", Unit::bytes,
              "Swapped memory of the process (VmSwap)."),
          column<Row, &Row::rss_peak_bytes>(
              "RSS_PEAK_BYTES", Unit::bytes,
              "Highest RSS of the run so far (VmHWM). The kernel also sees "
              "peaks between two samples."),
          column<Row, &Row::rss_peak_time>("RSS_PEAK_TIME", Unit::none,
                                           "The sample that first showed it."),
          column<Row, &Row::rss_peak_session>(
              "RSS_PEAK_SESSION", Unit::none,
              "The session (PROCESSLIST_ID) with most memory when the peak had "
              "last risen by a mebibyte, as Performance Schema counts it. "
              "NULL: Performance Schema is off, or counted no session's "
              "memory."),
          column<Row, &Row::rss_peak_session_bytes>(
              "RSS_PEAK_SESSION_BYTES", Unit::bytes,
              "That session's memory then."),
          text_column<Row, &Row::rss_peak_digest>(
              "RSS_PEAK_DIGEST", 64,
              "Digest of the statement that it ran then. NULL: none."),
          column<Row, &Row::rss_bytes_per_second>(
              "RSS_BYTES_PER_SECOND", Unit::bytes_per_second,
              "Change of RSS_BYTES over the minute before, or over the part of "
              "it that has samples."),
          column<Row, &Row::trend_bytes_per_second>(
              "TREND_BYTES_PER_SECOND", Unit::bytes_per_second,
              "Slope of a straight line through RSS_BYTES of the 15 minutes "
              "before."),
          column<Row, &Row::trend_r2>(
              "TREND_R2", Unit::ratio,
              "How well the line fits: 1 is exactly, near 0 means no trend."),
          column<Row, &Row::limit_bytes>(
              "LIMIT_BYTES", Unit::bytes,
              "The memory that the process may use: the lowest limit of its "
              "control group, or the machine's memory."),
          column<Row, &Row::seconds_until_limit>(
              "SECONDS_UNTIL_LIMIT", Unit::seconds,
              "Time until the line reaches LIMIT_BYTES, or has grown by all "
              "that other processes leave of a limit. NULL: not within a "
              "year."),
          column<Row, &Row::allocated_bytes>("ALLOCATED_BYTES", Unit::bytes,
                                             "As in MEMDIAG_ALLOCATOR."),
          column<Row, &Row::active_bytes>("ACTIVE_BYTES", Unit::bytes,
                                          "As in MEMDIAG_ALLOCATOR."),
          column<Row, &Row::resident_bytes>("RESIDENT_BYTES", Unit::bytes,
                                            "As in MEMDIAG_ALLOCATOR."),
          column<Row, &Row::dirty_bytes>(
              "DIRTY_BYTES", Unit::bytes,
              "As in MEMDIAG_ALLOCATOR: pages that were "
              "never written count here and not in "
              "RSS_BYTES."),
          column<Row, &Row::metadata_bytes>("METADATA_BYTES", Unit::bytes,
                                            "As in MEMDIAG_ALLOCATOR."),
          column<Row, &Row::buffer_pool_bytes>(
              "BUFFER_POOL_BYTES", Unit::bytes,
              "Physical memory of InnoDB's buffer pool. For a large pool the "
              "figure is some samples old."),
          text_column<Row, &Row::largest_pool>(
              "LARGEST_POOL", 64, "The pool with most live bytes."),
          column<Row, &Row::largest_pool_bytes>(
              "LARGEST_POOL_BYTES", Unit::bytes,
              "Its live bytes, with blocks in caches."),
          text_column<Row, &Row::grown_pool>(
              "GROWN_POOL", 64,
              "The pool whose live bytes grew most over the minute before. "
              "NULL: none grew."),
          column<Row, &Row::grown_pool_bytes>("GROWN_POOL_BYTES", Unit::bytes,
                                              "Its growth."),
          column<Row, &Row::purges>("PURGES", Unit::count,
                                    "Purges since the server started."),
          column<Row, &Row::purged_bytes>("PURGED_BYTES", Unit::bytes,
                                          "Bytes that they released.")}};
}();

inline constexpr Table history_pools_table = [] {
  using Row = History_pool_row;
  return Table{
      "MEMDIAG_HISTORY_POOLS",
      "One row for each pool and each sample of MEMDIAG_HISTORY.", 0x0101,
      1770915729u,
      std::array{
          column<Row, &Row::run>("RUN", Unit::none, "As in MEMDIAG_HISTORY."),
          moment_column<Row, &Row::time_us>("TIME",
                                            "When the sample was taken."),
          text_column<Row, &Row::pool>("POOL", 64, "The pool's name."),
          column<Row, &Row::live_bytes>(
              "LIVE_BYTES", Unit::bytes,
              "LIVE_BYTES and CACHED_BYTES of MEMDIAG_POOLS together."),
          column<Row, &Row::dirty_bytes>(
              "DIRTY_BYTES", Unit::bytes,
              "As in MEMDIAG_POOLS: pages that were never written count as "
              "well.")}};
}();

}  // namespace memdiag

#endif  // MEMDIAG_HISTORY_TABLES_H
