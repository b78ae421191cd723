/*
  The linker redirects calls of dict_table_close() to this file (--wrap, in
  cmake/upstream/product.cmake).
*/

#include "storage/innobase/memdiag/kept_statistics.h"

#include "dict0dict.h"
#include "dict0mem.h"

void close_handle(dict_table_t *table, bool dict_locked, bool try_drop) asm(
    "__real__Z16dict_table_closeP12dict_table_tbb");
void close_handle_and_keep(
    dict_table_t *table, bool dict_locked,
    bool try_drop) asm("__wrap__Z16dict_table_closeP12dict_table_tbb");

namespace {

constinit thread_local bool keeps = false;

}  // namespace

namespace memdiag::innodb {

Keep_statistics::Keep_statistics() { keeps = true; }
Keep_statistics::~Keep_statistics() { keeps = false; }

}  // namespace memdiag::innodb

/** InnoDB forgets with the last handle. This function holds one more. */
void close_handle_and_keep(dict_table_t *table, bool dict_locked,
                           bool try_drop) {
  if (!keeps || table->is_intrinsic()) [[likely]]
    return close_handle(table, dict_locked, try_drop);
  if (!dict_locked) dict_sys_mutex_enter();
  table->acquire();
  if (!dict_locked) dict_sys_mutex_exit();
  close_handle(table, dict_locked, try_drop);
  table->release();
}
