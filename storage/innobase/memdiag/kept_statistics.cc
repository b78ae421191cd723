/*
  The linker redirects calls of dict_table_close() and dict_stats_update() to
  this file (--wrap, in cmake/upstream/product.cmake).
*/

#include "storage/innobase/memdiag/kept_statistics.h"

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <unordered_set>

#include "dict0dict.h"
#include "dict0mem.h"
#include "dict0stats.h"

void close_handle(dict_table_t *table, bool dict_locked, bool try_drop) asm(
    "__real__Z16dict_table_closeP12dict_table_tbb");
void close_handle_and_keep(
    dict_table_t *table, bool dict_locked,
    bool try_drop) asm("__wrap__Z16dict_table_closeP12dict_table_tbb");

dberr_t
read_statistics(dict_table_t *, dict_stats_upd_option_t, trx_t *, bool) asm(
    "__real__Z17dict_stats_updateP12dict_table_t23dict_stats_upd_option_tP5trx_"
    "tb");
dberr_t
read_statistics_and_keep(dict_table_t *, dict_stats_upd_option_t, trx_t *, bool) asm(
    "__wrap__Z17dict_stats_updateP12dict_table_"
    "t23dict_stats_upd_option_tP5trx_tb");

namespace {

constinit thread_local bool keeps = false;

/** Tables that were closed, and keep their number of changes until they are
opened. The number itself stays in InnoDB's object, which may be evicted. */
class Closed {
 public:
  void add(uint64_t table) {
    try {
      const std::lock_guard<std::mutex> guard(m_mutex);
      if (m_tables.size() == most) m_tables.clear();
      m_tables.insert(table);
    } catch (const std::bad_alloc &) {
    }
  }
  bool take(uint64_t table) {
    const std::lock_guard<std::mutex> guard(m_mutex);
    return m_tables.erase(table) != 0;
  }

 private:
  /** Dropped ones stay. */
  static constexpr size_t most = 10000;
  std::mutex m_mutex;
  std::unordered_set<uint64_t> m_tables;
};

/** Never destroyed: InnoDB's threads may outlive static objects. */
Closed &closed() {
  static Closed *const instance = new Closed;
  return *instance;
}

}  // namespace

namespace memdiag::innodb {

Keep_statistics::Keep_statistics() { keeps = true; }
Keep_statistics::~Keep_statistics() { keeps = false; }

}  // namespace memdiag::innodb

/** The dictionary's mutex is not taken here: ALTER TABLE may hold it for
seconds, and the caller holds all locks of the table cache. */
void close_handle_and_keep(dict_table_t *table, bool dict_locked,
                           bool try_drop) {
  // Behind its last handle the table may be evicted.
  if (keeps && table->stat_modified_counter != 0 &&
      dict_stats_is_persistent_enabled(table)) [[unlikely]]
    closed().add(table->id);
  close_handle(table, dict_locked, try_drop);
}

/** Upstream sets the number to 0 when it reads statistics. */
dberr_t read_statistics_and_keep(dict_table_t *table,
                                 dict_stats_upd_option_t option, trx_t *trx,
                                 bool silent) {
  if (option != DICT_STATS_FETCH_ONLY_IF_NOT_IN_MEMORY ||
      !closed().take(table->id)) [[likely]]
    return read_statistics(table, option, trx, silent);
  const uint64_t changes = table->stat_modified_counter;
  const dberr_t error = read_statistics(table, option, trx, silent);
  // Upstream counts without a latch as well.
  table->stat_modified_counter += changes;
  return error;
}
