/*
  The columns of INFORMATION_SCHEMA.MEMDIAG_BUDGET.
*/

#ifndef MEMDIAG_BUDGET_TABLE_H
#define MEMDIAG_BUDGET_TABLE_H

#include "plugin/memdiag/budget/budget.h"
#include "plugin/memdiag/tables/column.h"

namespace memdiag {

inline constexpr Table budget_table = [] {
  using Row = budget::Row;
  return Table{
      "MEMDIAG_BUDGET",
      "One row for each system variable that determines memory, and their "
      "TOTAL. The worst case is what the configuration allows: max_connections "
      "sessions at once, each of which uses each of its buffers once, to its "
      "full size. It does not include larger values that sessions set for "
      "themselves, or statements that join or sort more than once.",
      0x0100,
      std::array{
          text_column<Row, &Row::variable>("VARIABLE", 64,
                                           "The system variable, or TOTAL."),
          text_column<Row, &Row::scope>(
              "SCOPE", 16, "global. both: sessions can have their own values."),
          column<Row, &Row::value>("VALUE", Unit::none,
                                   "The global value; ON is 1. NULL, with a "
                                   "warning: it could not be read."),
          text_column<Row, &Row::unit>("UNIT", 16, "Unit of VALUE."),
          text_column<Row, &Row::kind>(
              "KIND", 16,
              "buffer: allocated at once, at full size. growing: up to this "
              "size, as data need it. part: included in the row PART_OF. "
              "limit: bounds others and allocates nothing. unbounded: no "
              "variable bounds it, or its value means no limit. unused: has no "
              "effect in this version. total."),
          text_column<Row, &Row::allocated_by>(
              "ALLOCATED_BY", 128,
              "The part of the server that allocates the memory."),
          text_column<Row, &Row::allocated_when>("ALLOCATED_WHEN", 64,
                                                 "When it does."),
          column<Row, &Row::bytes_each>(
              "BYTES_EACH", Unit::bytes,
              "Bytes of one: the value, or a measured size."),
          column<Row, &Row::times>("TIMES", Unit::count,
                                   "How many there may be at once."),
          text_column<Row, &Row::times_of>("TIMES_OF", 64,
                                           "Where TIMES comes from."),
          column<Row, &Row::worst_case_bytes>("WORST_CASE_BYTES", Unit::bytes,
                                              "BYTES_EACH times TIMES."),
          column<Row, &Row::worst_seen_bytes>(
              "WORST_SEEN_BYTES", Unit::bytes,
              "Most that was allocated at once since the server started, as "
              "far as it is known."),
          text_column<Row, &Row::seen_by>(
              "SEEN_BY", 128,
              "The source: an instrument of Performance Schema, which adds up "
              "the threads' peaks; a pool, which holds other things too; or "
              "Max_used_connections times BYTES_EACH."),
          text_column<Row, &Row::part_of>(
              "PART_OF", 64, "The variable whose row includes it."),
          text_column<Row, &Row::note>("NOTE", 512,
                                       "Remarks on the figures, and on memory "
                                       "that they do not include.")}};
}();

static_assert(fingerprint(budget_table) == 1706112295u,
              "columns changed: raise the table's version, then set this");

}  // namespace memdiag

#endif  // MEMDIAG_BUDGET_TABLE_H
