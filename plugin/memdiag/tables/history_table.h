/*
  The columns of INFORMATION_SCHEMA.MEMDIAG_HISTORY, which those of
  MEMDIAG_LAST_RUN go on with.
*/

#ifndef MEMDIAG_HISTORY_TABLE_H
#define MEMDIAG_HISTORY_TABLE_H

#include <array>

#include "plugin/memdiag/tables/column.h"
#include "plugin/memdiag/history/history_rows.h"

namespace memdiag {

namespace detail {

/** What a sample shows, of this run or a former one. */
template <typename Row>
constexpr auto sample_columns() {
  return std::array{
      moment_column<Row, &Row::time_us>("TIME", "When it was taken."),
      column<Row, &Row::rss_bytes>("RSS_BYTES", Unit::bytes,
                                   "Physical memory of the process (VmRSS)."),
      column<Row, &Row::swap_bytes>("SWAP_BYTES", Unit::bytes,
                                    "What of it was swapped out (VmSwap)."),
      column<Row, &Row::rss_peak_bytes>(
          "RSS_PEAK_BYTES", Unit::bytes,
          "The highest RSS of the run until then (VmHWM): the kernel "
          "misses none between two samples."),
      column<Row, &Row::rss_peak_time>("RSS_PEAK_TIME", Unit::none,
                                       "The sample that first showed it."),
      column<Row, &Row::rss_peak_session>(
          "RSS_PEAK_SESSION", Unit::none,
          "The session (PROCESSLIST_ID) with most memory at that sample, as "
          "Performance Schema counts it. NULL without that."),
      column<Row, &Row::rss_peak_session_bytes>("RSS_PEAK_SESSION_BYTES",
                                                Unit::bytes, "How much."),
      text_column<Row, &Row::rss_peak_digest>(
          "RSS_PEAK_DIGEST", 64,
          "The digest of the statement that it ran; NULL if it ran none."),
      column<Row, &Row::rss_bytes_per_second>(
          "RSS_BYTES_PER_SECOND", Unit::bytes,
          "How RSS_BYTES changed over the minute before, or over as much "
          "of it as there are samples of."),
      column<Row, &Row::trend_bytes_per_second>(
          "TREND_BYTES_PER_SECOND", Unit::bytes,
          "The slope of a straight line through RSS_BYTES of the 15 minutes "
          "before."),
      column<Row, &Row::trend_r2>(
          "TREND_R2", Unit::ratio,
          "How well that line describes them: 1, completely; near 0, it goes "
          "nowhere."),
      column<Row, &Row::limit_bytes>(
          "LIMIT_BYTES", Unit::bytes,
          "What the process may have: the lowest limit of its control group, "
          "or the machine's memory. Looked at once a minute."),
      column<Row, &Row::seconds_until_limit>(
          "SECONDS_UNTIL_LIMIT", Unit::seconds,
          "When the line will have reached LIMIT_BYTES. NULL: within a year "
          "it will not."),
      column<Row, &Row::allocated_bytes>(
          "ALLOCATED_BYTES", Unit::bytes,
          "This and the next four as in MEMDIAG_ALLOCATOR."),
      column<Row, &Row::active_bytes>("ACTIVE_BYTES", Unit::bytes,
                                      "Pages with allocated blocks."),
      column<Row, &Row::resident_bytes>(
          "RESIDENT_BYTES", Unit::bytes,
          "What the allocator can have in physical memory."),
      column<Row, &Row::dirty_bytes>("DIRTY_BYTES", Unit::bytes,
                                     "Unused pages."),
      column<Row, &Row::metadata_bytes>("METADATA_BYTES", Unit::bytes,
                                        "The allocator's bookkeeping."),
      column<Row, &Row::buffer_pool_bytes>(
          "BUFFER_POOL_BYTES", Unit::bytes,
          "What of InnoDB's buffer pool is in physical memory; with a "
          "large one, of some samples before."),
      text_column<Row, &Row::largest_pool>("LARGEST_POOL", 64,
                                           "The pool with most live bytes."),
      column<Row, &Row::largest_pool_bytes>("LARGEST_POOL_BYTES", Unit::bytes,
                                            "How many."),
      text_column<Row, &Row::grown_pool>(
          "GROWN_POOL", 64,
          "The pool whose live bytes grew most over the minute before; "
          "NULL if none did."),
      column<Row, &Row::grown_pool_bytes>("GROWN_POOL_BYTES", Unit::bytes,
                                          "By how many."),
      column<Row, &Row::purges>("PURGES", Unit::count,
                                "Purges since the server started."),
      column<Row, &Row::purged_bytes>("PURGED_BYTES", Unit::bytes,
                                      "What they gave back.")};
}

}  // namespace detail

inline constexpr Table history_table = [] {
  using Row = History_row;
  return Table{
      "MEMDIAG_HISTORY",
      "One row for each sample that was taken of the server's memory, every "
      "memdiag_history_interval_ms, the last memdiag_history_samples of them. "
      "A figure that could not be read then is NULL.",
      0x0101, detail::sample_columns<Row>()};
}();

static_assert(fingerprint(history_table) == 648498638u,
              "columns changed: raise the table's version, then set this");

}  // namespace memdiag

#endif  // MEMDIAG_HISTORY_TABLE_H
