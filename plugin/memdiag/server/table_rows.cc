#include "plugin/memdiag/server/table_rows.h"

#include <string>
#include <utility>
#include <vector>

#include "mysys/memdiag/clock.h"
#include "plugin/memdiag/advice/situation.h"
#include "plugin/memdiag/advice/summary.h"
#include "plugin/memdiag/base/reason.h"
#include "plugin/memdiag/history/history.h"
#include "plugin/memdiag/history/trend.h"
#include "plugin/memdiag/ledger/ledger_reader.h"
#include "plugin/memdiag/server/budget_facts.h"
#include "plugin/memdiag/server/buffer_pool_pages.h"
#include "plugin/memdiag/server/perfschema_memory.h"
#include "plugin/memdiag/server/server_sessions.h"
#include "plugin/memdiag/server/statement_cache.h"
#include "storage/innobase/memdiag_innodb.h"

namespace memdiag {
namespace {

/** @param details  the rows that the snapshot must have */
const Snapshot &snapshot_of(THD *thd, Details details = 0) {
  return Statement_cache::of(thd).snapshot(thd, details);
}

template <typename Rows, typename Row>
void add_all(const Rows &rows, Sink<Row> *sink) {
  for (const Row &row : rows)
    if (!sink->add(row)) return;
}

template <typename Row>
void add_rows_of_snapshot(THD *thd, Sink<Row> *sink) {
  add_all(rows_of<Row>(snapshot_of(thd, detail_of<Row>)), sink);
}

std::vector<ledger::Row> ledger_rows(THD *thd, ledger::Precision precision) {
  ledger::Ledger ledger =
      ledger::reader().take(snapshot_of(thd), buffer_pool_pages(), precision);
  for (const std::string &text : ledger.warnings) warn(thd, text);
  return std::move(ledger.rows);
}

std::vector<budget::Row> budget_rows(THD *thd, budget::Worst_seen worst_seen) {
  std::vector<const char *> unreadable;
  const budget::Facts facts = budget::take_facts(worst_seen, &unreadable);
  for (const char *name : unreadable)
    warn(thd, std::string(name) + " could not be read");
  return budget::rows(facts);
}

std::vector<advisor::Finding> findings_of(
    THD *thd, const std::vector<budget::Row> &budget) {
  const Snapshot &snapshot = snapshot_of(thd);
  const host::Figures &host = Statement_cache::of(thd).host_report(thd).figures;
  advisor::Server_facts server{.max_used_connections =
                                   budget::max_used_connections()};
  if (const auto session = sessions::largest_client())
    server.largest_session = {session->processlist_id, session->bytes};
  return advisor::findings(advisor::make_situation(
      snapshot, host, budget,
      history::this_run(clock_us(CLOCK_REALTIME) - trend_us),
      scopes::survivors(), routes::all(), server));
}

}  // namespace

void add_rows(THD *thd, Sink<summary::Row> *sink) {
  const Snapshot &snapshot = snapshot_of(thd);
  const host::Figures &host = Statement_cache::of(thd).host_report(thd).figures;
  const std::vector<budget::Row> budget =
      budget_rows(thd, budget::Worst_seen::leave_out);
  const std::vector<advisor::Finding> findings = findings_of(thd, budget);
  const std::vector<ledger::Row> ledger =
      ledger_rows(thd, ledger::Precision::cheap);
  const std::vector<instruments::Row> all_instruments =
      instruments::rows(routes::all(), perfschema::counted(),
                        instruments::shares(snapshot.pools, ledger));
  summary::Facts facts{};
  facts.now_us = clock_us(CLOCK_REALTIME);
  for (const ledger::Row &row : ledger)
    if (row.resident_bytes)
      facts.resident.push_back(
          {row.component, row.name, row.state, *row.resident_bytes});
  for (const instruments::Row &row : all_instruments)
    // Live bytes are of the allocator; blocks of malloc() have those that
    // Performance Schema counts.
    if (const Reading bytes =
            row.live_bytes ? row.live_bytes : row.counted_bytes)
      facts.instruments.push_back({row.event_name, *bytes});
  for (size_t i = 0; i < pool_count; ++i)
    facts.pool_peaks[i] = {snapshot.pools[i].peak_bytes,
                           snapshot.pools[i].peak_time};
  constexpr uint64_t hour_us = 3600 * uint64_t{1000000};
  const std::vector<black_box::Sample> samples =
      history::this_run(facts.now_us - hour_us);
  facts.samples = samples;
  facts.findings = findings;
  facts.limit_bytes = host::limit_bytes(host);
  if (const auto session = sessions::largest_client())
    facts.largest_session = {session->processlist_id, session->bytes};
  for (const budget::Row &row : budget)
    if (row.value) facts.variables[row.variable] = *row.value;
  add_all(summary::rows(facts), sink);
}

void add_rows(THD *thd, Sink<advisor::Finding> *sink) {
  add_all(findings_of(thd, budget_rows(thd, budget::Worst_seen::leave_out)),
          sink);
}

void add_rows(THD *thd, Sink<ledger::Row> *sink) {
  add_all(ledger_rows(thd, ledger::Precision::cheap), sink);
}

void add_rows(THD *thd, Sink<Exact_ledger_row> *sink) {
  for (const ledger::Row &row : ledger_rows(thd, ledger::Precision::exact))
    if (!sink->add({row})) return;
}

void add_rows(THD *thd, Sink<Allocator_row> *sink) {
  add_rows_of_snapshot(thd, sink);
}

void add_rows(THD *thd, Sink<Pool_row> *sink) {
  add_rows_of_snapshot(thd, sink);
}

void add_rows(THD *thd, Sink<Arena_row> *sink) {
  add_rows_of_snapshot(thd, sink);
}

void add_rows(THD *thd, Sink<Bin_row> *sink) {
  add_rows_of_snapshot(thd, sink);
}

void add_rows(THD *thd, Sink<Large_row> *sink) {
  add_rows_of_snapshot(thd, sink);
}

void add_rows(THD *thd, Sink<Extents_row> *sink) {
  add_rows_of_snapshot(thd, sink);
}

void add_rows(THD *thd, Sink<Mutex_row> *sink) {
  add_rows_of_snapshot(thd, sink);
}

void add_rows(THD *, Sink<routes::Row> *sink) { add_all(routes::all(), sink); }

void add_rows(THD *thd, Sink<instruments::Row> *sink) {
  add_all(instruments::rows(
              routes::all(), perfschema::counted(),
              instruments::shares(snapshot_of(thd).pools,
                                  ledger_rows(thd, ledger::Precision::cheap))),
          sink);
}

void add_rows(THD *, Sink<scopes::Row> *sink) {
  add_all(scopes::survivors(), sink);
}

void add_rows(THD *, Sink<sessions::Row> *sink) {
  // Sessions first: a session that begins meanwhile is in the background.
  const auto all = sessions::server_sessions();
  add_all(sessions::rows(sessions::holdings(), all), sink);
}

void add_rows(THD *, Sink<sessions::Digest_row> *sink) {
  add_all(sessions::digests(), sink);
}

void add_rows(THD *thd, Sink<regions::Row> *sink) {
  int error;
  const auto all = regions::all(
      &error, ledger::reader().recent_regions(buffer_pool_pages()));
  if (error != 0)
    warn(thd, "resident pages of regions could not be read (mincore): error " +
                  reason(error));
  add_all(all, sink);
}

void add_rows(THD *thd, Sink<innodb::Component> *sink) {
  const auto components = innodb::components();
  for (const innodb::Component &component : components)
    if (component.busy)
      warn(thd, std::string(component.name) +
                    " could not be read: InnoDB's dictionary was in use");
  add_all(components, sink);
}

void add_rows(THD *thd, Sink<budget::Row> *sink) {
  add_all(budget_rows(thd, budget::Worst_seen::ask), sink);
}

void add_rows(THD *thd, Sink<host::Row> *sink) {
  std::vector<host::Row> rows = Statement_cache::of(thd).host_report(thd).rows;
  const char *const variable = "innodb_numa_interleave";
  if (const auto on = innodb::numa_interleave())
    rows.push_back({"numa", variable, {}, *on ? "ON" : "OFF", "", variable});
  const auto walk = ledger::reader().recent_walk(buffer_pool_pages());
  if (!walk)
    warn(thd, "the huge pages of the pools could not be read");
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

void add_rows(THD *, Sink<purge_log::Row> *sink) {
  add_all(purge_log::all(), sink);
}

void add_rows(THD *, Sink<History_row> *sink) {
  add_all(history_rows(history::this_run()), sink);
}

void add_rows(THD *, Sink<History_pool_row> *sink) {
  add_all(history_pool_rows(history::former_runs(), history::this_run()), sink);
}

void add_rows(THD *, Sink<Last_run_row> *sink) {
  add_all(last_run_rows(history::former_runs()), sink);
}

}  // namespace memdiag
