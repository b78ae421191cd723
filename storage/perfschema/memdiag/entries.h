/*
  Which entry of Performance Schema's arrays of memory statistics and of
  statements' statistics an instrument has (patches/diets/0038).

  Each thread has such arrays, 34 and 54 KB, and each entry is written by its
  first event. Upstream gives the entries away in the order of registration, so
  the few dozens of instruments that serve sessions are spread over all pages of
  the array. Here these instruments have the first entries.

  Plain C++ without any header of the server or of this layer. Threads: several
  may register at the same time. The first instrument of a server (number 0) is
  registered before any other.
*/

#ifndef MEMDIAG_PFS_ENTRIES_H
#define MEMDIAG_PFS_ENTRIES_H

#include <atomic>
#include <cstddef>
#include <iterator>
#include <string_view>

namespace memdiag {

/** Connecting, queries, changes, prepared statements and stored programs
allocate from these instruments. Any entry serves the others. */
inline constexpr std::string_view memory_of_sessions[] = {
    "memory/sql/THD::main_mem_root",
    "memory/sql/THD::variables",
    "memory/sql/THD::db",
    "memory/sql/THD::Session_tracker",
    "memory/sql/THD::Session_sysvar_resource_manager",
    "memory/sql/THD::handler_tables_hash",
    "memory/sql/THD::sp_cache",
    "memory/sql/THD::transactions::mem_root",
    "memory/sql/NET::buff",
    "memory/sql/String::value",
    "memory/sql/MPVIO_EXT::auth_info",
    "memory/sql/Rpl_thd_context",
    "memory/sql/MYSQL_LOCK",
    "memory/sql/MDL_context::acquire_locks",
    "memory/sql/User_level_lock",
    "memory/sql/user_var_entry",
    "memory/sql/Prepared_statement::infrastructure",
    "memory/sql/Prepared_statement::main_mem_root",
    "memory/sql/sp_head::main_mem_root",
    "memory/sql/sp_head::execute_mem_root",
    "memory/sql/sp_head::call_mem_root",
    "memory/sql/test_quick_select",
    "memory/sql/TABLE::sort_io_cache",
    "memory/sql/Filesort_buffer::sort_keys",
    "memory/sql/Filesort_info::record_pointers",
    "memory/sql/JOIN_CACHE",
    "memory/sql/JSON",
    "memory/sql/Log_event",
    "memory/sql/bison_stack",
    "memory/sql/dd::infrastructure",
    "memory/sql/dd::objects",
    "memory/sql/dd::String_type",
    "memory/mysys/IO_CACHE",
    "memory/mysys/array_buffer",
    "memory/mysqld_openssl/openssl_malloc",
    "memory/refcache/reference_cache_mem",
    "memory/temptable/physical_ram",
    "memory/vio/vio",
    "memory/innodb/memory",
    "memory/innodb/ha_innodb",
    "memory/innodb/mem0mem",
    "memory/innodb/row0sel",
    "memory/innodb/btr0pcur",
};

/** Pools of connections send these, programs contain them. A page has 16. By
default only the first of the programs' is counted. */
inline constexpr std::string_view statements_of_sessions[] = {
    "statement/sql/select",
    "statement/sql/begin",
    "statement/sql/commit",
    "statement/sql/rollback",
    "statement/sql/set_option",
    "statement/sql/insert",
    "statement/sql/update",
    "statement/sql/delete",
    "statement/com/Prepare",
    "statement/com/Execute",
    "statement/com/Close stmt",
    "statement/com/Reset stmt",
    "statement/com/Init DB",
    "statement/com/Ping",
    "statement/com/Reset Connection",
    "statement/com/Quit",
    "statement/sql/call_procedure",
    "statement/sp/stmt",
    "statement/sql/insert_select",
    "statement/sql/replace",
    "statement/sql/change_db",
    "statement/sql/show_variables",
    "statement/sql/show_status",
    "statement/sql/show_warnings",
    "statement/sql/prepare_sql",
    "statement/sql/execute_sql",
    "statement/sql/dealloc_sql",
    "statement/sql/savepoint",
    "statement/sql/release_savepoint",
    "statement/sql/rollback_to_savepoint",
    "statement/sql/lock_tables",
    "statement/sql/unlock_tables",
    "statement/sql/error",
    "statement/sp/set",
    "statement/sp/set_trigger_field",
    "statement/sp/jump",
    "statement/sp/jump_if_not",
    "statement/sp/freturn",
    "statement/sp/hpush_jump",
    "statement/sp/hpop",
    "statement/sp/hreturn",
    "statement/sp/cpush",
    "statement/sp/copen",
    "statement/sp/cfetch",
    "statement/sp/cclose",
    "statement/sp/cpop",
};

/** The entries that instruments have in an array.
@tparam names  of the instruments that have the first ones */
template <const auto &names>
class Entries {
 public:
  /** Of performance_schema_max_memory_classes, and more than there are kinds of
  statements. */
  static constexpr unsigned most = 1024;
  static constexpr unsigned of_sessions = std::size(names);

  /** @param number   of instruments that were registered before
      @param name     the instrument's
      @param entries  of the array; more than `number`
      @return an entry that no other instrument has */
  unsigned take(unsigned number, std::string_view name, unsigned entries) {
    if (entries > most || entries <= of_sessions) return number;
    if (number == 0) clear();
    for (unsigned entry = 0; entry < of_sessions; ++entry)
      if (name == names[entry] && takes(entry)) return entry;
    for (unsigned entry = of_sessions; entry < entries; ++entry)
      if (takes(entry)) return entry;
    for (unsigned entry = of_sessions; entry-- > 0;)
      if (takes(entry)) return entry;
    return number;  // Not reached: there is an entry for each instrument.
  }

 private:
  void clear() {
    for (auto &taken : m_taken) taken = false;
  }
  bool takes(unsigned entry) { return !m_taken[entry].exchange(true); }

  std::atomic<bool> m_taken[most]{};
};

inline Entries<memory_of_sessions> memory_entries;
inline Entries<statements_of_sessions> statement_entries;

}  // namespace memdiag

#endif  // MEMDIAG_PFS_ENTRIES_H
