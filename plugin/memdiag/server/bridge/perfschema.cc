#include "plugin/memdiag/server/bridge/perfschema.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <string_view>
#include <utility>

#include "my_sys.h"
#include "plugin/memdiag/base/connect_attributes.h"
#include "sql/mysqld_thd_manager.h"
#include "storage/perfschema/pfs_account.h"
#include "storage/perfschema/pfs_buffer_container.h"
#include "storage/perfschema/pfs_builtin_memory.h"
#include "storage/perfschema/pfs_events_statements.h"
#include "storage/perfschema/pfs_events_waits.h"
#include "storage/perfschema/pfs_global.h"
#include "storage/perfschema/pfs_host.h"
#include "storage/perfschema/pfs_instr.h"
#include "storage/perfschema/pfs_instr_class.h"
#include "storage/perfschema/pfs_stat.h"
#include "storage/perfschema/pfs_visitor.h"
#include "storage/perfschema/table_session_connect.h"

void apply_to_locks() asm("__real__Z29update_metadata_derived_flagsv");
void apply_to_locks_and_note() asm("__wrap__Z29update_metadata_derived_flagsv");
void apply_to_all() asm("__real__Z32update_instruments_derived_flagsv");
void apply_to_all_and_note() asm(
    "__wrap__Z32update_instruments_derived_flagsv");

namespace memdiag::perfschema {
namespace {

constinit std::atomic<uint64_t> first_with_counts{0};

bool counts_locks() {
  return pfs_initialized && pfs_enabled && flag_global_instrumentation &&
         global_metadata_class.m_enabled;
}

PFS_thread *known(PSI_thread *thread) {
  return pfs_initialized ? reinterpret_cast<PFS_thread *>(thread) : nullptr;
}

std::string_view name_of(const PFS_memory_class &instrument) {
  return {instrument.m_name.str(), instrument.m_name.length()};
}

bool is_wanted(const PFS_memory_class &instrument,
               std::span<const char *const> only) {
  return only.empty() ||
         std::find(only.begin(), only.end(), name_of(instrument)) != only.end();
}

struct Sum {
  const PFS_memory_class *instrument;
  PFS_memory_monitoring_stat stat;

  Counted counted() {
    stat.normalize(true);
    const auto positive = [](ssize_t value) {
      return static_cast<uint64_t>(std::max<ssize_t>(value, 0));
    };
    return {name_of(*instrument), instrument->m_enabled,
            positive(stat.m_alloc_size - stat.m_free_size),
            positive(stat.m_alloc_count - stat.m_free_count),
            positive(stat.m_high_size_used)};
  }
};

Sum nothing_of(const PFS_memory_class &instrument) {
  Sum sum{&instrument, {}};
  sum.stat.reset();
  return sum;
}

/** Adds up the instruments of others than Performance Schema itself. */
class Sums : public PFS_connection_visitor {
 public:
  explicit Sums(std::span<const char *const> only) {
    const PFS_memory_class *instrument;
    for (PFS_memory_key key = 1;
         (instrument = find_memory_class(key)) != nullptr; ++key)
      if (is_wanted(*instrument, only))
        m_sums.push_back(nothing_of(*instrument));
    for (Sum &sum : m_sums)
      if (!sum.instrument->is_global())
        m_sums_of_parts.push_back(
            {sum.instrument->m_event_name_index, &sum.stat});
  }

  void visit_global() override {
    for (Sum &sum : m_sums)
      memory_monitoring_aggregate(
          &global_instr_class_memory_array[sum.instrument->m_event_name_index],
          &sum.stat);
  }
  void visit_host(PFS_host *host) override { add_part(host); }
  void visit_account(PFS_account *account) override { add_part(account); }
  void visit_thread(PFS_thread *thread) override { add_part(thread); }

  std::vector<Sum> &all() { return m_sums; }

 private:
  struct Sum_of_parts {
    uint index;
    PFS_memory_monitoring_stat *stat;
  };

  /** A session uses few of the instruments. Most of the time goes into finding
  the others unused, so this loop does no more than that. */
  template <typename Part>
  void add_part(Part *part) {
    const auto *const stats = part->read_instr_class_memory_stats();
    if (stats == nullptr) return;
    for (const Sum_of_parts &sum : m_sums_of_parts)
      if (stats[sum.index].m_used)
        memory_monitoring_aggregate(&stats[sum.index], sum.stat);
  }

  std::vector<Sum> m_sums;
  /** Those that sessions count, too. */
  std::vector<Sum_of_parts> m_sums_of_parts;
};

}  // namespace

bool is_on() { return pfs_initialized && pfs_enabled; }

bool counts_locks_of_names() {
  return counts_locks() && global_mdl_container.m_lost == 0;
}

/* A reader may look while a statement applies its switch: all sessions are
earlier ones then. Two statements may have switched the counts off and on before
one of them comes here. A switch of TIMED loses no lock. */
void see_switches() {
  static constinit std::mutex mutex;
  static constinit bool was_timed = false;
  const std::lock_guard<std::mutex> guard(mutex);
  const bool is_timed = global_metadata_class.m_timed;
  const bool is_of_time = std::exchange(was_timed, is_timed) != is_timed;
  if (!counts_locks())
    first_with_counts = UINT64_MAX;
  else if (first_with_counts == UINT64_MAX || !is_of_time)
    first_with_counts = Global_THD_manager::get_instance()->get_thread_id();
}

uint64_t first_session_with_counts_of_locks() { return first_with_counts; }

bool counts_memory_of(PSI_thread *thread) {
  const PFS_thread *const pfs = known(thread);
  return pfs != nullptr && flag_global_instrumentation &&
         flag_thread_instrumentation && pfs->m_enabled;
}

std::vector<Counted> counted(std::span<const char *const> only) {
  std::vector<Counted> all;
  if (!pfs_initialized) return all;
  Sums sums(only);
  PFS_connection_iterator::visit_global(true, false, true, true, false, &sums);
  for (Sum &sum : sums.all()) all.push_back(sum.counted());

  const PFS_builtin_memory_class *own;
  for (PFS_builtin_memory_key key = 1;
       (own = find_builtin_memory_class(key)) != nullptr; ++key) {
    if (!is_wanted(own->m_class, only)) continue;
    Sum sum = nothing_of(own->m_class);
    memory_monitoring_aggregate(&own->m_stat, &sum.stat);
    all.push_back(sum.counted());
  }
  return all;
}

std::vector<Held> held_at_most(PSI_thread *thread, std::span<const Counted> all,
                               std::span<const char *const> only) {
  std::vector<Held> held;
  auto *const pfs = reinterpret_cast<PFS_thread *>(thread);
  if (!pfs_initialized || pfs == nullptr) return held;
  const PFS_memory_safe_stat *const stats =
      pfs->read_instr_class_memory_stats();
  if (stats == nullptr) return held;
  const PFS_memory_class *instrument;
  for (PFS_memory_key key = 1;
       key <= all.size() && (instrument = find_memory_class(key)) != nullptr;
       ++key) {
    // A session uses few of the instruments.
    const PFS_memory_safe_stat &stat = stats[instrument->m_event_name_index];
    if (instrument->is_global() || !stat.m_used) continue;
    const Counted &everywhere = all[key - 1];
    // A plugin's instrument came after the others had been counted.
    if (everywhere.name != name_of(*instrument)) break;
    if (!is_wanted(*instrument, only)) continue;
    Sum sum = nothing_of(*instrument);
    memory_monitoring_aggregate(&stat, &sum.stat);
    held.push_back({name_of(*instrument),
                    std::min(sum.counted().bytes, everywhere.bytes)});
  }
  return held;
}

std::optional<std::string> program_name(PSI_thread *thread) {
  PFS_thread *const pfs = known(thread);
  if (pfs == nullptr) return std::nullopt;
  pfs_optimistic_state state;
  pfs->m_session_lock.begin_optimistic_lock(&state);
  const uint length = pfs->m_session_connect_attrs_length;
  const uint charset_number = pfs->m_session_connect_attrs_cs_number;
  if (length > session_connect_attrs_size_per_thread ||
      pfs->m_session_connect_attrs == nullptr)
    return std::nullopt;
  std::string attributes(pfs->m_session_connect_attrs, length);
  if (!pfs->m_session_lock.end_optimistic_lock(&state)) return std::nullopt;
  const auto found = find_attribute(attributes, "program_name");
  if (!found) return std::nullopt;
  const CHARSET_INFO *const charset = get_charset(charset_number, MYF(0));
  if (charset == nullptr) return std::nullopt;
  char name[32 * 3];
  char value[1024 * 3];
  uint name_length;
  uint value_length;
  if (!read_nth_attr(found->data(), static_cast<uint>(found->size()), charset,
                     0, name, sizeof name, &name_length, value, sizeof value,
                     &value_length))
    return std::nullopt;
  return std::string(value, value_length);
}

std::optional<sessions::Digest> current_digest(PSI_thread *thread) {
  PFS_thread *const pfs = known(thread);
  if (pfs == nullptr) return std::nullopt;
  pfs_optimistic_state state;
  pfs->m_stmt_lock.begin_optimistic_lock(&state);
  if (pfs->m_events_statements_count == 0 || pfs->m_statement_stack == nullptr)
    return std::nullopt;
  const sql_digest_storage &storage =
      pfs->m_statement_stack[0].m_digest_storage;
  if (storage.is_empty()) return std::nullopt;
  sessions::Digest digest;
  static_assert(digest.size() == DIGEST_HASH_SIZE);
  memcpy(digest.data(), storage.m_hash, digest.size());
  if (!pfs->m_stmt_lock.end_optimistic_lock(&state)) return std::nullopt;
  return digest;
}

uint64_t warnings(PSI_thread *thread) {
  PFS_thread *const pfs = known(thread);
  if (pfs == nullptr || !flag_events_statements_current) return 0;
  pfs_optimistic_state state;
  pfs->m_stmt_lock.begin_optimistic_lock(&state);
  // An idle session has the row of its last statement.
  if (pfs->m_statement_stack == nullptr || pfs->m_events_statements_count != 0)
    return 0;
  const uint64_t count = pfs->m_statement_stack[0].m_warning_count;
  return pfs->m_stmt_lock.end_optimistic_lock(&state) ? count : 0;
}

std::optional<uint64_t> memory_bytes(PSI_thread *thread) {
  const PFS_thread *const pfs = known(thread);
  if (pfs == nullptr) return std::nullopt;
  return pfs->m_session_all_memory_stat.m_total.m_size;
}

}  // namespace memdiag::perfschema

void apply_to_locks_and_note() {
  apply_to_locks();
  memdiag::perfschema::see_switches();
}

void apply_to_all_and_note() {
  apply_to_all();
  memdiag::perfschema::see_switches();
}
