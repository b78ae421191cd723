#include "plugin/memdiag/server/information_schema.h"

#include <array>
#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "plugin/memdiag/allocator/allocator_snapshot.h"
#include "plugin/memdiag/ledger/ledger_reader.h"
#include "plugin/memdiag/server/budget_facts.h"
#include "plugin/memdiag/server/buffer_pool_pages.h"
#include "plugin/memdiag/tables/column.h"
#include "plugin/memdiag/history/history.h"
#include "plugin/memdiag/history/history_rows.h"
#include "plugin/memdiag/host/host.h"
#include "plugin/memdiag/server/look.h"
#include "m_string.h"
#include "mysys/memdiag/clock.h"
#include "my_dbug.h"
#include "my_sys.h"
#include "my_time.h"
#include "mysqld_error.h"
#include "plugin/memdiag/base/reason.h"
#include "plugin/memdiag/server/server_sessions.h"
#include "plugin/memdiag/advice/situation.h"
#include "sql/auth/auth_acls.h"
#include "sql/auth/auth_common.h"
#include "sql/field.h"
#include "sql/mysqld.h"
#include "sql/sql_class.h"
#include "sql/sql_error.h"
#include "sql/sql_lex.h"
#include "sql/sql_show.h"
#include "sql/table.h"
#include "plugin/memdiag/tables/tables.h"
#include "plugin/memdiag/history/trend.h"

namespace memdiag::information_schema {
namespace {

template <typename Row>
constexpr ST_FIELD_INFO field_info(const Column<Row> &column) {
  uint flags = column.nullable ? MY_I_S_MAYBE_NULL : 0;
  uint length = column.length;
  enum_field_types type = MYSQL_TYPE_STRING;
  switch (column.type) {
    case Sql_type::unsigned_bigint:
      flags |= MY_I_S_UNSIGNED;
      [[fallthrough]];
    case Sql_type::bigint:
      type = MYSQL_TYPE_LONGLONG;
      length = MY_INT64_NUM_DECIMAL_DIGITS;
      break;
    case Sql_type::double_precision:
      type = MYSQL_TYPE_DOUBLE;
      length = MAX_DOUBLE_STR_LENGTH;
      break;
    case Sql_type::yes_no:
      length = 3;
      break;
    case Sql_type::timestamp:
      type = MYSQL_TYPE_TIMESTAMP;
      length = DATETIME_MAX_DECIMALS;
      break;
    case Sql_type::varchar:
      break;
  }
  return {column.name, length, type, 0, flags, "", 0};
}

/** The server's field definitions of a table, ended by one without a name. The
server wants them writable but does not write. */
template <const auto &table>
constinit auto fields = [] {
  std::array<ST_FIELD_INFO, table.size + 1> infos{};
  for (size_t i = 0; i < table.size; ++i)
    infos[i] = field_info(table.columns[i]);
  infos[table.size] = {nullptr, 0, MYSQL_TYPE_STRING, 0, 0, nullptr, 0};
  return infos;
}();

class Store {
 public:
  explicit Store(Field *field) : m_field(field) {}
  void operator()(std::monostate) const { m_field->set_null(); }
  void operator()(uint64_t value) const {
    m_field->set_notnull();
    m_field->store(static_cast<longlong>(value), true);
  }
  void operator()(int64_t value) const {
    m_field->set_notnull();
    m_field->store(value, false);
  }
  void operator()(double value) const {
    m_field->set_notnull();
    m_field->store(value);
  }
  void operator()(bool value) const {
    (*this)(std::string_view{value ? "YES" : "NO"});
  }
  void operator()(std::string_view text) const {
    m_field->set_notnull();
    m_field->store(text.data(), text.size(), system_charset_info);
  }
  void operator()(Timestamp moment) const {
    m_field->set_notnull();
    const my_timeval value{static_cast<int64_t>(moment.us / 1000000),
                           static_cast<int64_t>(moment.us % 1000000)};
    m_field->store_timestamp(&value);
  }

 private:
  Field *m_field;
};

void warn(THD *thd, const std::string &text) {
  push_warning_printf(thd, Sql_condition::SL_WARNING, ER_UNKNOWN_ERROR,
                      "memdiag: %s", text.c_str());
}

/** One warning for each control that failed. */
void push_warnings(THD *thd, const Snapshot &snapshot) {
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

/** Tables of ours that the running statement reads, a bit for each, and what
they want in their snapshot. */
struct Wanted {
  uint64_t tables;
  Details details;
  /** Nothing that was seen before will do. */
  bool exact;
};

Wanted wanted_by_statement(THD *thd) {
  Wanted wanted{};
  for (const Table_ref *table = thd->lex->query_tables; table != nullptr;
       table = table->next_global) {
    if (table->schema_table == nullptr) continue;
    uint64_t bit = 1;
#define ADD(name)                                                        \
  if (table->schema_table->fields_info == fields<name##_table>.data()) { \
    wanted.tables |= bit;                                                \
    using Row = decltype(name##_table)::Row;                             \
    wanted.details |= detail_of<Row>;                                    \
    wanted.exact |= std::is_same_v<Row, Exact_ledger_row>;               \
  }                                                                      \
  bit *= 2;
    MEMDIAG_TABLES(ADD)
#undef ADD
  }
  return wanted;
}

/** Something that several tables are made from. */
template <typename T>
struct Part {
  std::optional<T> value;
  /** The statement that got its warnings. */
  query_id_t warned_for = 0;
};

/** What the thread has seen in the look that the running statement is part of:
tables that are joined agree, and a table that is filled again for each outer
row does not change. Kept until the thread's next look. */
struct Seen {
  Look look;
  /** What the statement wants in the snapshot. */
  Details details = 0;
  Part<Snapshot> snapshot;
  Part<host::Report> host;
};

Seen &seen_by_statement(THD *thd) {
  thread_local std::unique_ptr<Seen> seen;
  if (seen == nullptr) seen = std::make_unique<Seen>();
  const Wanted wanted = wanted_by_statement(thd);
  seen->details = wanted.details;
  Look::Statement statement{
      thd->thread_id(), static_cast<uint64_t>(thd->query_id),
      thd->status_var.questions, wanted.tables, clock_us(CLOCK_MONOTONIC)};
  if (wanted.exact || thd->sp_runtime_ctx != nullptr || thd->in_sub_stmt != 0)
    statement.number.reset();
  if (!seen->look.goes_on_with(statement)) {
    seen->snapshot = {};
    seen->host = {};
  }
  return *seen;
}

/** Takes it if it is not there, and gives each statement its warnings once. */
template <typename T, typename Take, typename Warn>
const T &see(THD *thd, Part<T> *part, Take take, Warn warn_of) {
  if (!part->value) part->value = take();
  if (part->warned_for != thd->query_id) {
    part->warned_for = thd->query_id;
    warn_of(*part->value);
  }
  return *part->value;
}

/** @param details  what has to be in it */
const Snapshot &snapshot_of_statement(THD *thd, Details details) {
  Seen &seen = seen_by_statement(thd);
  Part<Snapshot> &part = seen.snapshot;
  if (part.value && (part.value->details & details) != details) part = {};
  return see(
      thd, &part, [&] { return take_snapshot(details | seen.details); },
      [thd](const Snapshot &snapshot) { push_warnings(thd, snapshot); });
}

/** A table's rows: an overload for each type of them. */
template <typename Row>
auto rows(THD *thd, std::type_identity<Row>) {
  return rows_of<Row>(snapshot_of_statement(thd, detail_of<Row>));
}

auto rows(THD *, std::type_identity<routes::Row>) { return routes::all(); }

auto rows(THD *, std::type_identity<scopes::Row>) {
  return scopes::survivors();
}

auto rows(THD *, std::type_identity<sessions::Row>) {
  // Sessions first: one that begins meanwhile is in the background.
  const auto all = sessions::server_sessions();
  return sessions::rows(sessions::holdings(), all);
}

auto rows(THD *, std::type_identity<sessions::Digest_row>) {
  return sessions::digests();
}

std::vector<ledger::Row> rows_of_ledger(THD *thd, ledger::Precision precision) {
  ledger::Ledger ledger = ledger::reader().take(
      snapshot_of_statement(thd, 0), buffer_pool_pages(), precision);
  for (const std::string &text : ledger.warnings) warn(thd, text);
  return std::move(ledger.rows);
}

auto rows(THD *thd, std::type_identity<ledger::Row>) {
  return rows_of_ledger(thd, ledger::Precision::cheap);
}

auto rows(THD *thd, std::type_identity<Exact_ledger_row>) {
  std::vector<Exact_ledger_row> exact;
  for (const ledger::Row &row : rows_of_ledger(thd, ledger::Precision::exact))
    exact.push_back({row});
  return exact;
}

auto rows(THD *thd, std::type_identity<instruments::Row>) {
  return instruments::rows(
      routes::all(), perfschema::counted(),
      instruments::shares(snapshot_of_statement(thd, 0).pools,
                          rows_of_ledger(thd, ledger::Precision::cheap)));
}

auto rows(THD *, std::type_identity<purge_log::Row>) {
  return purge_log::all();
}

auto rows(THD *, std::type_identity<History_row>) {
  return history_rows(history::this_run());
}

auto rows(THD *, std::type_identity<Last_run_row>) {
  return last_run_rows(history::former_runs());
}

auto rows(THD *, std::type_identity<History_pool_row>) {
  return history_pool_rows(history::former_runs(), history::this_run());
}

auto rows(THD *thd, std::type_identity<regions::Row>) {
  int error;
  const auto all =
      regions::all(&error, ledger::reader().recent_regions(buffer_pool_pages()));
  if (error != 0)
    warn(thd,
         "the system does not tell what is in physical memory (mincore): "
         "error " +
             reason(error));
  return all;
}

const host::Report &host_report(THD *thd) {
  return see(
      thd, &seen_by_statement(thd).host,
      [] {
        host::Places places;
        places.data_directory = mysql_real_data_home;
        return host::collect(places);
      },
      [thd](const host::Report &report) {
        for (const host::Failed_file &failed : report.failed)
          warn(thd, failed.file + " could not be read: error " +
                        reason(failed.error));
      });
}

auto rows(THD *thd, std::type_identity<host::Row>) {
  std::vector<host::Row> rows = host_report(thd).rows;
  const char *const variable = "innodb_numa_interleave";
  if (const auto on = innodb::numa_interleave())
    rows.push_back({"numa", variable, {}, *on ? "ON" : "OFF", "", variable});
  const auto walk = ledger::reader().recent_walk(buffer_pool_pages());
  if (!walk)
    warn(thd, "what of the pools is in huge pages could not be read");
  else if (walk->huge_known)
    for (size_t i = 0; i < pool_count; ++i)
      rows.push_back({"huge_pages",
                      std::string("pool.") + spec_of(static_cast<Pool>(i)).name,
                      static_cast<double>(walk->pools[i].huge_bytes),
                      {},
                      "bytes",
                      "/proc/self/pagemap"});
  return rows;
}

auto rows(THD *thd, std::type_identity<innodb::Component>) {
  const auto components = innodb::components();
  for (const innodb::Component &component : components)
    if (component.busy)
      warn(thd, std::string(component.name) +
                    " could not be read: InnoDB's dictionary was in use");
  return components;
}

std::vector<budget::Row> budget_rows(THD *thd, budget::Worst_seen worst_seen) {
  std::vector<const char *> unreadable;
  const budget::Facts facts = budget::take_facts(worst_seen, &unreadable);
  for (const char *name : unreadable)
    warn(thd, std::string(name) + " could not be read");
  return budget::rows(facts);
}

auto rows(THD *thd, std::type_identity<budget::Row>) {
  return budget_rows(thd, budget::Worst_seen::ask);
}

auto rows(THD *thd, std::type_identity<advisor::Finding>) {
  return advisor::findings(advisor::make_situation(
      snapshot_of_statement(thd, 0), host_report(thd).figures,
      budget_rows(thd, budget::Worst_seen::leave_out),
      history::this_run(clock_us(CLOCK_REALTIME) - trend_us),
      scopes::survivors()));
}

template <const auto &table>
int fill(THD *thd, Table_ref *tables, Item *) {
  using Row = typename std::remove_cvref_t<decltype(table)>::Row;
  if (check_global_access(thd, PROCESS_ACL)) return 1;
  DBUG_EXECUTE_IF("memdiag_fail_stats_resident",
                  fail_reads_for_test(Ctl::stats_resident););
  DBUG_EXECUTE_IF("memdiag_fail_arena_pdirty",
                  fail_reads_for_test(Ctl::stats_arena_pdirty););
  DBUG_EXECUTE_IF("memdiag_fail_bin_curregs",
                  fail_reads_for_test(Ctl::stats_bin_curregs););
  DBUG_EXECUTE_IF("memdiag_fail_arenas_narenas",
                  fail_reads_for_test(Ctl::arenas_narenas););
  DBUG_EXECUTE_IF("memdiag_fail_regions", Presence::fail_for_test(true););
  DBUG_EXECUTE_IF("memdiag_fail_host",
                  host::fail_reads_for_test("/proc/meminfo"););
  DBUG_EXECUTE_IF("memdiag_fail_innodb", innodb::find_busy_for_test(true););
  DBUG_EXECUTE_IF("memdiag_fail_variables", budget::fail_reads_for_test(true););
  DBUG_EXECUTE_IF(
      "memdiag_fail_nothing", fail_reads_for_test(Ctl::count);
      Presence::fail_for_test(false); host::fail_reads_for_test(nullptr);
      innodb::find_busy_for_test(false); budget::fail_reads_for_test(false););
  try {
    // Of tables that share nothing with others, too: the look goes on.
    (void)seen_by_statement(thd);
    TABLE *const to = tables->table;
    for (const Row &row : rows(thd, std::type_identity<Row>{})) {
      for (size_t i = 0; i < table.size; ++i)
        std::visit(Store(to->field[i]), table.columns[i].value(row));
      if (schema_table_store_record(thd, to)) return 1;
    }
  } catch (const std::bad_alloc &) {
    my_error(ER_STD_BAD_ALLOC_ERROR, MYF(0), table.name, "memdiag");
    return 1;
  }
  return 0;
}

}  // namespace

template <const auto &table>
int init(void *schema_table) {
  ST_SCHEMA_TABLE *const schema = static_cast<ST_SCHEMA_TABLE *>(schema_table);
  schema->fields_info = fields<table>.data();
  schema->fill_table = fill<table>;
  return 0;
}

#define INSTANTIATE(name) template int init<name##_table>(void *);
MEMDIAG_TABLES(INSTANTIATE)
#undef INSTANTIATE

}  // namespace memdiag::information_schema
