/*
  The linker redirects TempTable's calls of its constructor of a table to this
  file (--wrap, in cmake/upstream/product.cmake). It gets the table and its
  limit.
*/

#include "storage/innobase/memdiag/spilled_tables.h"

#include <algorithm>
#include <cstddef>

#include "btr0types.h"
#include "page0page.h"
#include "rem0types.h"
#include "sql/field.h"
#include "sql/table.h"
#include "srv0srv.h"

namespace temptable {
class Block;
class Table;
}  // namespace temptable

void construct(
    temptable::Table *made, TABLE *table, temptable::Block *shared,
    bool fixed_size,
    size_t limit) asm("__real__ZN9temptable5TableC1EP5TABLEPNS_5BlockEbm");
void construct_within_limit(
    temptable::Table *made, TABLE *table, temptable::Block *shared,
    bool fixed_size,
    size_t limit) asm("__wrap__ZN9temptable5TableC1EP5TABLEPNS_5BlockEbm");

namespace {

using memdiag::spilled_tables::no_limit;

constinit thread_local uint64_t limit_of_thread = no_limit;

/** The bytes of a column that stay in its row when InnoDB moves what it can to
other pages (dtuple_convert_big_rec()). */
size_t bytes_in_row(const Field &field) {
  constexpr size_t length_and_null = 3;
  const bool can_move =
      field.is_flag_set(BLOB_FLAG) ||
      (field.type() == MYSQL_TYPE_VARCHAR && field.field_length > 255);
  return length_and_null +
         (can_move ? BTR_EXTERN_LOCAL_STORED_MAX_SIZE : field.pack_length());
}

bool is_taken_by_innodb(const TABLE &table) {
  const TABLE_SHARE &share = *table.s;
  if (share.fields > REC_MAX_N_USER_FIELDS) return false;
  // The row's header, and the columns of InnoDB's own.
  size_t bytes = 64;
  for (unsigned i = 0; i < share.fields; ++i)
    bytes += bytes_in_row(*table.field[i]);
  // InnoDB moves no part of a primary key. Its columns are counted twice.
  if (share.primary_key == 0 && table.key_info != nullptr)
    for (unsigned i = 0; i < table.key_info->user_defined_key_parts; ++i)
      bytes += table.key_info->key_part[i].field->pack_length();
  return bytes < std::min<size_t>(page_get_free_space_of_empty(true) / 2,
                                  REC_MAX_DATA_SIZE);
}

}  // namespace

namespace memdiag::spilled_tables {

void limit(uint64_t bytes) { limit_of_thread = bytes; }

}  // namespace memdiag::spilled_tables

void construct_within_limit(temptable::Table *made, TABLE *table,
                            temptable::Block *shared, bool fixed_size,
                            size_t limit) {
  if (limit_of_thread < limit && is_taken_by_innodb(*table)) [[unlikely]]
    limit = limit_of_thread;
  construct(made, table, shared, fixed_size, limit);
}
