/*
  The linker redirects to this file, by --wrap, in cmake/upstream/product.cmake:
  - TempTable's call of thd_get_tmp_table_size(). It does not tell the table.
  - The server's calls of instantiate_tmp_table(), which comes to that call. The
    two that are in its own file are not redirected: those tables keep the
    session's limit.
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

bool make_table(THD *thd, TABLE *table) asm(
    "__real__Z21instantiate_tmp_tableP3THDP5TABLE");
bool make_table_within_limit(THD *thd, TABLE *table) asm(
    "__wrap__Z21instantiate_tmp_tableP3THDP5TABLE");
size_t limit_of_session(const THD *thd) asm(
    "__real__Z22thd_get_tmp_table_sizePK3THD");
size_t limit_of_statement(const THD *thd) asm(
    "__wrap__Z22thd_get_tmp_table_sizePK3THD");

namespace {

using memdiag::spilled_tables::no_limit;

constinit thread_local uint64_t limit_of_thread = no_limit;
/** The thread makes a table that InnoDB would take. */
constinit thread_local bool fits_innodb = false;

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
  return bytes < std::min<size_t>(page_get_free_space_of_empty(true) / 2,
                                  REC_MAX_DATA_SIZE);
}

}  // namespace

namespace memdiag::spilled_tables {

void limit(uint64_t bytes) { limit_of_thread = bytes; }

}  // namespace memdiag::spilled_tables

bool make_table_within_limit(THD *thd, TABLE *table) {
  fits_innodb = limit_of_thread != no_limit && is_taken_by_innodb(*table);
  const bool failed = make_table(thd, table);
  fits_innodb = false;
  return failed;
}

size_t limit_of_statement(const THD *thd) {
  const size_t of_session = limit_of_session(thd);
  return fits_innodb ? std::min<uint64_t>(of_session, limit_of_thread)
                     : of_session;
}
