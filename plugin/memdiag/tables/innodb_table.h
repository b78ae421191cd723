/*
  The columns of INFORMATION_SCHEMA.MEMDIAG_INNODB.
*/

#ifndef MEMDIAG_INNODB_TABLE_H
#define MEMDIAG_INNODB_TABLE_H

#include "plugin/memdiag/tables/column.h"
#include "storage/innobase/memdiag/innodb.h"

namespace memdiag {

inline constexpr Table innodb_table = [] {
  using Row = innodb::Component;
  return Table{
      "MEMDIAG_INNODB",
      "One row for each part of InnoDB's memory whose size InnoDB knows. A row "
      "with a POOL is in MEMDIAG_POOLS too, a row with a REGION in "
      "MEMDIAG_REGIONS. No rows while InnoDB is not up.",
      0x0100,
      std::array{
          text_column<Row, &Row::name>("COMPONENT", 64, "The part."),
          column<Row, &Row::bytes>("BYTES", Unit::bytes,
                                   "Its size, resident or not. NULL: not "
                                   "known; NOTE or a warning says why."),
          column<Row, &Row::limit_bytes>("LIMIT_BYTES", Unit::bytes,
                                         "The size to which it may grow. NULL: "
                                         "it has no limit of its own."),
          column<Row, &Row::items>("ITEMS", Unit::count,
                                   "Number of items in it."),
          text_column<Row, &Row::item>("ITEM", 32, "The kind of item."),
          text_column<Row, &Row::route>(
              "ROUTE", 192,
              "The route of its blocks, as in MEMDIAG_ROUTES. Components may "
              "share a route."),
          text_column<Row, &Row::pool>("POOL", 64, "The route's pool."),
          text_column<Row, &Row::region>(
              "REGION", 64, "The kind of region that contains it."),
          text_column<Row, &Row::part_of>(
              "PART_OF", 64,
              "The component that includes these bytes. To add up, use the "
              "rows where this is NULL."),
          text_column<Row, &Row::note>(
              "NOTE", 512, "Remarks on what is counted and what is not.")}};
}();

static_assert(fingerprint(innodb_table) == 3717794363u,
              "columns changed: raise the table's version, then set this");

}  // namespace memdiag

#endif  // MEMDIAG_INNODB_TABLE_H
