/*
  InnoDB runs SQL while it may hold the latch of a page, for which others wait
  deaf to KILL: it computes virtual columns for their indexes, and asks whether
  an entry of an index satisfies the condition that was pushed down to it. Nor
  does it look whether a virtual column has a value: a DELETE without one would
  leave its entry in the index. Nor may it keep others from a latch while it
  writes rows of INFORMATION_SCHEMA's tables: a COMMIT needs the cache of
  full-text words, any DDL the dictionary's lock. So a statement neither waits
  for memory there nor is it refused any.

  The linker redirects InnoDB's calls of innobase_get_computed_value() and
  innobase_index_cond(), and those of the two functions that write a row of
  INFORMATION_SCHEMA, to this file (--wrap, in cmake/upstream/product.cmake).

  Threads: any, each for itself. Errors: as the replaced functions.
*/

#include <string_view>

#include "my_icp.h"
#include "row0mysql.h"
#include "sql/sql_show.h"
#include "sql/table.h"
#include "storage/innobase/memdiag/innodb.h"

dfield_t *
compute(const dtuple_t *row, const dict_v_col_t *column, const dict_table_t *table, mem_heap_t **local_heap, mem_heap_t *heap, THD *thd, TABLE *of_server, const dict_field_t *field, const dict_table_t *old_table, upd_t *update) asm(
    "__real__Z27innobase_get_computed_valuePK8dtuple_tPK12dict_v_col_tPK12dict_"
    "table_tPP16mem_block_info_tS9_P3THDP5TABLEPK12dict_field_tS7_P5upd_t");
dfield_t *
compute_with_memory(const dtuple_t *row, const dict_v_col_t *column, const dict_table_t *table, mem_heap_t **local_heap, mem_heap_t *heap, THD *thd, TABLE *of_server, const dict_field_t *field, const dict_table_t *old_table, upd_t *update) asm(
    "__wrap__Z27innobase_get_computed_valuePK8dtuple_tPK12dict_v_col_tPK12dict_"
    "table_tPP16mem_block_info_tS9_P3THDP5TABLEPK12dict_field_tS7_P5upd_t");

ICP_RESULT check(ha_innobase *) asm(
    "__real__Z19innobase_index_condP11ha_innobase");
ICP_RESULT check_with_memory(ha_innobase *) asm(
    "__wrap__Z19innobase_index_condP11ha_innobase");

bool write_row(THD *,
               TABLE *) asm("__real__Z25schema_table_store_recordP3THDP5TABLE");
bool write_row_with_memory(THD *, TABLE *) asm(
    "__wrap__Z25schema_table_store_recordP3THDP5TABLE");
int write_row_in_memory(THD *, TABLE *, bool) asm(
    "__real__Z26schema_table_store_record2P3THDP5TABLEb");
int write_row_in_memory_at_once(THD *, TABLE *, bool) asm(
    "__wrap__Z26schema_table_store_record2P3THDP5TABLEb");

namespace {

/** A column may need another one. */
constinit thread_local unsigned depth = 0;

/** InnoDB fills the table below a latch: that of the dictionary, of the
transactions which INNODB_TRX shows, or of the pool of temporary tablespaces.
The other tables of InnoDB's have left theirs when a row is written. */
bool is_filled_below_latch(const TABLE &table) {
  if (table.pos_in_table_list == nullptr ||
      table.pos_in_table_list->schema_table == nullptr)
    return false;
  const std::string_view name =
      table.pos_in_table_list->schema_table->table_name;
  return name.starts_with("INNODB_FT_") || name == "INNODB_TRX" ||
         name == "INNODB_SESSION_TEMP_TABLESPACES";
}

}  // namespace

namespace memdiag::innodb {

bool runs_sql() { return depth != 0; }

}  // namespace memdiag::innodb

dfield_t *compute_with_memory(const dtuple_t *row, const dict_v_col_t *column,
                              const dict_table_t *table,
                              mem_heap_t **local_heap, mem_heap_t *heap,
                              THD *thd, TABLE *of_server,
                              const dict_field_t *field,
                              const dict_table_t *old_table, upd_t *update) {
  ++depth;
  dfield_t *const value = compute(row, column, table, local_heap, heap, thd,
                                  of_server, field, old_table, update);
  --depth;
  return value;
}

ICP_RESULT check_with_memory(ha_innobase *table) {
  ++depth;
  const ICP_RESULT result = check(table);
  --depth;
  return result;
}

bool write_row_with_memory(THD *thd, TABLE *table) {
  const unsigned below = is_filled_below_latch(*table) ? 1 : 0;
  depth += below;
  const bool failed = write_row(thd, table);
  depth -= below;
  return failed;
}

/** Upstream does not write the table to disk where it holds a latch. */
int write_row_in_memory_at_once(THD *thd, TABLE *table, bool to_disk) {
  const unsigned below = to_disk ? 0 : 1;
  depth += below;
  const int error = write_row_in_memory(thd, table, to_disk);
  depth -= below;
  return error;
}
