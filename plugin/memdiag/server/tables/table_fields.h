/*
  The server's field definitions of a table, made from its spec.

  They are made when this is compiled, live for ever and refer to the names of
  the spec. Threads: any. No locks and no errors.
*/

#ifndef MEMDIAG_TABLE_FIELDS_H
#define MEMDIAG_TABLE_FIELDS_H

#include <array>
#include <cstddef>

#include "my_time.h"
#include "plugin/memdiag/tables/column.h"
#include "sql/field.h"
#include "sql/sql_show.h"
#include "sql/table.h"

namespace memdiag::information_schema {

template <typename Row>
constexpr ST_FIELD_INFO field_info(const Column<Row> &column) {
  uint flags = column.nullable ? MY_I_S_MAYBE_NULL : 0;
  uint length = column.length;
  enum_field_types type = MYSQL_TYPE_STRING;
  switch (column.type) {
    case Sql_type::unsigned_bigint:
      flags |= MY_I_S_UNSIGNED;
      [[fallthrough]];
    case Sql_type::bigint:
      type = MYSQL_TYPE_LONGLONG;
      length = MY_INT64_NUM_DECIMAL_DIGITS;
      break;
    case Sql_type::double_precision:
      type = MYSQL_TYPE_DOUBLE;
      length = MAX_DOUBLE_STR_LENGTH;
      break;
    case Sql_type::yes_no:
      length = 3;
      break;
    case Sql_type::timestamp:
      type = MYSQL_TYPE_TIMESTAMP;
      length = DATETIME_MAX_DECIMALS;
      break;
    case Sql_type::varchar:
      break;
  }
  return {column.name, length, type, 0, flags, "", 0};
}

/** One entry for each column and one without a name, which ends the array. The
array is not const because the server's interface wants it so; it is never
written. Its address identifies the table among the tables of a statement. */
template <const auto &table>
inline constinit auto fields = [] {
  std::array<ST_FIELD_INFO, table.size + 1> infos{};
  for (size_t i = 0; i < table.size; ++i)
    infos[i] = field_info(table.columns[i]);
  infos[table.size] = {nullptr, 0, MYSQL_TYPE_STRING, 0, 0, nullptr, 0};
  return infos;
}();

}  // namespace memdiag::information_schema

#endif  // MEMDIAG_TABLE_FIELDS_H
