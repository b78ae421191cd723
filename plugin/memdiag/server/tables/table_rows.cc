#include "plugin/memdiag/server/tables/table_rows.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mysys/memdiag/base/clock.h"
#include "plugin/memdiag/advice/advisor.h"
#include "plugin/memdiag/advice/situation.h"
#include "plugin/memdiag/advice/summary.h"
#include "plugin/memdiag/base/reason.h"
#include "plugin/memdiag/ceiling/figures.h"
#include "plugin/memdiag/history/history.h"
#include "plugin/memdiag/history/limits.h"
#include "plugin/memdiag/history/trend.h"
#include "plugin/memdiag/ledger/ledger_reader.h"
#include "plugin/memdiag/profile/modules.h"
#include "plugin/memdiag/profile/reader.h"
#include "plugin/memdiag/profile/symbols.h"
#include "plugin/memdiag/profile_file/record_rows.h"
#include "plugin/memdiag/server/bridge/budget_facts.h"
#include "plugin/memdiag/server/bridge/buffer_pool_pages.h"
#include "plugin/memdiag/server/bridge/open_tables.h"
#include "plugin/memdiag/server/bridge/perfschema.h"
#include "plugin/memdiag/server/bridge/server_sessions.h"
#include "plugin/memdiag/server/bridge/start_settings.h"
#include "plugin/memdiag/server/tables/statement.h"
#include "plugin/memdiag/server/threads/ceiling.h"
#include "plugin/memdiag/server/threads/profile_switch.h"
#include "sql/current_thd.h"
#include "sql/memdiag/program_blocks.h"
#include "sql/mysqld.h"
#include "sql/sql_class.h"
#include "storage/innobase/memdiag/balloon.h"
#include "storage/innobase/memdiag/innodb.h"

namespace memdiag {
namespace {

template <typename Rows, typename Row>
void add_all(const Rows &rows, Sink<Row> *sink) {
  for (const Row &row : rows)
    if (!sink->add(row)) return;
}

template <typename Row>
void add_rows_of_snapshot(Statement *statement, Sink<Row> *sink) {
  add_all(rows_of<Row>(statement->snapshot(detail_of<Row>)), sink);
}

/** When the program was loaded. */
const uint64_t loaded_us = clock_us(CLOCK_MONOTONIC);

std::optional<advisor::Ceiling_situation> ceiling_situation() {
  const ceiling::Figures now = ceiling::figures();
  if (!now.on) return std::nullopt;
  Reading quiet_seconds;
  Reading went_on_seconds;
  if (now.parked_bytes != 0 || now.went_on != 0) {
    const uint64_t now_us = clock_us(CLOCK_REALTIME);
    for (const auto &action : ceiling::actions()) {
      const uint64_t seconds =
          now_us > action.time_us ? (now_us - action.time_us) / 1'000'000 : 0;
      quiet_seconds = seconds;
      if (std::string_view(action.action) == "went_on")
        went_on_seconds = seconds;
    }
  }
  return advisor::Ceiling_situation{
      .acts = now.acts,
      .level = now.level,
      .marks = now.marks,
      .kept_bytes = now.kept_bytes,
      .parked_bytes = now.parked_bytes,
      .parkable_bytes = locked_in_memory ? 0 : balloon::parkable_bytes(),
      .went_on = now.went_on,
      .went_on_seconds = went_on_seconds,
      .longest_wait_us = now.longest_wait_us,
      .quiet_seconds = quiet_seconds};
}

advisor::Situation situation_of(Statement *statement) {
  advisor::Server_facts server{};
  server.reader_processlist_id = current_thd->thread_id();
  server.now_us = clock_us(CLOCK_REALTIME);
  server.max_used_connections = budget::max_used_connections();
  server.max_used_seconds = budget::max_used_connections_seconds();
  server.up_seconds = (clock_us(CLOCK_MONOTONIC) - loaded_us) / 1'000'000;
  if (const auto &session = statement->largest_client()) {
    server.largest_session = {session->processlist_id, session->bytes,
                              session->in_transaction, false, session->is_idle};
    server.held_by_largest = session->held;
    if (session->heaps_bytes != 0)
      server.most_heaps = {session->heaps_processlist_id, session->heaps_bytes,
                           false, false, session->heaps_are_idle};
  }
  if (perfschema::is_on()) server.counted = statement->counted();
  const uint64_t strings =
      instruments::counted_bytes(server.counted, "memory/sql/String::value")
          .value_or(0);
  const bool asks_strings = strings >= advisor::worth_bytes;
  const sessions::Totals sessions = sessions::totals(
      [statement]() -> const auto & { return statement->counted(); },
      asks_strings);
  if (asks_strings)
    server.kept_string_bytes =
        strings - std::min(strings, sessions.string_bytes);
  server.idle_string_bytes = sessions.idle_string_bytes;
  server.idle_warnings = sessions.idle_warnings;
  server.sessions = sessions.clients;
  server.counted_sessions = sessions.counted_clients;
  server.locks_are_counted = perfschema::counts_locks_of_names() &&
                             sessions.clients_before_counts_of_locks == 0;
  server.idle_sessions = {sessions.idle_clients, sessions.idle_bytes,
                          sessions.long_idle_bytes};
  server.dump_thread_bytes = sessions.dump_thread_bytes;
  server.table_keepers = sessions.table_keepers;
  server.is_read_only = opt_super_readonly;
  server.lacks_functions = opt_noacl;
  server.trigger_bytes = trigger_bytes();
  server.tables = budget::tables(statement->innodb_components());
  server.buffer_pool_asked_bytes = start_settings::buffer_pool_asked_bytes();
  server.buffer_pool_unit_bytes = innodb::buffer_pool_unit_bytes();
  server.tmpdir_in_memory = start_settings::tmpdir_in_memory();
  server.ceiling = ceiling_situation();
  if (const auto locks = innodb::row_locks(advisor::worth_bytes))
    server.row_locks = {locks->bytes,
                        {locks->largest_processlist_id, locks->largest_bytes},
                        locks->prepared_bytes};
  advisor::add_ledger(statement->ledger_rows(), &server);
  advisor::Situation situation = advisor::make_situation(
      statement->snapshot(), statement->host_report().figures,
      budget::rows(statement->budget_facts()),
      history::this_run(*server.now_us - trend_us), scopes::survivors(),
      statement->all_routes(), server);
  // Statements that open tables wait for this look.
  if (advisor::asks_for_tables(situation)) {
    const open_tables::Counts open = open_tables::counts();
    situation.value_tables = open.of_values;
    situation.csv_tables = open.csv;
  }
  return situation;
}

/** Functions of a former build may have no names. */
void warn_of_replaced(Statement *statement, const profile::Recorded_run &run) {
  const std::vector<std::string> paths =
      profile::replaced_modules(run, profile::modules_of_this_process());
  if (paths.empty()) return;
  std::string which = paths.front();
  if (paths.size() > 1)
    which += " and " + std::to_string(paths.size() - 1) + " more";
  statement->warn(which +
                  " of the last run had another build ID than now: install the "
                  "debug package of that build, or functions have no names");
}

profile::Contents recorded_runs(Statement *statement) {
  std::string remark;
  profile::Contents runs = profile_switch::runs(&remark);
  if (!remark.empty()) statement->warn(remark);
  return runs;
}

void add_safe_limit(Statement *statement, std::vector<host::Row> *rows) {
  constexpr uint64_t max_age_us = 200'000;
  auto limit = advisor::safe_limit_row(limits::now(max_age_us));
  if (!limit) return;
  if (!limit->warning.empty()) statement->warn(limit->warning);
  rows->push_back(std::move(limit->row));
}

}  // namespace

void add_rows(Statement *statement, Sink<summary::Row> *sink) {
  constexpr uint64_t hour_us = 3600 * uint64_t{1000000};
  const uint64_t now_us = clock_us(CLOCK_REALTIME);
  const advisor::Situation situation = situation_of(statement);
  const std::vector<advisor::Finding> findings = advisor::findings(situation);
  const std::vector<black_box::Sample> samples =
      history::this_run(now_us - hour_us);
  add_all(summary::rows(summary::make_facts(now_us, statement->snapshot(),
                                            statement->ledger_rows(), samples,
                                            situation, findings)),
          sink);
}

void add_rows(Statement *statement, Sink<advisor::Finding> *sink) {
  add_all(advisor::findings(situation_of(statement)), sink);
}

void add_rows(Statement *statement, Sink<ledger::Row> *sink) {
  add_all(statement->ledger_rows(), sink);
}

void add_rows(Statement *statement, Sink<Exact_ledger_row> *sink) {
  const ledger::Ledger ledger = ledger::reader().take(
      statement->snapshot(), buffer_pool_pages(), ledger::Precision::exact);
  for (const std::string &text : ledger.warnings) statement->warn(text);
  for (const ledger::Row &row : ledger.rows)
    if (!sink->add({row})) return;
}

void add_rows(Statement *statement, Sink<Allocator_row> *sink) {
  add_rows_of_snapshot(statement, sink);
}

void add_rows(Statement *statement, Sink<Pool_row> *sink) {
  add_rows_of_snapshot(statement, sink);
}

void add_rows(Statement *statement, Sink<Arena_row> *sink) {
  add_rows_of_snapshot(statement, sink);
}

void add_rows(Statement *statement, Sink<Size_class_row> *sink) {
  add_all(size_class_rows(statement->snapshot(detail_of<Size_class_row>)),
          sink);
}

void add_rows(Statement *statement, Sink<routes::Row> *sink) {
  add_all(statement->all_routes(), sink);
}

void add_rows(Statement *statement, Sink<instruments::Row> *sink) {
  add_all(statement->instrument_rows(), sink);
}

void add_rows(Statement *, Sink<scopes::Row> *sink) {
  add_all(scopes::survivors(), sink);
}

void add_rows(Statement *statement, Sink<sessions::Row> *sink) {
  // A session is listed before its bytes are read and after. A thread that has
  // gone from one to the next meanwhile is in the background.
  std::vector<sessions::Server_session> all;
  if (sessions::have_threads_of_their_own())
    all = sessions::server_sessions();
  else
    statement->warn(
        "the threads of a pool serve all sessions in turn, so the memory of a "
        "session is not known here; Performance Schema counts it");
  const sessions::Holdings held = sessions::holdings();
  if (!all.empty()) sessions::drop_ended(&all);
  add_all(sessions::rows(held, all), sink);
}

void add_rows(Statement *, Sink<profile::Digest_row> *sink) {
  // Digests first: a stack of a later profile is not looked up in this one.
  const auto digests = sessions::digests();
  const auto profile = profile::take_profile();
  add_all(profile::digest_rows(
              digests, profile ? &*profile : nullptr,
              profile ? profile::Symbols(*profile) : profile::Symbols()),
          sink);
}

void add_rows(Statement *statement, Sink<regions::Row> *sink) {
  int error;
  const auto all = regions::all(
      &error, ledger::reader().recent_regions(buffer_pool_pages()));
  if (error != 0)
    statement->warn(
        "resident pages of regions could not be read (mincore): error " +
        reason(error));
  add_all(all, sink);
}

void add_rows(Statement *statement, Sink<innodb::Component> *sink) {
  const auto &components = statement->innodb_components();
  for (const innodb::Component &component : components)
    if (component.busy)
      statement->warn(std::string(component.name) +
                      " could not be read: InnoDB's dictionary was in use");
  add_all(components, sink);
}

void add_rows(Statement *statement, Sink<budget::Row> *sink) {
  budget::Facts facts = statement->budget_facts();
  for (const instruments::Counted &of :
       statement->counted_of(budget::instruments()))
    if (of.enabled) facts.high_water_bytes[of.name] = of.high_bytes;
  add_all(budget::rows(facts), sink);
}

void add_rows(Statement *statement, Sink<host::Row> *sink) {
  std::vector<host::Row> rows = statement->host_report().rows;
  const char *const variable = "innodb_numa_interleave";
  if (const auto on = innodb::numa_interleave())
    rows.push_back({"numa", variable, {}, *on ? "ON" : "OFF", "", variable});
  add_safe_limit(statement, &rows);
  const auto walk = ledger::reader().recent_walk(buffer_pool_pages());
  if (!walk)
    statement->warn("the huge pages of the pools could not be read");
  else if (walk->huge_known)
    for (size_t i = 0; i < pool_count; ++i)
      rows.push_back({"huge_pages",
                      std::string("pool.") + spec_of(static_cast<Pool>(i)).name,
                      static_cast<double>(walk->pools[i].huge_bytes),
                      {},
                      "bytes",
                      "/proc/self/pagemap"});
  add_all(rows, sink);
}

void add_rows(Statement *, Sink<purge_log::Row> *sink) {
  add_all(purge_log::all(), sink);
}

void add_rows(Statement *, Sink<ceiling::Row> *sink) {
  add_all(ceiling::actions(), sink);
}

void add_rows(Statement *statement, Sink<profile::Profile_row> *sink) {
  const auto profile = profile::take_profile();
  if (!profile) return;
  if (profile->code_left_out != 0)
    statement->warn("the profiler has no room for " +
                    std::to_string(profile->code_left_out) +
                    " ranges of code: stacks end where they begin");
  add_all(profile::profile_rows(*profile, profile::Symbols(*profile)), sink);
}

void add_rows(Statement *, Sink<profile::Sample_row> *sink) {
  const auto samples = profile::take_samples();
  if (!samples) return;
  for (const profile::Live_sample &sample : samples->samples)
    if (!sink->add(profile::sample_row(*samples, sample))) return;
}

void add_rows(Statement *, Sink<profile::Stack_row> *sink) {
  if (const auto profile = profile::take_profile())
    add_all(profile::stack_rows(*profile, profile::Symbols(*profile)), sink);
}

void add_rows(Statement *statement, Sink<profile::Pinned_row> *sink) {
  profile::Samples samples{};
  const auto profile = profile::take_profile(&samples);
  if (!profile) return;
  add_all(
      profile::pinned_rows(
          rows_of<Bin_row>(statement->snapshot(detail_of<profile::Pinned_row>)),
          samples, *profile, profile::Symbols(*profile)),
      sink);
}

void add_rows(Statement *statement, Sink<profile::Last_run_profile_row> *sink) {
  const auto run = recorded_runs(statement).former;
  if (!run) return;
  warn_of_replaced(statement, *run);
  add_all(profile::last_run_profile_rows(*run), sink);
}

void add_rows(Statement *statement, Sink<profile::Profile_history_row> *sink) {
  bool goes_on = true;
  const auto add = [&](const profile::Profile_history_row &row) {
    return goes_on = sink->add(row);
  };
  const profile::Contents runs = recorded_runs(statement);
  if (runs.former) {
    warn_of_replaced(statement, *runs.former);
    profile::profile_history_rows(*runs.former, 1, add);
  }
  if (runs.latest && goes_on)
    profile::profile_history_rows(*runs.latest, 0, add);
}

void add_rows(Statement *, Sink<Run_history_row> *sink) {
  history_rows(*history::former_runs(), history::this_run(),
               [sink](const Run_history_row &row) { return sink->add(row); });
}

void add_rows(Statement *, Sink<History_pool_row> *sink) {
  history_pool_rows(
      *history::former_runs(), history::this_run(),
      [sink](const History_pool_row &row) { return sink->add(row); });
}

}  // namespace memdiag
