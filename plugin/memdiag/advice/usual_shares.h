/*
  Holders that a statement can lower, and the share of memory that each usually
  has. The summary names a holder that has more than that.

  A share is a percentage of the resident memory outside the buffer pool. 10%
  is the part that the advisor calls large (large_part in advisor.cc). Open
  tables, the dictionary and Performance Schema have more on a small server
  that works well, so theirs are higher.
*/

#ifndef MEMDIAG_USUAL_SHARES_H
#define MEMDIAG_USUAL_SHARES_H

#include <array>
#include <string_view>

namespace memdiag::summary {

struct Holder {
  const char *name;
  /** The parts of the holder: beginnings of instruments' names, or "pool:" and
  the name of a pool for all of that pool. */
  std::array<std::string_view, 3> parts;
  unsigned usual_percent;
  /** The memory ends with the session: KILL frees it. */
  bool of_sessions;
  /** The statement that lowers it, or shows what to end. `%` stands for half
  the variable's value. None enters the binary log: on a replica it would be an
  errant transaction. So LOCAL, where the server logs a statement without it. */
  const char *statement;
  /** The variable of `%`; nullptr: the statement has none. */
  const char *variable{nullptr};
};

inline constexpr auto holders = std::to_array<Holder>({
    {"prepared statements",
     {"memory/sql/Prepared_statement"},
     10,
     true,
     // A lower max_prepared_stmt_count would only refuse new ones.
     "SELECT * FROM information_schema.memdiag_advice"},
    {"stored programs",
     {"memory/sql/sp_head::main_mem_root", "memory/sql/THD::sp_cache"},
     10,
     false,
     "SET GLOBAL stored_program_cache = %",
     "stored_program_cache"},
    {"open tables",
     {"memory/sql/TABLE", "mem_heap/row0mysql", "memory/innodb/row0mysql"},
     20,
     false,
     "FLUSH LOCAL TABLES"},
    {"dictionary cache",
     {"pool:dictionary"},
     20,
     false,
     "SET GLOBAL table_definition_cache = %",
     "table_definition_cache"},
    {"binary log caches",
     {"memory/sql/binlog", "memory/sql/Row_data_memory"},
     10,
     true,
     "SET GLOBAL binlog_cache_size = <less>"},
    {"replication events",
     {"memory/sql/Log_event", "binlog_event_rows", "memory/sql/rpl"},
     10,
     false,
     // replica_pending_jobs_size_max bounds what waits for the workers.
     "SHOW REPLICA STATUS"},
    {"temporary tables",
     {"temptable", "memory/temptable/"},
     10,
     true,
     "SET GLOBAL temptable_max_ram = %",
     "temptable_max_ram"},
    {"MEMORY tables",
     {"memory/memory/"},
     10,
     false,
     "SHOW TABLE STATUS WHERE Engine = 'MEMORY'"},
    {"user variables",
     {"memory/sql/user_var_entry"},
     10,
     true,
     "SET @<each large one> = NULL"},
    {"sort buffers",
     {"memory/sql/Filesort", "memory/sql/Unique"},
     10,
     true,
     "SET GLOBAL sort_buffer_size = <less>"},
    {"join buffers",
     {"memory/sql/JOIN_CACHE", "memory/sql/hashed_operation"},
     10,
     true,
     "SET GLOBAL join_buffer_size = <less>"},
    {"network buffers", {"memory/sql/NET::"}, 10, true, "SHOW PROCESSLIST"},
    {"read buffers",
     {"memory/sql/READ_", "memory/sql/IndexRangeScanIterator"},
     10,
     true,
     "SET GLOBAL read_rnd_buffer_size = <less>"},
    {"running statements", {"pool:statement"}, 10, true, "SHOW PROCESSLIST"},
    {"JSON and containers", {"pool:connection"}, 10, true, "SHOW PROCESSLIST"},
    {"transactions, locks",
     {"pool:transaction"},
     10,
     true,
     "SELECT * FROM information_schema.innodb_trx"},
    {"online DDL", {"pool:ddl"}, 10, true, "SHOW PROCESSLIST"},
    {"full-text queries",
     {"pool:fts_query"},
     10,
     true,
     "SET GLOBAL innodb_ft_result_cache_limit = <less>"},
    {"full-text caches",
     {"pool:fts_cache"},
     10,
     false,
     // OPTIMIZE LOCAL TABLE then writes them, as summary.cc says. Without the
     // variable it would rebuild the table.
     "SET GLOBAL innodb_optimize_fulltext_only = ON"},
    {"adaptive hash index",
     {"memory/innodb/adaptive hash index"},
     10,
     false,
     "SET GLOBAL innodb_adaptive_hash_index = OFF"},
    {"MyISAM key cache",
     {"memory/mysys/KEY_CACHE"},
     10,
     false,
     "SET GLOBAL key_buffer_size = %",
     "key_buffer_size"},
    {"Performance Schema",
     {"pool:perfschema"},
     40,
     false,
     "SET PERSIST_ONLY performance_schema = OFF"},
});

/** Shown instead of "stored programs" where open tables own the programs. */
inline constexpr Holder triggers = {
    "triggers", {"memory/sql/sp_head::main_mem_root"}, 10,
    false,      "SET GLOBAL table_open_cache = %",     "table_open_cache"};

}  // namespace memdiag::summary

#endif  // MEMDIAG_USUAL_SHARES_H
