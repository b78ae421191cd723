/*
  InnoDB runs SQL while it may hold the latch of a page, for which others wait
  deaf to KILL: it computes virtual columns for their indexes, and asks whether
  an entry of an index satisfies the condition that was pushed down to it. Nor
  does it look whether a virtual column has a value: a DELETE without one would
  leave its entry in the index. So a statement neither waits for memory there
  nor is it refused any.

  The linker redirects InnoDB's calls of innobase_get_computed_value() and
  innobase_index_cond() to this file (--wrap, in cmake/upstream/product.cmake).

  Threads: any, each for itself. Errors: as the replaced functions.
*/

#include "my_icp.h"
#include "row0mysql.h"
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

namespace {

/** A column may need another one. */
constinit thread_local unsigned depth = 0;

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
