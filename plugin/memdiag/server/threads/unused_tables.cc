#include "plugin/memdiag/server/threads/unused_tables.h"

#include <new>
#include <vector>

#include "scope_guard.h"
#include "sql/sql_base.h"
#include "sql/sql_class.h"
#include "sql/table.h"
#include "sql/table_cache.h"
#include "storage/innobase/memdiag/kept_statistics.h"

namespace memdiag {

void close_unused_tables() {
  table_cache_manager.lock_all_and_tdc();
  const auto unlock =
      create_scope_guard([] { table_cache_manager.unlock_all_and_tdc(); });
  const innodb::Keep_statistics keep;
  try {
    // The last table that is closed may take its share with it, and shares
    // without open tables.
    std::vector<TABLE_SHARE *> with_tables;
    for (const auto &[key, share] : *table_def_cache)
      if (share->ref_count() > 0 &&
          share->table_category != TABLE_CATEGORY_DICTIONARY)
        with_tables.push_back(share.get());
    for (TABLE_SHARE *share : with_tables)
      table_cache_manager.free_table(nullptr, TDC_RT_REMOVE_UNUSED, share);
  } catch (const std::bad_alloc &) {
  }
}

}  // namespace memdiag
