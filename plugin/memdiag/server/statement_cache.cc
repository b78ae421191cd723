#include "plugin/memdiag/server/statement_cache.h"

#include <memory>
#include <type_traits>

#include "mysqld_error.h"
#include "mysys/memdiag/clock.h"
#include "plugin/memdiag/base/reason.h"
#include "plugin/memdiag/server/table_fields.h"
#include "plugin/memdiag/tables/tables.h"
#include "sql/mysqld.h"
#include "sql/sql_class.h"
#include "sql/sql_error.h"
#include "sql/sql_lex.h"

namespace memdiag {
namespace {

/** What a statement needs of its cache. */
struct Needs {
  /** A bit for each table of this plugin. */
  uint64_t tables;
  Details details;
  /** It reads MEMDIAG_LEDGER_EXACT: no earlier reading will do. */
  bool exact;
};

Needs needs_of_statement(THD *thd) {
  Needs needs{};
  for (const Table_ref *table = thd->lex->query_tables; table != nullptr;
       table = table->next_global) {
    if (table->schema_table == nullptr) continue;
    uint64_t bit = 1;
#define ADD(name)                                         \
  if (table->schema_table->fields_info ==                 \
      information_schema::fields<name##_table>.data()) {  \
    needs.tables |= bit;                                  \
    using Row = decltype(name##_table)::Row;              \
    needs.details |= detail_of<Row>;                      \
    needs.exact |= std::is_same_v<Row, Exact_ledger_row>; \
  }                                                       \
  bit *= 2;
    MEMDIAG_TABLES(ADD)
#undef ADD
  }
  return needs;
}

void warn_of_snapshot(THD *thd, const Snapshot &snapshot) {
  for (const Failed_read &failure : snapshot.failed)
    warn(thd, std::string("the allocator's control ") +
                  mallctl::name(failure.ctl) + " could not be read (" +
                  std::to_string(failure.times) + " times): error " +
                  reason(failure.error));
  if (snapshot.mixed_moments)
    warn(thd,
         "the allocator is being purged again and again; the figures are not "
         "all of the same moment");
}

void warn_of_report(THD *thd, const host::Report &report) {
  for (const host::Failed_file &failed : report.failed)
    warn(thd,
         failed.file + " could not be read: error " + reason(failed.error));
}

}  // namespace

void warn(THD *thd, const std::string &text) {
  push_warning_printf(thd, Sql_condition::SL_WARNING, ER_UNKNOWN_ERROR,
                      "memdiag: %s", text.c_str());
}

Statement_cache &Statement_cache::of(THD *thd) {
  thread_local std::unique_ptr<Statement_cache> cache;
  if (cache == nullptr) cache = std::make_unique<Statement_cache>();
  const Needs needs = needs_of_statement(thd);
  cache->m_details = needs.details;
  Read_group::Statement statement{
      thd->thread_id(), static_cast<uint64_t>(thd->query_id),
      thd->status_var.questions, needs.tables, clock_us(CLOCK_MONOTONIC)};
  if (needs.exact || thd->sp_runtime_ctx != nullptr || thd->in_sub_stmt != 0)
    statement.number.reset();
  if (!cache->m_group.continues_with(statement)) {
    cache->m_snapshot = {};
    cache->m_host = {};
  }
  return *cache;
}

template <typename T, typename Take, typename Warn>
const T &Statement_cache::get_or_take(THD *thd, Cached<T> *cached, Take take,
                                      Warn warn_of) {
  if (!cached->value) cached->value = take();
  const uint64_t query = static_cast<uint64_t>(thd->query_id);
  if (cached->warned_query != query) {
    cached->warned_query = query;
    warn_of(thd, *cached->value);
  }
  return *cached->value;
}

const Snapshot &Statement_cache::snapshot(THD *thd, Details details) {
  if (m_snapshot.value && (m_snapshot.value->details & details) != details)
    m_snapshot = {};
  return get_or_take(
      thd, &m_snapshot, [&] { return take_snapshot(details | m_details); },
      warn_of_snapshot);
}

const host::Report &Statement_cache::host_report(THD *thd) {
  return get_or_take(
      thd, &m_host,
      [] {
        host::Places places;
        places.data_directory = mysql_real_data_home;
        return host::collect(places);
      },
      warn_of_report);
}

}  // namespace memdiag
