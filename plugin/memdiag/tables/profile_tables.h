/*
  The tables of the heap profile: of now, and of runs that were recorded.
*/

#ifndef MEMDIAG_PROFILE_TABLES_H
#define MEMDIAG_PROFILE_TABLES_H

#include <array>
#include <cstdint>

#include "plugin/memdiag/profile/profile_rows.h"
#include "plugin/memdiag/profile_file/record_rows.h"
#include "plugin/memdiag/tables/column.h"

namespace memdiag {

/** Longer texts of stacks are cut. */
inline constexpr uint32_t frames_length = 512;
inline constexpr uint32_t folded_length = 8192;

/** A stack in one line (profile/frames_text.h). */
template <typename Row>
constexpr Column<Row> frames_column() {
  return text_column<Row, &Row::frames>("FRAMES", frames_length,
                                        "The innermost functions that are not "
                                        "the allocator's, from the callee to "
                                        "the caller.");
}

inline constexpr Table profile_table = [] {
  using Row = profile::Profile_row;
  return Table{
      "MEMDIAG_PROFILE",
      "One row for each combination of stack, pool and route that allocated "
      "blocks. The one with most live bytes comes first. Empty while "
      "memdiag_profile is OFF. "
      "Blocks that were allocated before it was set are not included. Figures "
      "are estimates from samples. A column that ends in _ERROR is the "
      "standard error: two thirds of all estimates are off by less.",
      0x0100, 3051124844u,
      std::array{
          column<Row, &Row::stack>(
              "STACK", Unit::none,
              "Number of the stack in MEMDIAG_STACKS and MEMDIAG_SAMPLES. "
              "NULL: stacks that found no room in memdiag_profile_memory."),
          text_column<Row, &Row::pool>("POOL", 64, "Pool of the blocks."),
          text_column<Row, &Row::route>(
              "ROUTE", 128,
              "Route as in MEMDIAG_ROUTES, or malloc for blocks without one."),
          column<Row, &Row::live_bytes>(
              "LIVE_BYTES", Unit::bytes,
              "Allocated since the profiler was switched on and not freed."),
          column<Row, &Row::live_bytes_error>("LIVE_BYTES_ERROR", Unit::bytes,
                                              "Its standard error."),
          column<Row, &Row::live_objects>("LIVE_OBJECTS", Unit::count,
                                          "The blocks of LIVE_BYTES."),
          column<Row, &Row::live_objects_error>(
              "LIVE_OBJECTS_ERROR", Unit::count, "Its standard error."),
          column<Row, &Row::samples>("SAMPLES", Unit::count,
                                     "Samples that the estimate is made from."),
          column<Row, &Row::allocated_bytes>(
              "ALLOCATED_BYTES", Unit::bytes,
              "Allocated since the profiler was switched on, freed or not."),
          column<Row, &Row::oldest_s>("OLDEST_SECONDS", Unit::seconds,
                                      "Age of the oldest live sample."),
          column<Row, &Row::median_s>("MEDIAN_SECONDS", Unit::seconds,
                                      "Median age of the live samples."),
          text_column<Row, &Row::digest>(
              "DIGEST", 64,
              "Statement digest that allocated most of LIVE_BYTES, as in "
              "Performance Schema. NULL: no statement, or Performance Schema "
              "computes no digests."),
          frames_column<Row>(),
          text_column<Row, &Row::folded>(
              "FOLDED", folded_length,
              "All functions, the outermost first, separated by semicolons: "
              "the format of flame graph tools.")}};
}();

inline constexpr Table stacks_table = [] {
  using Row = profile::Stack_row;
  return Table{
      "MEMDIAG_STACKS",
      "One row for each frame of each stack of the profile. Empty while "
      "memdiag_profile is OFF.",
      0x0101, 2976848988u,
      std::array{
          column<Row, &Row::stack>("STACK", Unit::none,
                                   "Number of the stack. It is not used again "
                                   "before the profiler is switched off."),
          column<Row, &Row::frame>(
              "FRAME", Unit::none,
              "Position in the stack, from 1. The allocation comes first."),
          text_column<Row, &Row::address>(
              "ADDRESS", 18,
              "Return address in the process. NULL: MODULE is known, and "
              "MODULE_ADDRESS is the address in it."),
          text_column<Row, &Row::function>(
              "FUNCTION", 512,
              "Function, from the symbol table. NULL: not known."),
          text_column<Row, &Row::file>(
              "FILE", 512,
              "Source file. NULL: the server reads no line numbers; the "
              "program memdiag adds them from the debug package."),
          column<Row, &Row::line>("LINE", Unit::none, "Line in FILE."),
          text_column<Row, &Row::module>(
              "MODULE", 512, "Executable or library that has the function."),
          text_column<Row, &Row::module_address>(
              "MODULE_ADDRESS", 18,
              "Address of the call in MODULE, as addr2line takes it."),
          text_column<Row, &Row::build_id>("BUILD_ID", 64,
                                           "Build ID of MODULE.")}};
}();

inline constexpr Table samples_table = [] {
  using Row = profile::Sample_row;
  return Table{
      "MEMDIAG_SAMPLES",
      "One row for each sampled block that lives. Empty while memdiag_profile "
      "is OFF.",
      0x0100, 2553585748u,
      std::array{
          column<Row, &Row::bytes>("BYTES", Unit::bytes,
                                   "Size of the block, rounded up to its size "
                                   "class."),
          column<Row, &Row::age_s>("AGE_SECONDS", Unit::seconds,
                                   "Time since it was allocated."),
          column<Row, &Row::stack>(
              "STACK", Unit::none,
              "Number of its stack in MEMDIAG_STACKS. NULL: there was no room "
              "for the stack."),
          column<Row, &Row::session>(
              "PROCESSLIST_ID", Unit::none,
              "Session that allocated it, which may have ended. NULL: a thread "
              "without a session."),
          text_column<Row, &Row::digest>(
              "DIGEST", 64,
              "Digest of the statement that allocated it. NULL: none, or not "
              "known."),
          text_column<Row, &Row::pool>("POOL", 64, "Pool of the block."),
          text_column<Row, &Row::route>("ROUTE", 128,
                                        "Its route, or malloc.")}};
}();

inline constexpr Table pinned_table = [] {
  using Row = profile::Pinned_row;
  return Table{
      "MEMDIAG_PINNED",
      "Stacks whose old blocks keep nearly empty slabs alive. A size class of "
      "a pool has rows if less than half of its blocks is in use: up to three "
      "stacks with most blocks that are older than a minute. The class with "
      "most unused bytes comes first. Figures of stacks are estimates from "
      "samples: a stack with few samples may be missing. Empty while "
      "memdiag_profile is OFF.",
      0x0100, 705299792u,
      std::array{
          text_column<Row, &Row::pool>("POOL", 64, "Pool of the slabs."),
          column<Row, &Row::size>("SIZE", Unit::bytes,
                                  "Size class of the blocks."),
          column<Row, &Row::slabs>("SLABS", Unit::count,
                                   "Slabs of the class, in all arenas."),
          column<Row, &Row::utilisation>("UTILISATION", Unit::ratio,
                                         "Part of their blocks that lives."),
          column<Row, &Row::waste_bytes>(
              "WASTE_BYTES", Unit::bytes,
              "Free blocks of the slabs. Their pages cannot be given back."),
          column<Row, &Row::stack>(
              "STACK", Unit::none,
              "Number of a stack in MEMDIAG_STACKS that holds old blocks."),
          column<Row, &Row::samples>("SAMPLES", Unit::count,
                                     "Old samples of this stack and class."),
          column<Row, &Row::objects>("OBJECTS", Unit::count,
                                     "Old blocks that they stand for."),
          column<Row, &Row::objects_error>("OBJECTS_ERROR", Unit::count,
                                           "Standard error of OBJECTS."),
          column<Row, &Row::share>(
              "SHARE", Unit::ratio,
              "OBJECTS as a part of the live blocks of the class."),
          column<Row, &Row::median_s>("MEDIAN_SECONDS", Unit::seconds,
                                      "Median age of the old samples."),
          text_column<Row, &Row::digest>("DIGEST", 64,
                                         "Digest of most of the samples."),
          frames_column<Row>()}};
}();

inline constexpr Table last_run_profile_table = [] {
  using Row = profile::Last_run_profile_row;
  return Table{
      "MEMDIAG_LAST_RUN_PROFILE",
      "The code whose memory grew before the end of the last run with "
      "memdiag_profile = RECORD. One row for each stack and statement has its "
      "live bytes at the highest RSS that was recorded, and before memory "
      "began to grow. The largest growth comes first. A run that was killed "
      "while it grew stays until one that was up for 10 minutes, or has a "
      "higher peak, was recorded.",
      0x0101, 1233610025u,
      std::array{
          text_column<Row, &Row::pool>("POOL", 64,
                                       "Pool of the blocks. NULL: the sum of "
                                       "stacks that found no room."),
          text_column<Row, &Row::route>("ROUTE", 128,
                                        "Route of the blocks, or malloc."),
          text_column<Row, &Row::digest>(
              "DIGEST", 64,
              "Digest of the statement that allocated them. NULL: none, or "
              "not known."),
          column<Row, &Row::growth_bytes>(
              "GROWTH_BYTES", Unit::bytes,
              "PEAK_BYTES less BEFORE_BYTES. NULL: nothing was recorded from "
              "before memory grew."),
          column<Row, &Row::peak_bytes>("PEAK_BYTES", Unit::bytes,
                                        "Live bytes at the peak."),
          column<Row, &Row::before_bytes>("BEFORE_BYTES", Unit::bytes,
                                          "Live bytes before memory grew."),
          column<Row, &Row::error_bytes>(
              "ERROR_BYTES", Unit::bytes,
              "Standard error of GROWTH_BYTES, or of PEAK_BYTES if that is "
              "NULL."),
          column<Row, &Row::peak>("PEAK_TIME", Unit::none,
                                  "When the peak was recorded."),
          column<Row, &Row::before>("BEFORE_TIME", Unit::none,
                                    "When BEFORE_BYTES was recorded."),
          column<Row, &Row::peak_rss_bytes>("PEAK_RSS_BYTES", Unit::bytes,
                                            "RSS of the process at the peak."),
          text_column<Row, &Row::frames>(
              "FRAMES", frames_length,
              "As in MEMDIAG_PROFILE. They are addresses if the server's "
              "executable was replaced since, and the debug package of that "
              "build is not installed."),
          text_column<Row, &Row::folded>(
              "FOLDED", folded_length,
              "All functions, the outermost first, separated by "
              "semicolons.")}};
}();

inline constexpr Table profile_history_table = [] {
  using Row = profile::Profile_history_row;
  return Table{
      "MEMDIAG_PROFILE_HISTORY",
      "Live bytes of the largest stacks over time. While memdiag_profile is "
      "RECORD, the server writes them each minute and at new highs of RSS. "
      "Rows are of this run and of the last one that recorded.",
      0x0101, 145485153u,
      std::array{
          column<Row, &Row::run>("RUN", Unit::none,
                                 "0: this run. 1: the last one."),
          moment_column<Row, &Row::time_us>("TIME",
                                            "When the snapshot was taken."),
          text_column<Row, &Row::reason>(
              "REASON", 16,
              "period: a minute has passed. new_high: RSS was higher than "
              "before. before_ramp: the last snapshot before RSS grew."),
          column<Row, &Row::rss_bytes>("RSS_BYTES", Unit::bytes,
                                       "RSS of the process."),
          column<Row, &Row::live_bytes>(
              "LIVE_BYTES", Unit::bytes,
              "Live bytes of all stacks, also of those without a row."),
          text_column<Row, &Row::pool>("POOL", 64, "Pool of the stack."),
          text_column<Row, &Row::digest>("DIGEST", 64,
                                         "Digest of the statement."),
          column<Row, &Row::stack_bytes>("STACK_BYTES", Unit::bytes,
                                         "Live bytes of the stack for the "
                                         "statement."),
          column<Row, &Row::stack_bytes_error>("STACK_BYTES_ERROR", Unit::bytes,
                                               "Its standard error."),
          frames_column<Row>()}};
}();

}  // namespace memdiag

#endif  // MEMDIAG_PROFILE_TABLES_H
