#include "plugin/memdiag/server/bridge/open_tables.h"

#include "mutex_lock.h"
#include "sql/handler.h"
#include "sql/sql_base.h"
#include "sql/table.h"

namespace memdiag::open_tables {
namespace {

bool keeps_large_values(const TABLE_SHARE &table) {
  if (table.table_category == TABLE_CATEGORY_DICTIONARY) return false;
  if (ha_legacy_type(table.db_type()) == DB_TYPE_CSV_DB) return true;
  return table.blob_fields != 0 &&
         (table.vfields != 0 || table.gen_def_field_count != 0 ||
          table.check_constraint_share_list != nullptr ||
          table.triggers != nullptr);
}

}  // namespace

uint64_t with_large_values() {
  uint64_t tables = 0;
  MUTEX_LOCK(guard, &LOCK_open);
  if (table_def_cache == nullptr) return 0;
  for (const auto &[key, table] : *table_def_cache) {
    // Another thread reads a definition that is not complete.
    if (table->m_open_in_progress || table->error != 0 ||
        table->ref_count() == 0)
      continue;
    if (keeps_large_values(*table)) tables += table->ref_count();
  }
  return tables;
}

}  // namespace memdiag::open_tables
