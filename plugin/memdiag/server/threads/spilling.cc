#include "plugin/memdiag/server/threads/spilling.h"

#include <algorithm>

#include "plugin/memdiag/server/bridge/start_settings.h"
#include "sql/sql_class.h"
#include "sql/sql_lex.h"

namespace memdiag::ceiling {
namespace {

constexpr unsigned long least_join_bytes = 128 << 10;
/** TempTable's first block. */
constexpr unsigned long long least_table_bytes = 1 << 20;

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

/** Upstream lets a hash join below a LIMIT write nothing to disk, so that its
first rows come soon. It reads its other input again each time that the buffer
is full: a small one would take it thousands of times. */
bool has_limit(const THD *thd) {
  if (thd->variables.select_limit != HA_POS_ERROR) return true;
  for (const Query_block *block = thd->lex->all_query_blocks_list;
       block != nullptr; block = block->next_select_in_list())
    if (block->has_limit()) return true;
  return false;
}

/** A LIMIT of a view is not seen: it is parsed later. So a session that asks
for much keeps an eighth. */
unsigned long join_bytes(const THD *thd, unsigned long own) {
  return on_disk().joins && !has_limit(thd)
             ? std::min(own, std::max(least_join_bytes, own / 8))
             : own;
}

/** A stored function may have set it meanwhile. */
template <typename T>
void restore(T *variable, T lowered_to, T own) {
  if (*variable == lowered_to) *variable = own;
}

}  // namespace

bool Spilling::begin(THD *thd) {
  if (!has_what_spills(thd)) return false;
  System_variables *const of_session = &thd->variables;
  m_join_bytes = of_session->join_buff_size;
  m_table_bytes = of_session->tmp_table_size;
  m_lowered_join_bytes = join_bytes(thd, m_join_bytes);
  m_lowered_table_bytes = on_disk().tables
                              ? std::min(m_table_bytes, least_table_bytes)
                              : m_table_bytes;
  of_session->join_buff_size = m_lowered_join_bytes;
  of_session->tmp_table_size = m_lowered_table_bytes;
  m_spills = m_lowered_join_bytes != m_join_bytes ||
             m_lowered_table_bytes != m_table_bytes;
  return m_spills;
}

void Spilling::end(THD *thd) {
  if (!m_spills) return;
  m_spills = false;
  restore(&thd->variables.join_buff_size, m_lowered_join_bytes, m_join_bytes);
  restore(&thd->variables.tmp_table_size, m_lowered_table_bytes, m_table_bytes);
}

}  // namespace memdiag::ceiling
