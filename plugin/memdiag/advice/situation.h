/*
  Makes the advisor's situation from the figures of the collectors, and a row of
  MEMDIAG_HOST. Pure functions; units as in finding.h.
*/

#ifndef MEMDIAG_SITUATION_H
#define MEMDIAG_SITUATION_H

#include <array>
#include <optional>
#include <span>
#include <string>

#include "mysys/memdiag/accounting/scopes.h"
#include "mysys/memdiag/routes/routes.h"
#include "plugin/memdiag/advice/finding.h"
#include "plugin/memdiag/allocator/allocator_snapshot.h"
#include "plugin/memdiag/budget/budget.h"
#include "plugin/memdiag/history/black_box.h"
#include "plugin/memdiag/history/limits.h"
#include "plugin/memdiag/host/host.h"
#include "plugin/memdiag/ledger/ledger_rows.h"

namespace memdiag::advisor {

/** Facts that only the server knows; empty: not known. */
struct Server_facts {
  Reading max_used_connections;
  Reading max_used_seconds{};
  /** As samples have it. Empty: the last sample is of now. */
  Reading now_us{};
  /** As in Situation. */
  Reading up_seconds{};
  /** What KILL of the session can still free. */
  std::optional<Session> largest_session;
  /** As in Situation. */
  Reading reader_processlist_id{};
  /** The same by instrument; valid while the situation is made. */
  std::span<const instruments::Held> held_by_largest{};
  /** As in Holding_figures. */
  std::optional<Session> most_heaps{};
  std::optional<Idle_sessions> idle_sessions{};
  /** Sessions of clients, and those whose memory Performance Schema counts. */
  Reading sessions{};
  Reading counted_sessions{};
  /** As in Situation. */
  bool locks_are_counted{false};
  /** What threads that send the binary log have of
  memory/sql/String::value. */
  uint64_t dump_thread_bytes{0};
  /** As in Situation. */
  uint64_t kept_string_bytes{0};
  uint64_t idle_string_bytes{0};
  uint64_t idle_warnings{0};
  /** Sessions that FLUSH would wait for. */
  uint64_t table_keepers{0};
  /** As in Situation. */
  bool is_read_only{false};
  bool lacks_functions{false};
  /** What programs of triggers have of memory/sql/sp_head::main_mem_root. */
  uint64_t trigger_bytes{0};
  /** Resident, of mapped files of temporary tables. */
  Reading temp_table_file_bytes{};
  /** Resident. Empty: the last sample's counts. */
  Reading buffer_pool_resident_bytes{};
  /** As in Holding_figures. */
  uint64_t beside_allocator_bytes{0};
  uint64_t mapped_file_bytes{0};
  Tables tables{};
  /** Empty: Performance Schema is off. */
  std::span<const instruments::Counted> counted{};
  std::optional<Row_locks> row_locks{};
  /** Dirty pages that are in physical memory, by pool. jemalloc also counts
  those as dirty that were allocated and never written. */
  std::array<Reading, pool_count> resident_dirty_bytes{};
  /** The same of live blocks. */
  std::array<Reading, pool_count> resident_live_bytes{};
  /** Free parts of pages in physical memory that also have live blocks. */
  std::array<Reading, pool_count> resident_free_bytes{};
  Reading buffer_pool_asked_bytes{};
  Reading buffer_pool_unit_bytes{};
  std::optional<Folder_in_memory> tmpdir_in_memory{};
  std::optional<Ceiling_situation> ceiling{};
};

/** The last sample is older than two more would be, and than a minute: samples
are off, and growth of then is none of now. */
bool are_old(std::span<const black_box::Sample> samples, Reading now_us);

/** Sets the resident bytes of pools, of the buffer pool, and of files of
temporary tables, as the ledger has them. */
void add_ledger(std::span<const ledger::Row> ledger, Server_facts *server);

/** @param samples    of this run, oldest first: trends are over the last
                      quarter of an hour
@param survivors  as far as they are counted
@param routes     their live bytes tell what holders have
@throws std::bad_alloc */
Situation make_situation(const Snapshot &snapshot, const host::Figures &host,
                         std::span<const budget::Row> budget,
                         std::span<const black_box::Sample> samples,
                         std::span<const scopes::Row> survivors,
                         std::span<const routes::Row> routes = {},
                         const Server_facts &server = {});

/** The row of the safe limit of the control group. */
struct Safe_limit_row {
  host::Row row;
  /** "", or why the figure is not known. */
  std::string warning;
};

/** @return empty: the server is in no control group that has one
@throws std::bad_alloc */
std::optional<Safe_limit_row> safe_limit_row(const limits::Figures &figures);

}  // namespace memdiag::advisor

#endif  // MEMDIAG_SITUATION_H
