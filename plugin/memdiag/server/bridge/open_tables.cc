#include "plugin/memdiag/server/bridge/open_tables.h"

#include "mutex_lock.h"
#include "sql/handler.h"
#include "sql/sql_base.h"
#include "sql/table.h"

namespace memdiag::open_tables {
namespace {

bool keeps_large_values(const TABLE_SHARE &table) {
  return table.table_category != TABLE_CATEGORY_DICTIONARY &&
         table.blob_fields != 0 &&
         (table.vfields != 0 || table.gen_def_field_count != 0 ||
          table.check_constraint_share_list != nullptr ||
          table.triggers != nullptr);
}

}  // namespace

Counts counts() {
  Counts open{};
  MUTEX_LOCK(guard, &LOCK_open);
  if (table_def_cache == nullptr) return open;
  for (const auto &[key, table] : *table_def_cache) {
    // Another thread reads a definition that is not complete.
    if (table->m_open_in_progress || table->error != 0 ||
        table->ref_count() == 0)
      continue;
    if (ha_legacy_type(table->db_type()) == DB_TYPE_CSV_DB)
      open.csv += table->ref_count();
    else if (keeps_large_values(*table))
      open.of_values += table->ref_count();
  }
  return open;
}

}  // namespace memdiag::open_tables
