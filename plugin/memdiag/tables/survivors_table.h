/*
  The columns of INFORMATION_SCHEMA.MEMDIAG_SURVIVORS.
*/

#ifndef MEMDIAG_SURVIVORS_TABLE_H
#define MEMDIAG_SURVIVORS_TABLE_H

#include "mysys/memdiag/accounting/scopes.h"
#include "plugin/memdiag/tables/column.h"

namespace memdiag {

inline constexpr Table survivors_table = [] {
  using Row = scopes::Row;
  return Table{
      "MEMDIAG_SURVIVORS",
      "One row for each route with survivors: blocks that outlived their "
      "statement, transaction or session, whichever is the LIFETIME of their "
      "pool. Counted while memdiag_scope_survivors is ON.",
      0x0101,
      std::array{
          text_column<Row, &Row::route>("ROUTE", 192,
                                        "The route, as in MEMDIAG_ROUTES."),
          text_column<Row, &Row::pool_name>("POOL", 64, "The blocks' pool."),
          text_column<Row, &Row::scope_name>(
              "SCOPE", 16,
              "The lifetime that they outlived: statement, transaction or "
              "session."),
          column<Row, &Row::bytes>(
              "BYTES", Unit::bytes,
              "Survivors that still live, rounded up to size classes."),
          column<Row, &Row::blocks>("BLOCKS", Unit::count,
                                    "Blocks of these bytes."),
          column<Row, &Row::scopes>(
              "SCOPES", Unit::count,
              "Statements, transactions or sessions that left more than they "
              "found, since the route last had no survivors."),
          moment_column<Row, &Row::since_us>("SINCE",
                                             "End of the first of these."),
          moment_column<Row, &Row::last_us>("LAST",
                                            "End of the last of these."),
          column<Row, &Row::age_s>("AGE_SECONDS", Unit::seconds,
                                   "Time since SINCE: no survivor is older.")}};
}();

static_assert(fingerprint(survivors_table) == 61672893u,
              "columns changed: raise the table's version, then set this");

}  // namespace memdiag

#endif  // MEMDIAG_SURVIVORS_TABLE_H
