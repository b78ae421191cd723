/*
  The columns of INFORMATION_SCHEMA.MEMDIAG_PROFILE.
*/

#ifndef MEMDIAG_PROFILE_TABLE_H
#define MEMDIAG_PROFILE_TABLE_H

#include "plugin/memdiag/profile/profile_rows.h"
#include "plugin/memdiag/tables/column.h"
#include "plugin/memdiag/tables/shared_columns.h"

namespace memdiag {

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
      0x0100,
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

static_assert(fingerprint(profile_table) == 3051124844u,
              "columns changed: raise the table's version, then set this");

}  // namespace memdiag

#endif  // MEMDIAG_PROFILE_TABLE_H
