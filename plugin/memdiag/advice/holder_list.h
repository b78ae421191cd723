/*
  Holders of memory, the share that each usually has, and what gives it back:
  the one list of the advice, of the summary and of the client, whose copy
  `memdiag_reference --holders` makes (client/memdiag/judge/holders.json).

  A share is a percentage of the resident memory outside the buffer pool. 10%
  is large. Some holders have more on a small server that works well: open
  tables and the dictionary 20%, Performance Schema 40% with its defaults.

  This server knows what is live in a pool. Where a holder has a pool of its
  own, it has all of it that no instrument of another holder has, and its
  instruments serve to find its sessions. Stock has instruments alone; the list
  has stock's as well, and those that this server does not have are of no bytes
  here.

  A statement frees what the holder has. It is not one that merely shows more,
  and none enters the binary log: on a replica it would be an errant
  transaction. So LOCAL, where the server logs a statement without it.

  Constants and pure functions. Threads: any. Units: percent, bytes.
*/

#ifndef MEMDIAG_HOLDER_LIST_H
#define MEMDIAG_HOLDER_LIST_H

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "mysys/memdiag/pools/pools.h"

namespace memdiag::advisor {

/** A few values in a constant. */
template <typename T, size_t most>
class Few {
 public:
  constexpr Few(std::initializer_list<T> values) {
    for (const T &value : values) m_values[m_size++] = value;
  }
  constexpr const T *begin() const { return m_values.data(); }
  constexpr const T *end() const { return m_values.data() + m_size; }
  constexpr bool empty() const { return m_size == 0; }

 private:
  std::array<T, most> m_values{};
  size_t m_size{0};
};

/** How what a holder has ends. */
enum class End : uint8_t {
  /** With the statement that the list names, or by what the remedy says. */
  statement,
  /** With sessions, which may be idle. */
  sessions,
  /** With statements that run. */
  queries,
  /** With DDL, which is not ended: it would begin again from the start. */
  ddl,
  /** With either. */
  sessions_or_queries,
  /** With transactions. */
  transactions,
  /** With threads that send the binary log. */
  binlog_dump,
  /** With sessions, by the number of their temporary tables. */
  temporary_tables
};

struct Holder {
  /** Stable: clients and alerts may compare it. */
  const char *name;
  /** Beginnings of the names of instruments, and of places (route_list.h). The
  longest that fits counts. */
  Few<std::string_view, 7> instruments;
  Few<Pool, 1> pools;
  unsigned usual_percent;
  End end;
  const char *verb;
  /** What it is, for the evidence. */
  const char *what;
  /** What helps for good, or where a statement does not; no SQL to run as it
  stands. */
  const char *remedy;
  /** For End::statement: `%` stands for half the variable's value. nullptr:
  the remedy is all. */
  const char *statement{nullptr};
  /** The variable of `%`. */
  const char *variable{nullptr};
  /** The server makes a lower value of it this one. */
  uint64_t least{1};
  /** It has so much with default settings: no reason to act. */
  uint64_t usual_bytes{0};
  /** Values of expressions. Open tables keep those of their own: generated
  columns, defaults, constraints, triggers. Performance Schema counts them for
  the session that computed them, and KILL of it frees none. */
  bool of_expressions{false};

  /** The memory ends with sessions, or with what they run. */
  constexpr bool of_sessions() const {
    return end != End::statement && end != End::binlog_dump;
  }
  /** A statement of ours lists what to end. */
  constexpr bool is_ended() const {
    return end != End::statement && end != End::ddl;
  }
};

inline constexpr const char *flush_tables = "FLUSH LOCAL TABLES";

/** InnoDB keeps a definition when its table is closed, until it has more than
the variable allows. It looks once in a second or, on a busy server, a minute.
*/
inline constexpr const char *drop_definitions =
    "SELECT 'FLUSH LOCAL TABLES' AS RUN UNION ALL SELECT 'SET GLOBAL "
    "table_definition_cache = %'";

/** Writes out full-text caches. Without the variable OPTIMIZE would rebuild
the table. It waits for transactions that have read the table, and new
statements on the table wait for it, so it does not wait for long. The last rows
restore the variables. */
inline constexpr char write_full_text_caches[] =
    "SELECT 'SET SESSION lock_wait_timeout = 5' AS RUN UNION ALL "
    "SELECT 'SET GLOBAL innodb_optimize_fulltext_only = ON' UNION ALL "
    "SELECT DISTINCT CONCAT('OPTIMIZE LOCAL TABLE `', REPLACE(TABLE_SCHEMA, "
    "'`', '``'), '`.`', REPLACE(TABLE_NAME, '`', '``'), '`') FROM "
    "information_schema.STATISTICS JOIN information_schema.TABLES USING "
    "(TABLE_SCHEMA, TABLE_NAME) WHERE INDEX_TYPE = 'FULLTEXT' AND ENGINE = "
    "'InnoDB' UNION ALL SELECT CONCAT('SET GLOBAL "
    "innodb_optimize_fulltext_only = ', @@innodb_optimize_fulltext_only) UNION "
    "ALL SELECT CONCAT('SET SESSION lock_wait_timeout = ', "
    "@@lock_wait_timeout)";

inline constexpr auto holders = std::to_array<Holder>({
    {"prepared statements",
     // Stock has the second, in small letters.
     {"memory/sql/Prepared_statement", "memory/sql/prepared_statement"},
     {},
     10,
     End::sessions,
     "hold",
     "statements that sessions prepared and did not close",
     // A lower max_prepared_stmt_count would only refuse new ones.
     "have the application close its statements"},
    {"stored programs",
     {"memory/sql/sp_head::main_mem_root", "memory/sql/THD::sp_cache"},
     {},
     10,
     End::sessions,
     "hold",
     "each session keeps the stored programs that it called",
     // A lower one frees nothing until each session runs its next statement.
     "let sessions end that are idle for long; a lower stored_program_cache "
     "bounds the programs of a session from its next call on"},
    {"triggers",
     // Of memory/sql/sp_head::main_mem_root: what programs of triggers have.
     {},
     {},
     10,
     End::statement,
     "hold",
     "each open table has its own copy of its triggers' programs",
     "lower table_open_cache or table_open_cache_instances to bound them",
     flush_tables},
    {"open tables",
     {"memory/sql/TABLE", "mem_heap/row0mysql", "memory/innodb/row0mysql",
      "memory/innodb/ha_inno", "memory/sql/Partition",
      "memory/innodb/partitioning", "memory/innodb/row0sel"},
     {},
     20,
     End::statement,
     "hold",
     "the table cache keeps tables open for the next statement",
     "lower table_open_cache or table_open_cache_instances to bound them",
     flush_tables},
    {"metadata locks",
     {"memory/mysys/lf_"},
     {},
     10,
     End::statement,
     "hold",
     "locks of names: tables of transactions, LOCK TABLES, and GET_LOCK",
     "performance_schema.metadata_locks shows which session has most: take "
     "fewer names at one time; what was taken serves later locks, until a "
     "restart"},
    {"dictionary cache",
     {"memory/sql/dd::", "memory/innodb/dict", "memory/innodb/mem0mem/dict",
      "mem_heap/dictionary"},
     {Pool::dictionary},
     20,
     End::statement,
     "holds",
     "definitions of tables, views, stored programs and other objects",
     "a lower table_definition_cache bounds it: definitions that no open table "
     "uses go, and are read again when they are needed",
     drop_definitions,
     "table_definition_cache",
     400},
    {"user temporary tables",
     // Told from open tables and their definitions (holdings.cc).
     {},
     {},
     10,
     End::temporary_tables,
     "hold",
     "CREATE TEMPORARY TABLE keeps a table open until its session drops it or "
     "ends; FLUSH closes none",
     "have the application drop its temporary tables"},
    {"accounts and privileges",
     {"memory/sql/sql_acl_", "memory/sql/acl_"},
     {},
     10,
     End::statement,
     "hold",
     "accounts, grants and roles are always in memory",
     "drop accounts and grants that are not used: roles take less than grants "
     "of each account"},
    {"binary log caches",
     {"memory/sql/binlog", "memory/sql/Row_data_memory",
      // Stock counts the buffers of all its files there, also those of sorts,
      // which are small.
      "memory/mysys/IO_CACHE"},
     {},
     10,
     // Performance Schema does not count them by session, so no statement can
     // list the sessions that have them.
     End::statement,
     "hold",
     "changes of transactions, and caches that sessions keep after them",
     "commit large transactions in parts, or end the session that has one, "
     "which rolls it back; an idle session that has committed keeps its cache "
     "until it ends: let the application's pool keep fewer; binlog_cache_size "
     "is for each session, and new sessions get a lower value"},
    {"replication events",
     {"memory/sql/Log_event", "binlog_event_rows", "memory/sql/rpl"},
     {},
     10,
     End::statement,
     "hold",
     "events that wait for the workers of a replica",
     // The applier reads the variable when it starts.
     "lower replica_pending_jobs_size_max, then restart the SQL thread of the "
     "replica; SHOW REPLICA STATUS shows how far it is behind"},
    {"GTID sets",
     {"memory/sql/Gtid"},
     {},
     10,
     End::statement,
     "hold",
     "each gap in gtid_executed, and in other sets of GTIDs, is an interval "
     "more",
     "have replicas commit in order (replica_preserve_commit_order), and fill "
     "gaps that stay with empty transactions; SELECT @@global.gtid_executed "
     "shows them"},
    {"binary log dump threads",
     // Of memory/sql/String::value: what these threads have of it.
     {},
     {},
     10,
     End::binlog_dump,
     "hold",
     "each replica's thread keeps a buffer as large as the largest event that "
     "it sent",
     "KILL frees it; a replica that is there connects again by itself and goes "
     "on where it was, and mysqlbinlog does not, which STATEMENT leaves out"},
    {"temporary tables",
     {"temptable", "memory/temptable/"},
     {},
     10,
     End::sessions_or_queries,
     "hold",
     "internal temporary tables of statements that run, and of cursors that "
     "clients have open",
     // Those that are there stay where they are.
     "lower temptable_max_ram, which lets new ones go to disk earlier"},
    {"MEMORY tables",
     {"memory/memory/"},
     {},
     10,
     End::statement,
     "hold",
     "tables with ENGINE=MEMORY stay until they are dropped",
     "move the largest to InnoDB, which keeps the rows; SHOW TABLE STATUS "
     "WHERE Engine = 'MEMORY' lists those of a schema, but no temporary ones, "
     "which end with their session: memory/memory/HP_PTRS in "
     "performance_schema.memory_summary_by_thread_by_event_name shows who "
     "inserted most"},
    {"user variables",
     {"memory/sql/user_var_entry"},
     {},
     10,
     End::sessions,
     "hold",
     "values that sessions put into @variables stay until the session ends",
     "have the application set its variables to NULL"},
    {"sort buffers",
     {"memory/sql/Filesort", "memory/sql/Unique",
      "memory/sql/TABLE::sort_io_cache"},
     {},
     10,
     End::queries,
     "hold",
     "statements that sort",
     "lower sort_buffer_size"},
    {"join buffers",
     {"memory/sql/JOIN_CACHE", "memory/sql/hashed_operation",
      "memory/sql/hash_join"},
     {},
     10,
     End::queries,
     "hold",
     "statements that join without an index",
     "lower join_buffer_size, or add the index"},
    {"network buffers",
     {"memory/sql/NET::"},
     {},
     10,
     // A session that waits for a statement gives its buffer back by itself.
     End::sessions_or_queries,
     "hold",
     "a statement that runs keeps the buffer of the packet that it came in",
     "have the application send smaller packets, or lower max_allowed_packet"},
    {"read buffers",
     {"memory/sql/READ_", "memory/sql/IndexRangeScanIterator"},
     {},
     10,
     End::queries,
     "hold",
     "statements that read rows in order of their keys",
     "lower read_rnd_buffer_size"},
    {"sets of DISTINCT",
     {"memory/mysys/TREE"},
     {},
     10,
     End::queries,
     "hold",
     "COUNT(DISTINCT), GROUP_CONCAT(DISTINCT) and GROUP_CONCAT(ORDER BY)",
     "lower tmp_table_size, which bounds those of COUNT(DISTINCT), or "
     "group_concat_max_len"},
    {"strings",
     {"memory/sql/String::value"},
     {},
     10,
     // The advice has End::sessions, where idle ones keep most.
     End::queries,
     "hold",
     "results of functions and of GROUP_CONCAT, parameters, large columns; an "
     "idle session keeps those of its prepared statements and of programs that "
     "it called, and its optimizer traces",
     "lower group_concat_max_len, max_allowed_packet or "
     "optimizer_trace_max_mem_size; have the application close its prepared "
     "statements",
     nullptr,
     nullptr,
     1,
     0,
     true},
    {"running statements",
     {"memory/sql/THD::main_mem_root", "memory/sql/test_quick_select",
      "memory/sql/sp_head::execute_mem_root",
      "memory/sql/sp_head::call_mem_root", "memory/sql/Blob_mem_storage",
      "memory/sql/bison_stack", "memory/sql/THD::transactions"},
     {Pool::statement},
     10,
     End::queries,
     "hold",
     "parsing, optimizing and executing",
     "see the statements that run: SHOW FULL PROCESSLIST"},
    {"JSON and containers",
     {"memory/sql/JSON"},
     {Pool::connection},
     10,
     End::queries,
     "hold",
     "JSON documents and containers of statements and of their variables",
     "see the statements that run: SHOW FULL PROCESSLIST",
     nullptr,
     nullptr,
     1,
     0,
     true},
    {"rows with large values",
     {"mem_heap/row"},
     {},
     10,
     End::statement,
     "hold",
     "BLOB, TEXT and JSON values of rows that statements read or write",
     // Performance Schema counts all heaps of InnoDB as one, so no statement
     // can list the sessions that have them. One that has most is named.
     "SHOW FULL PROCESSLIST shows statements that run, and HANDLER keeps those "
     "that it read until it is closed; read fewer such columns, or parts of "
     "their values"},
    {"uncounted memory",
     // Told from what instruments count (holdings.cc). Without a key are
     // warnings: their session is not known.
     {"(without key)"},
     {},
     10,
     End::statement,
     "holds",
     "blocks of malloc() that no instrument counts: of plugins, components, "
     "loadable functions and libraries, containers of statements, privileges "
     "of active roles, which FLUSH PRIVILEGES frees once their sessions have "
     "ended, and warnings (max_error_count), which a session keeps until its "
     "next statement",
     "no table tells whose they are; the profiler (memdiag_profile) names the "
     "code: MEMDIAG_STACKS; see what is loaded: SHOW PLUGINS, and the tables "
     "component and func of schema mysql"},
    {"mappings of plugins",
     {},
     {},
     10,
     End::statement,
     "hold",
     "pages that plugins, components, loadable functions or libraries took "
     "from the kernel by themselves",
     "the kernel does not tell whose they are: see what is loaded: SHOW "
     "PLUGINS, and the tables component and func of schema mysql; pmap -x "
     "shows the mappings"},
    {"mapped files",
     {},
     {},
     10,
     End::statement,
     "hold",
     "pages of files that plugins, components, loadable functions or libraries "
     "have mapped; the kernel drops them when it needs room",
     "pmap -x shows which files"},
    {"transactions, locks",
     {"memory/innodb/trx0", "memory/innodb/lock_sys", "memory/innodb/read0read",
      "memory/innodb/trx_sys_t"},
     {Pool::transaction},
     10,
     End::transactions,
     "hold",
     "locks of rows and other data of transactions that are open",
     "commit in smaller parts; the end of a session rolls its transaction "
     "back"},
    {"online DDL",
     {"memory/innodb/ddl", "memory/innodb/row_log_buf"},
     {Pool::ddl},
     10,
     End::ddl,
     "holds",
     "indexes that are built, and changes meanwhile",
     "it goes when the DDL ends, which KILL would only make begin again; for "
     "the next, lower innodb_ddl_buffer_size"},
    {"full-text queries",
     {"memory/innodb/fts0que"},
     {Pool::fts_query},
     10,
     End::statement,
     "hold",
     "documents and rankings of full-text searches",
     // Performance Schema counts all heaps of InnoDB as one, so no statement
     // can list the searches.
     "they go when the searches end: SHOW FULL PROCESSLIST shows MATCH ... "
     "AGAINST, and KILL QUERY ends it; with a lower "
     "innodb_ft_result_cache_limit later searches that pass it end with an "
     "error"},
    {"full-text caches",
     {"memory/innodb/fts0fts", "memory/innodb/fts0ast"},
     {Pool::fts_cache},
     10,
     End::statement,
     "hold",
     "words that are not yet written to full-text indexes",
     "OPTIMIZE LOCAL TABLE writes them, and rebuilds the whole table while "
     "innodb_optimize_fulltext_only is OFF; it waits for transactions that "
     "have used the table (in STATEMENT for 5 s at most), and statements on "
     "the table wait meanwhile; while STATEMENT has that variable ON, others "
     "cannot rebuild a table so either: set it back if its last rows do not "
     "run; innodb_ft_total_cache_size bounds them from the next start",
     write_full_text_caches},
    {"MyISAM key cache",
     {"memory/mysys/KEY_CACHE"},
     {},
     10,
     End::statement,
     "holds",
     "index blocks of MyISAM tables",
     "make it smaller",
     "SET GLOBAL key_buffer_size = %",
     "key_buffer_size"},
    {"redo log buffer",
     {"memory/innodb/log_buffer_memory"},
     {},
     10,
     End::statement,
     "holds",
     "changes on their way to the redo log; once they have passed through all "
     "of it, all of it is resident",
     "make it smaller; while more than that waits to be written, the error log "
     "has 'Failed to change size of the log buffer', and the statement may be "
     "run again",
     "SET GLOBAL innodb_log_buffer_size = %",
     "innodb_log_buffer_size",
     256 << 10,
     // The default is 64 MiB.
     128 << 20},
    {"group replication",
     {"memory/group_rpl/"},
     {Pool::group_replication},
     10,
     End::statement,
     "holds",
     "its cache of messages, and rows that certification keeps until each "
     "member has applied them",
     "lower group_replication_message_cache_size, which bounds the cache; see "
     "which member lags in performance_schema.replication_group_member_stats"},
    {"Performance Schema",
     {"memory/performance_schema/", "performance_schema"},
     {Pool::perfschema},
     40,
     End::statement,
     "holds",
     "Performance Schema's own tables",
     // Switched off, it would take the digests along, and with them what a
     // statement is known by.
     "lower performance_schema_max_* and performance_schema_*_size, which need "
     "a restart"},
});

inline constexpr size_t holder_count = holders.size();

/** KILL frees what a session took from the pool. It does not free a cache that
the session has filled, nor the server's own memory. What malloc() serves is of
either kind, and is taken to be the session's. */
inline bool ends_with_session(Pool pool) {
  return uses_malloc(pool) || !outlives_clients(pool);
}

/** The same for an instrument. Rows of MEMORY tables stay when their session
ends, although they lie in the pool of temporary tables. */
inline bool ends_with_session(std::string_view instrument, Pool pool) {
  return ends_with_session(pool) && !instrument.starts_with("memory/memory/");
}

/** FLUSH LOCAL TABLES frees what it has. */
inline bool is_flushed(const Holder &holder) {
  return holder.statement != nullptr &&
         std::string_view{holder.statement} == flush_tables;
}

/** For the remedy of a statement that lists KILL. */
inline constexpr const char *drops_temporary_tables =
    "; KILL drops a session's temporary tables with their rows";

/** Its statement closes tables, at least. */
inline bool closes_tables(const Holder &holder) {
  return holder.statement != nullptr &&
         std::string_view{holder.statement}.find(flush_tables) !=
             std::string_view::npos;
}

/** Its statement changes tables. */
inline bool writes_tables(const Holder &holder) {
  return holder.statement == write_full_text_caches;
}

/** @return nullptr: there is none of that name */
const Holder *find_holder(std::string_view name);

/** A stable name for the rule that judges a holder: its name in small letters
and underscores. */
std::string rule_of(const Holder &holder);

/** The statement that frees what the holder has. One with a column RUN has the
statements to run in its rows: it asks for the sessions when it is run, and
names those that have at least half as much as the largest. It leaves out its
own session, those that hold less than 64 KiB of it, DDL, replication, memdiag's
and those of exporters and backups.
@param value  the variable's, where the statement has one
@return empty: there is none, or its variable is unknown or cannot be half
@throws std::bad_alloc */
std::optional<std::string> statement_of(const Holder &holder,
                                        std::optional<uint64_t> value);

/** The one that ends the sessions, the statements or the transactions that have
the memory. "": it ends with none. @throws std::bad_alloc */
std::string ending_statement(const Holder &holder);

/** For the remedy: which sessions that statement names, which of them it leaves
out for what their end would lose, and what else goes.
@throws std::bad_alloc */
std::string words_of_ending(const Holder &holder);

/** Ends the sessions of clients that have been idle for a minute. It has a
column RUN, too, and leaves out transactions and those who keep locks as
well. A session whose last statement Performance Schema did not time is left,
and one that has run none.
@throws std::bad_alloc */
std::string end_idle_sessions();

/** Ends idle sessions whose last statement left many warnings: a session keeps
them until its next statement. @throws std::bad_alloc */
std::string end_sessions_with_warnings();

/** The same as end_idle_sessions() for one session, however long it has been
idle. */
std::string end_session(uint64_t processlist_id);

/** Ends the statement that a session runs; the session, where its client does
not read what it answers. It has a column RUN, too. @throws std::bad_alloc */
std::string end_query(uint64_t processlist_id);

/** The list as the client has it. It judges by itself which session may end, so
the statements that list them are not in it. @throws std::bad_alloc */
std::string holders_json();

}  // namespace memdiag::advisor

#endif  // MEMDIAG_HOLDER_LIST_H
