/*
  The columns of INFORMATION_SCHEMA.MEMDIAG_SURVIVORS.
*/

#ifndef MEMDIAG_SURVIVORS_TABLE_H
#define MEMDIAG_SURVIVORS_TABLE_H

#include "plugin/memdiag/tables/column.h"
#include "mysys/memdiag/accounting/scopes.h"

namespace memdiag {

inline constexpr Table survivors_table = [] {
  using Row = scopes::Row;
  return Table{
      "MEMDIAG_SURVIVORS",
      "One row for each route of which blocks outlived the statement, "
      "transaction or session whose end is the lifetime of their pool. Counted "
      "while memdiag_scope_survivors is ON.",
      0x0100,
      std::array{
          text_column<Row, &Row::route>(
              "ROUTE", 192, "What the blocks are for, as in MEMDIAG_ROUTES."),
          text_column<Row, &Row::pool_name>("POOL", 64,
                                            "The pool that they are from."),
          text_column<Row, &Row::scope_name>(
              "SCOPE", 16,
              "What they outlived: statement, transaction, "
              "session."),
          column<Row, &Row::bytes>("BYTES", Unit::bytes,
                                   "What lives of them, rounded up to size "
                                   "classes."),
          column<Row, &Row::blocks>("BLOCKS", Unit::count,
                                    "Blocks that these bytes are in."),
          column<Row, &Row::scopes>(
              "SCOPES", Unit::count,
              "How many statements, transactions or sessions left more than "
              "they found, since the route last had no survivors."),
          moment_column<Row, &Row::since_us>("SINCE",
                                             "When the first of those ended."),
          moment_column<Row, &Row::last_us>("LAST",
                                            "When the last of those ended."),
          column<Row, &Row::age_s>(
              "AGE", Unit::seconds,
              "Seconds from SINCE until now: no survivor is older.")}};
}();

static_assert(fingerprint(survivors_table) == 2604510903u,
              "columns changed: raise the table's version, then set this");

}  // namespace memdiag

#endif  // MEMDIAG_SURVIVORS_TABLE_H
