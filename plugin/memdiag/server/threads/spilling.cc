#include "plugin/memdiag/server/threads/spilling.h"

#include <algorithm>
#include <cstdint>

#include "plugin/memdiag/server/bridge/start_settings.h"
#include "sql/item_subselect.h"
#include "sql/sql_class.h"
#include "sql/sql_lex.h"
#include "sql/sql_tmp_table.h"
#include "storage/innobase/memdiag/spilled_tables.h"

namespace memdiag::ceiling {
namespace {

constexpr unsigned long least_join_bytes = 128 << 10;
/** TempTable's first block. */
constexpr uint64_t least_table_bytes = 1 << 20;

/** Where it is of use: the folder is on a disk. */
struct Folders {
  bool joins;
  bool tables;
};

const Folders &on_disk() {
  static const Folders found{!start_settings::tmpdir_in_memory(),
                             !start_settings::innodb_tmpdir_is_in_memory()};
  return found;
}

/** Not those that may set the variables themselves. */
bool has_what_spills(const THD *thd) {
  switch (thd->lex->sql_command) {
    case SQLCOM_SELECT:
    case SQLCOM_INSERT_SELECT:
    case SQLCOM_REPLACE_SELECT:
    case SQLCOM_UPDATE:
    case SQLCOM_UPDATE_MULTI:
    case SQLCOM_DELETE:
    case SQLCOM_DELETE_MULTI:
      return thd->lex->query_tables != nullptr;
    default:
      return false;
  }
}

/** Upstream lets a hash join below a LIMIT or EXISTS write nothing to disk, so
that its first rows come soon. It reads its other input again each time that the
buffer is full: a small one would take it thousands of times. Upstream lets it
write nevertheless where rows are sorted or grouped, but later removes some of
these sorts. */
bool ends_early(const THD *thd) {
  if (thd->variables.select_limit != HA_POS_ERROR) return true;
  for (Query_block *block = thd->lex->all_query_blocks_list; block != nullptr;
       block = block->next_select_in_list()) {
    const Item_subselect *const item = block->master_query_expression()->item;
    if (block->has_limit() ||
        (item != nullptr &&
         item->subquery_type() == Item_subselect::EXISTS_SUBQUERY))
      return true;
  }
  return false;
}

/** A LIMIT of a view and of a routine come later, and so does the EXISTS that
upstream may make of IN. So a session that asks for much keeps an eighth. */
unsigned long join_bytes(const THD *thd, unsigned long own) {
  return on_disk().joins && !ends_early(thd)
             ? std::min(own, std::max(least_join_bytes, own / 8))
             : own;
}

/** MEMORY's limit is tmp_table_size. */
bool has_tables_that_spill(const THD *thd) {
  return on_disk().tables &&
         thd->variables.internal_tmp_mem_storage_engine == TMP_TABLE_TEMPTABLE;
}

}  // namespace

bool Spilling::begin(THD *thd) {
  if (!has_what_spills(thd)) return false;
  unsigned long *const of_session = &thd->variables.join_buff_size;
  m_join_bytes = *of_session;
  m_lowered_join_bytes = join_bytes(thd, m_join_bytes);
  *of_session = m_lowered_join_bytes;
  const bool spills_tables = has_tables_that_spill(thd);
  m_spills = spills_tables || m_lowered_join_bytes != m_join_bytes;
  if (spills_tables) spilled_tables::limit(least_table_bytes);
  return m_spills;
}

void Spilling::end(THD *thd) {
  if (!m_spills) return;
  m_spills = false;
  spilled_tables::limit(spilled_tables::no_limit);
  unsigned long *const of_session = &thd->variables.join_buff_size;
  // A stored function may have set it meanwhile.
  if (*of_session == m_lowered_join_bytes) *of_session = m_join_bytes;
}

}  // namespace memdiag::ceiling
