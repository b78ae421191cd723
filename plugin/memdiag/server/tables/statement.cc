#include "plugin/memdiag/server/tables/statement.h"

#include <atomic>
#include <optional>
#include <type_traits>
#include <vector>

#include "my_thread.h"
#include "mysqld_error.h"
#include "mysys/memdiag/base/clock.h"
#include "mysys/memdiag/base/worker.h"
#include "mysys/memdiag/ceiling/sensor.h"
#include "plugin/memdiag/base/kept_values.h"
#include "plugin/memdiag/base/read_group.h"
#include "plugin/memdiag/base/reason.h"
#include "plugin/memdiag/ledger/ledger_reader.h"
#include "plugin/memdiag/server/bridge/budget_facts.h"
#include "plugin/memdiag/server/bridge/buffer_pool_pages.h"
#include "plugin/memdiag/server/bridge/perfschema.h"
#include "plugin/memdiag/server/bridge/server_sessions.h"
#include "plugin/memdiag/server/tables/table_fields.h"
#include "plugin/memdiag/tables/tables.h"
#include "sql/mysqld.h"
#include "sql/mysqld_thd_manager.h"
#include "sql/sql_class.h"
#include "sql/sql_error.h"
#include "sql/sql_lex.h"

namespace memdiag {

/** The readings of a read group. */
class Statement_cache {
 public:
  template <typename T>
  struct Cached {
    std::optional<T> value{};
    /** The last statement that got the warnings. */
    uint64_t warned_query{0};
  };

  struct Budget {
    budget::Facts facts;
    std::vector<const char *> unreadable;
  };

  Read_group group;
  /** The rows that tables of the running statement need in the snapshot. */
  Details details{0};
  struct Readings {
    Cached<Snapshot> snapshot;
    /** Made from `snapshot`. */
    Cached<ledger::Ledger> ledger;
    Cached<host::Report> host;
    Cached<Budget> budget;
    std::optional<std::vector<routes::Row>> routes;
    std::optional<std::vector<instruments::Counted>> counted;
    std::optional<std::vector<instruments::Row>> instruments;
    std::optional<std::vector<innodb::Component>> components;
    std::optional<std::optional<sessions::Client>> largest_client;
  } readings;
};

namespace {

/** The readings that a statement needs from its cache. */
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

void warn_of(const Snapshot &snapshot, Statement *statement) {
  for (const Failed_read &failure : snapshot.failed)
    statement->warn(std::string("the allocator's control ") +
                    mallctl::name(failure.ctl) + " could not be read (" +
                    std::to_string(failure.times) + " times): error " +
                    reason(failure.error));
  if (snapshot.mixed_moments)
    statement->warn(
        "the allocator is being purged again and again; the figures are not "
        "all of the same moment");
}

void warn_of(const host::Report &report, Statement *statement) {
  for (const host::Failed_file &failed : report.failed)
    statement->warn(failed.file + " could not be read: error " +
                    reason(failed.error));
}

void warn_of(const ledger::Ledger &ledger, Statement *statement) {
  for (const std::string &text : ledger.warnings) statement->warn(text);
}

void warn_of(const Statement_cache::Budget &budget, Statement *statement) {
  for (const char *name : budget.unreadable)
    statement->warn(std::string(name) + " could not be read");
}

uint64_t query_of(THD *thd) { return static_cast<uint64_t>(thd->query_id); }

/** Takes the value if it is missing, and warns once in each statement. */
template <typename T, typename Take>
const T &get_or_take(THD *thd, Statement_cache::Cached<T> *cached,
                     Statement *statement, Take take) {
  if (!cached->value) cached->value = take();
  if (cached->warned_query != query_of(thd)) {
    cached->warned_query = query_of(thd);
    warn_of(*cached->value, statement);
  }
  return *cached->value;
}

/** Never destroyed: sessions may read tables while the process exits. */
Kept_values<Statement_cache> &caches() {
  static auto *const instance = new Kept_values<Statement_cache>;
  return *instance;
}

/** Never destroyed: see Worker. */
Worker &worker() {
  static Worker *const instance = new Worker;
  return *instance;
}

constinit std::atomic<bool> worker_runs{false};

/** 0: the clock goes. */
constinit std::atomic<uint64_t> stopped_at_us{0};

uint64_t clock_of_groups_us() {
  const uint64_t stopped_us = stopped_at_us.load(std::memory_order_relaxed);
  return stopped_us != 0 ? stopped_us : clock_us(CLOCK_MONOTONIC);
}

bool has_ended(uint64_t session, uint64_t query) {
  Find_thd_with_id find(static_cast<my_thread_id>(session), true);
  THD_ptr thd = Global_THD_manager::get_instance()->find_thd(&find);
  return !thd || query_of(thd.get()) != query ||
         thd->get_command() == COM_SLEEP;
}

/** @return how many are left */
size_t drop_old_readings(uint64_t now_us) {
  return caches().drop(Read_group::max_age_us, now_us, has_ended);
}

std::shared_ptr<Statement_cache> cache_of(THD *thd) {
  // All that read tables wait while a value is made.
  const ceiling::No_wait no_wait;
  const uint64_t now_us = clock_of_groups_us();
  if (!worker_runs) (void)drop_old_readings(now_us);
  auto cache = caches().of(thd->thread_id(), query_of(thd), now_us);
  worker().wake();
  const Needs needs = needs_of_statement(thd);
  cache->details = needs.details;
  Read_group::Statement statement{thd->thread_id(), query_of(thd),
                                  thd->status_var.questions, needs.tables,
                                  now_us};
  if (needs.exact || thd->sp_runtime_ctx != nullptr || thd->in_sub_stmt != 0)
    statement.number.reset();
  if (!cache->group.continues_with(statement)) cache->readings = {};
  return cache;
}

void run(Worker *self) {
  my_thread_init();
  size_t left;
  do {
    left = drop_old_readings(clock_of_groups_us());
  } while (self->wait_ms(left == 0 ? 0 : Read_group::max_age_us / 1000));
  my_thread_end();
}

}  // namespace

Statement::Statement(THD *thd) : m_thd(thd), m_cache(cache_of(thd)) {}

Statement::~Statement() = default;

const Snapshot &Statement::snapshot(Details details) {
  details |= m_cache->details;
  auto &cached = m_cache->readings.snapshot;
  if (cached.value && (cached.value->details & details) != details) {
    cached = {};
    m_cache->readings.ledger = {};
    m_cache->readings.instruments.reset();
  }
  return get_or_take(m_thd, &cached, this,
                     [&] { return take_snapshot(details); });
}

const std::vector<ledger::Row> &Statement::ledger_rows() {
  // A snapshot without all that the statement needs ends the ledger, too.
  (void)snapshot();
  return get_or_take(m_thd, &m_cache->readings.ledger, this,
                     [this] {
                       return ledger::reader().take(snapshot(),
                                                    buffer_pool_pages(),
                                                    ledger::Precision::cheap);
                     })
      .rows;
}

const std::vector<instruments::Row> &Statement::instrument_rows() {
  // Each statement gets the warnings of these.
  const Snapshot &taken = snapshot();
  const std::vector<ledger::Row> &ledger = ledger_rows();
  auto &cached = m_cache->readings.instruments;
  if (!cached)
    cached = instruments::rows(all_routes(), counted(),
                               instruments::shares(taken.pools, ledger));
  return *cached;
}

const host::Report &Statement::host_report() {
  return get_or_take(m_thd, &m_cache->readings.host, this, [] {
    host::Places places;
    places.data_directory = mysql_real_data_home;
    return host::collect(places);
  });
}

const std::vector<routes::Row> &Statement::all_routes() {
  auto &cached = m_cache->readings.routes;
  if (!cached) cached = routes::all();
  return *cached;
}

const std::vector<instruments::Counted> &Statement::counted() {
  auto &cached = m_cache->readings.counted;
  if (!cached) cached = perfschema::counted();
  return *cached;
}

std::vector<instruments::Counted> Statement::counted_of(
    std::span<const char *const> names) {
  const auto &cached = m_cache->readings.counted;
  return cached ? *cached : perfschema::counted(names);
}

const std::vector<innodb::Component> &Statement::innodb_components() {
  auto &cached = m_cache->readings.components;
  if (!cached) cached = innodb::components();
  return *cached;
}

const budget::Facts &Statement::budget_facts() {
  return get_or_take(m_thd, &m_cache->readings.budget, this,
                     [this] {
                       Statement_cache::Budget budget;
                       budget.facts =
                           budget::take_facts(all_routes(), innodb_components(),
                                              &budget.unreadable);
                       return budget;
                     })
      .facts;
}

const std::optional<sessions::Client> &Statement::largest_client() {
  auto &cached = m_cache->readings.largest_client;
  if (!cached)
    cached = sessions::largest_client(
        [this]() -> const auto & { return counted(); });
  return *cached;
}

bool Statement::is_killed() const { return m_thd->killed != THD::NOT_KILLED; }

void Statement::warn(const std::string &text) {
  push_warning_printf(m_thd, Sql_condition::SL_WARNING, ER_UNKNOWN_ERROR,
                      "memdiag: %s", text.c_str());
}

void Statement::forget_readings() { m_cache->readings = {}; }

void statement_readings::end_group(THD *thd) {
  if (const auto cache = caches().find(thd->thread_id())) cache->group.end();
}

int statement_readings::start() {
  const int error = worker().start("memdiag_read", run);
  worker_runs = error == 0;
  return error;
}

void statement_readings::stop() {
  worker_runs = false;
  worker().stop();
}

void statement_readings::stop_clock_for_test(bool stop) {
  stopped_at_us.store(stop ? clock_us(CLOCK_MONOTONIC) : 0,
                      std::memory_order_relaxed);
}

}  // namespace memdiag
