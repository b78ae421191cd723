/*
  The linker redirects calls of dict_table_close(), dict_stats_update() and
  dict_stats_update_retry() to this file (--wrap, in
  cmake/upstream/product.cmake).
*/

#include "storage/innobase/memdiag/kept_statistics.h"

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <unordered_map>

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

dberr_t analyse_with_retries(dict_table_t *, dict_stats_upd_option_t,
                             size_t) asm(  //
    "__real__Z23dict_stats_update_retryP12dict_table_t23dict_stats_upd_option_"
    "tm");
dberr_t forget_and_analyse(dict_table_t *, dict_stats_upd_option_t,
                           size_t) asm(  //
    "__wrap__Z23dict_stats_update_retryP12dict_table_t23dict_stats_upd_option_"
    "tm");

namespace {

constinit thread_local bool keeps = false;

/** The numbers of changes of tables that were closed, until they are opened.
InnoDB may evict its object of a closed table. */
class Closed {
 public:
  void add(uint64_t table, uint64_t changes) {
    try {
      const std::lock_guard<std::mutex> guard(m_mutex);
      if (m_changes.size() == most) m_changes.clear();
      m_changes[table] = changes;
    } catch (const std::bad_alloc &) {
    }
  }
  /** @return 0: the table is not known */
  uint64_t take(uint64_t table) {
    const std::lock_guard<std::mutex> guard(m_mutex);
    const auto found = m_changes.find(table);
    if (found == m_changes.end()) return 0;
    const uint64_t changes = found->second;
    m_changes.erase(found);
    return changes;
  }

 private:
  /** Dropped ones stay. */
  static constexpr size_t most = 10000;
  std::mutex m_mutex;
  std::unordered_map<uint64_t, uint64_t> m_changes;
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
  if (keeps && table->get_ref_count() == 1 &&
      table->stat_modified_counter != 0 &&
      dict_stats_is_persistent_enabled(table)) [[unlikely]]
    closed().add(table->id, table->stat_modified_counter);
  close_handle(table, dict_locked, try_drop);
}

/** Upstream sets the number to 0 when it reads statistics, and also when it
computes them because there are none to read. */
dberr_t read_statistics_and_keep(dict_table_t *table,
                                 dict_stats_upd_option_t option, trx_t *trx,
                                 bool silent) {
  if (option != DICT_STATS_FETCH_ONLY_IF_NOT_IN_MEMORY ||
      table->stat_initialized) [[likely]]
    return read_statistics(table, option, trx, silent);
  const uint64_t changes = closed().take(table->id);
  const auto computed = table->stats_last_recalc;
  const dberr_t error = read_statistics(table, option, trx, silent);
  // Upstream counts without a latch as well.
  if (table->stats_last_recalc == computed)
    table->stat_modified_counter += changes;
  return error;
}

/** InnoDB's thread also analyses tables that no session has open. The number
begins at 0 then. */
dberr_t forget_and_analyse(dict_table_t *table, dict_stats_upd_option_t option,
                           size_t most_tries) {
  (void)closed().take(table->id);
  return analyse_with_retries(table, option, most_tries);
}
