/*
  The columns of INFORMATION_SCHEMA.MEMDIAG_INNODB.
*/

#ifndef MEMDIAG_INNODB_TABLE_H
#define MEMDIAG_INNODB_TABLE_H

#include "plugin/memdiag/tables/column.h"
#include "storage/innobase/memdiag_innodb.h"

namespace memdiag {

inline constexpr Table innodb_table = [] {
  using Row = innodb::Component;
  return Table{
      "MEMDIAG_INNODB",
      "One row for each part of InnoDB's memory that InnoDB knows the size of. "
      "What has a POOL is in MEMDIAG_POOLS too, and what has a REGION in "
      "MEMDIAG_REGIONS. No row while InnoDB is not up.",
      0x0100,
      std::array{
          text_column<Row, &Row::name>("COMPONENT", 64, "What the memory is."),
          column<Row, &Row::bytes>(
              "BYTES", Unit::bytes,
              "What it takes, resident or not; NULL where nobody knows: NOTE "
              "says why, or a warning does."),
          column<Row, &Row::limit_bytes>(
              "LIMIT_BYTES", Unit::bytes,
              "What it may grow to; NULL for no limit of its own."),
          column<Row, &Row::items>("ITEMS", Unit::count, "How many there are."),
          text_column<Row, &Row::item>("ITEM", 32, "Of what."),
          text_column<Row, &Row::route>(
              "ROUTE", 192,
              "What its blocks are for, as in MEMDIAG_ROUTES; components may "
              "share a route."),
          text_column<Row, &Row::pool>("POOL", 64, "The pool of that route."),
          text_column<Row, &Row::region>("REGION", 64,
                                         "The kind of region that it lies in."),
          text_column<Row, &Row::part_of>(
              "PART_OF", 64,
              "The component that has these bytes too: add up those rows only "
              "that are part of none."),
          text_column<Row, &Row::note>("NOTE", 512,
                                       "What is counted, and what is not.")}};
}();

static_assert(fingerprint(innodb_table) == 3717794363u,
              "columns changed: raise the table's version, then set this");

}  // namespace memdiag

#endif  // MEMDIAG_INNODB_TABLE_H
