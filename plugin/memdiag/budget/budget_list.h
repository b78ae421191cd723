/*
  The memory variables of the server, and the memory that each makes it take.
  budget.cc makes a row of MEMDIAG_BUDGET from each entry; a new variable needs
  an entry here and nothing else.

  A comment behind an entry names the upstream function that allocates by the
  variable, or reads it.
*/

#ifndef MEMDIAG_BUDGET_LIST_H
#define MEMDIAG_BUDGET_LIST_H

#include <cstdint>

namespace memdiag::budget {

enum class Kind : uint8_t {
  /** Allocated at its full size at once. */
  buffer,
  /** Allocated up to that size, as data need it. */
  growing,
  /** Counted in the row of another variable. */
  part,
  /** Bounds the memory of other variables; allocates nothing itself. */
  limit,
  /** The memory depends on something that no variable bounds. */
  unbounded,
  /** This version does not read it. */
  unused
};

constexpr const char *name_of(Kind kind) {
  switch (kind) {
    case Kind::buffer:
      return "buffer";
    case Kind::growing:
      return "growing";
    case Kind::part:
      return "part";
    case Kind::limit:
      return "limit";
    case Kind::unbounded:
      return "unbounded";
    case Kind::unused:
      return "unused";
  }
  return "";
}

/** The size of one. */
enum class Each : uint8_t {
  value,
  pages_with_control_blocks,
  open_table,
  definition,
  performance_schema
};

/** The number of them at one time. */
enum class Times : uint8_t {
  once,
  sessions,
  two_a_session,
  sessions_that_log,
  replication_channels,
  value
};

constexpr const char *name_of(Times times) {
  switch (times) {
    case Times::once:
      return "server";
    case Times::sessions:
      return "max_connections";
    case Times::two_a_session:
      return "2 * max_connections";
    case Times::sessions_that_log:
      return "max_connections if log_bin is ON";
    case Times::replication_channels:
      return "replication channels";
    case Times::value:
      return "the value";
  }
  return "";
}

struct Declared {
  const char *variable;
  /** A session can have a value of its own. */
  bool of_sessions = false;
  const char *unit = "bytes";
  Kind kind;
  const char *allocated_by = "";
  const char *when = "";
  Each each = Each::value;
  Times times = Times::sessions;
  bool zero_is_unlimited = false;
  /** The source of the highest use so far: an instrument, a pool, or, for
  memory that each session takes when it begins, Max_used_connections. */
  const char *instrument = nullptr;
  const char *pool = nullptr;
  bool seen_by_connections = false;
  const char *part_of = nullptr;
  const char *note = "";
};

/* Behind each entry: where upstream allocates it, or reads it. */
inline constexpr Declared declared[] = {
    // Allocated once for the server.
    {.variable = "innodb_buffer_pool_size",
     .kind = Kind::buffer,
     .allocated_by = "InnoDB: pages, and a control block for each",
     .when = "at start, and when it is resized",
     .each = Each::pages_with_control_blocks,
     .times = Times::once,
     .instrument = "memory/innodb/buf_buf_pool",
     .note = "Resident as pages are first used."},  // buf_chunk_init()
    {.variable = "innodb_log_buffer_size",
     .kind = Kind::buffer,
     .allocated_by = "InnoDB: redo log",
     .when = "at start, and when it is resized",
     .times = Times::once,
     .instrument = "memory/innodb/log_buffer_memory",
     .note = "Resident as it is first written."},  // log_allocate_buffer()
    {.variable = "innodb_ft_total_cache_size",
     .kind = Kind::growing,
     .allocated_by = "InnoDB: full-text caches of all tables",
     .when = "as documents are inserted",
     .times = Times::once,
     .pool = "fts_cache",
     .note = "InnoDB compares it every five seconds with its own count, which "
             "is less than what is allocated."},  // fts_is_sync_needed()
    {.variable = "innodb_ft_cache_size",
     .kind = Kind::part,
     .allocated_by = "InnoDB: full-text cache of a table",
     .when = "as documents are inserted",
     .part_of = "innodb_ft_total_cache_size"},  // fts_add_doc_by_id()
    {.variable = "key_buffer_size",
     .kind = Kind::buffer,
     .allocated_by = "MyISAM: the default key cache",
     .when = "at start, and when it is set",
     .times = Times::once,
     .instrument = "memory/mysys/KEY_CACHE",
     .note =
         "Key caches with other names are not counted."},  // init_key_cache()
    {.variable = "table_open_cache",
     .unit = "tables",
     .kind = Kind::growing,
     .allocated_by = "open tables: TABLE, and InnoDB's handle of it",
     .when = "per open table",
     .each = Each::open_table,
     .times = Times::value,
     .pool = "table_cache",
     .note = "BYTES_EACH is the mean of the tables that are open now. Sessions "
             "open more than this if they use more at once. Each open table "
             "loads its own triggers."},  // open_table_from_share(),
                                          // row_create_prebuilt()
    {.variable = "table_definition_cache",
     .unit = "tables",
     .kind = Kind::growing,
     .allocated_by = "definitions: TABLE_SHARE, and InnoDB's dictionary",
     .when = "per table that was opened",
     .each = Each::definition,
     .times = Times::value,
     .pool = "dictionary",
     .note = "BYTES_EACH is the mean of what is there now."},
    // alloc_table_share(), dict_mem_table_create()
    {.variable = "performance_schema",
     .unit = "",
     .kind = Kind::buffer,
     .allocated_by = "Performance Schema: all of its tables",
     .when = "at start, and as what it observes comes",
     .each = Each::performance_schema,
     .times = Times::once,
     .pool = "perfschema",
     .note = "BYTES_EACH is what it has taken by now. Tables that are sized "
             "automatically take more with more connections, tables and "
             "statements."},
    // pfs_malloc()
    {.variable = "temptable_max_ram",
     .kind = Kind::growing,
     .allocated_by = "TempTable: internal temporary tables of all sessions",
     .when = "per statement that needs one",
     .times = Times::once,
     .instrument = "memory/temptable/physical_ram"},  // temptable::Allocator
    {.variable = "temptable_max_mmap",
     .kind = Kind::growing,
     .allocated_by =
         "TempTable: in mapped files, when temptable_max_ram is used",
     .when = "per statement that needs one",
     .times = Times::once,
     .instrument = "memory/temptable/physical_disk",
     .note = "The system may write these pages to their files."},
    {.variable = "tmp_table_size",
     .of_sessions = true,
     .kind = Kind::part,
     .allocated_by = "one internal temporary table",
     .when = "per statement that needs one",
     .part_of = "temptable_max_ram",
     .note =
         "With internal_tmp_mem_storage_engine=MEMORY no variable bounds the "
         "sum of such tables."},
    {.variable = "max_heap_table_size",
     .of_sessions = true,
     .kind = Kind::unbounded,
     .allocated_by = "MEMORY: each table",
     .when = "as rows are inserted",
     .note = "The number of such tables is not bounded."},  // heap_create()
    {.variable = "replica_pending_jobs_size_max",
     .kind = Kind::growing,
     .allocated_by = "replication: events that wait for a worker",
     .when = "while a replica applies",
     .times = Times::replication_channels,
     .note = "A single event that is larger passes all the same, up to "
             "replica_max_allowed_packet."},  // append_item_to_jobs()

    // Allocated by each session, for as long as it lasts.
    {.variable = "thread_stack",
     .kind = Kind::buffer,
     .allocated_by = "threads: their stacks",
     .when = "per connection",
     .seen_by_connections = true,
     .note =
         "Resident as far as it was used. The stacks of InnoDB's and other "
         "threads of the server come on top."},  // my_thread_attr_setstacksize()
    {.variable = "thread_cache_size",
     .unit = "threads",
     .kind = Kind::part,
     .allocated_by = "threads without a connection: their stacks",
     .when = "when a connection ends",
     .part_of = "thread_stack"},  // Per_thread_connection_handler
    {.variable = "net_buffer_length",
     .of_sessions = true,
     .kind = Kind::part,
     .allocated_by = "buffers of a connection and of its results, at first",
     .when = "per connection",
     .part_of = "max_allowed_packet"},  // my_net_init(), check_connection()
    {.variable = "max_allowed_packet",
     .of_sessions = true,
     .kind = Kind::growing,
     .allocated_by = "buffers of a connection and of its results",
     .when = "per statement or row that is so large",
     .times = Times::two_a_session,
     .instrument = "memory/sql/NET::buff",
     .note = "SEEN_BY counts connection buffers only. Each value that a "
             "function makes may be as large."},  // net_realloc()
    {.variable = "max_digest_length",
     .kind = Kind::buffer,
     .allocated_by = "sessions: tokens of the statement's digest",
     .when = "per connection",
     .seen_by_connections = true},  // THD::THD()
    {.variable = "binlog_cache_size",
     .kind = Kind::buffer,
     .allocated_by = "binary log: events of a transaction",
     .when = "per connection that writes, until it ends",
     .times = Times::sessions_that_log,
     .note = "Workers of a replica have one each too."},
    // binlog_cache_mngr::init()
    {.variable = "binlog_stmt_cache_size",
     .kind = Kind::buffer,
     .allocated_by = "binary log: statements on tables without transactions",
     .when = "per connection that writes, until it ends",
     .times = Times::sessions_that_log,
     .note = "Workers of a replica have one each too."},
    {.variable = "max_binlog_cache_size",
     .kind = Kind::limit,
     .allocated_by = "binary log: what goes beyond the cache is in a file"},
    {.variable = "max_binlog_stmt_cache_size",
     .kind = Kind::limit,
     .allocated_by = "binary log: what goes beyond the cache is in a file"},
    {.variable = "stored_program_cache",
     .unit = "programs",
     .kind = Kind::unbounded,
     .allocated_by = "sessions: stored programs that they called",
     .when = "per call of a new one",
     .note =
         "The memory of a program depends on its length."},  // sp_cache_insert()
    {.variable = "max_prepared_stmt_count",
     .unit = "statements",
     .kind = Kind::unbounded,
     .allocated_by = "sessions: prepared statements, of all sessions together",
     .when = "per PREPARE",
     .note = "The memory of a statement depends on its length."},

    // Allocated by statements.
    {.variable = "sort_buffer_size",
     .of_sessions = true,
     .kind = Kind::growing,
     .allocated_by = "sorting: keys, with rows or references to them",
     .when = "per sort",
     .instrument = "memory/sql/Filesort_buffer::sort_keys",
     .note = "Counted once for each session. Window functions and subqueries "
             "may have more."},
    // filesort(): Filesort_buffer
    {.variable = "join_buffer_size",
     .of_sessions = true,
     .kind = Kind::growing,
     .allocated_by = "joining: hash tables, and rows for batched key access",
     .when = "per join",
     .instrument = "memory/sql/hashed_operation",
     .note = "Counted once for each session. A statement has one for each join "
             "without a fitting index."},  // HashJoinIterator, BKAIterator
    {.variable = "set_operations_buffer_size",
     .of_sessions = true,
     .kind = Kind::growing,
     .allocated_by = "INTERSECT and EXCEPT: hash tables",
     .when = "per set operation",
     .note = "Counted once for each session."},  // MaterializeIterator
    {.variable = "read_buffer_size",
     .of_sessions = true,
     .kind = Kind::buffer,
     .allocated_by = "buffered reading of files that names no size: CHECK of "
                     "MyISAM tables",
     .when = "per statement",
     .note = "In this version only the value at the server's start has an "
             "effect. Neither SET GLOBAL nor SET SESSION has one."},
    // my_default_record_cache_size
    {.variable = "read_rnd_buffer_size",
     .of_sessions = true,
     .kind = Kind::buffer,
     .allocated_by = "multi-range reads: row references to sort",
     .when = "per range scan that uses it",
     .instrument = "memory/sql/IndexRangeScanIterator::mrr_buf_desc",
     .note = "Counted once for each session."},  // IndexRangeScanIterator
    {.variable = "range_optimizer_max_mem_size",
     .of_sessions = true,
     .kind = Kind::growing,
     .allocated_by = "range optimizer: ranges, partitions",
     .when = "per table of a statement",
     .zero_is_unlimited = true,
     .instrument = "memory/sql/test_quick_select",
     .note = "Counted once for each session."},  // set_max_capacity()
    {.variable = "range_alloc_block_size",
     .of_sessions = true,
     .kind = Kind::part,
     .allocated_by = "range optimizer: its first block",
     .when = "per table of a statement",
     .part_of = "range_optimizer_max_mem_size"},
    {.variable = "group_concat_max_len",
     .of_sessions = true,
     .kind = Kind::growing,
     .allocated_by = "GROUP_CONCAT(): its result",
     .when = "per call in a statement",
     .note = "Counted once for each session."},  // Item_func_group_concat
    {.variable = "query_alloc_block_size",
     .of_sessions = true,
     .kind = Kind::unbounded,
     .allocated_by = "statements: blocks for parsing and executing",
     .when = "per statement",
     .note =
         "A statement takes as many as it needs, each larger than the one "
         "before. connection_memory_limit bounds them."},  // THD::main_mem_root
    {.variable = "query_prealloc_size",
     .of_sessions = true,
     .kind = Kind::unused},
    {.variable = "transaction_alloc_block_size",
     .of_sessions = true,
     .kind = Kind::unbounded,
     .allocated_by = "transactions: blocks for savepoints and changed tables",
     .when = "per transaction",
     .note = "A transaction takes as many as it needs."},  // Transaction_ctx
    {.variable = "transaction_prealloc_size",
     .of_sessions = true,
     .kind = Kind::unused},
    {.variable = "parser_max_mem_size",
     .of_sessions = true,
     .kind = Kind::growing,
     .allocated_by = "parsing",
     .when = "per statement"},  // MEM_ROOT::set_max_capacity()
    {.variable = "histogram_generation_max_mem_size",
     .of_sessions = true,
     .kind = Kind::growing,
     .allocated_by = "histograms: sampled values",
     .when = "per ANALYZE TABLE ... UPDATE HISTOGRAM",
     .instrument = "memory/sql/histograms"},
    {.variable = "optimizer_trace_max_mem_size",
     .of_sessions = true,
     .kind = Kind::growing,
     .allocated_by = "traces of the optimizer",
     .when = "per statement that is traced"},
    {.variable = "select_into_buffer_size",
     .of_sessions = true,
     .kind = Kind::buffer,
     .allocated_by = "SELECT INTO OUTFILE and DUMPFILE",
     .when = "per statement"},  // create_file()
    {.variable = "bulk_insert_buffer_size",
     .of_sessions = true,
     .kind = Kind::growing,
     .allocated_by = "MyISAM: keys of many rows",
     .when = "per INSERT ... SELECT, INSERT of many rows, LOAD DATA",
     .instrument = "memory/myisam/MI_INFO::bulk_insert"},
    // mi_init_bulk_insert()
    {.variable = "myisam_sort_buffer_size",
     .of_sessions = true,
     .kind = Kind::growing,
     .allocated_by = "MyISAM: keys of an index",
     .when = "per REPAIR TABLE, CREATE INDEX, ALTER TABLE"},
    {.variable = "preload_buffer_size",
     .of_sessions = true,
     .kind = Kind::buffer,
     .allocated_by = "MyISAM: blocks of an index",
     .when = "per LOAD INDEX INTO CACHE",
     .instrument = "memory/myisam/preload_buffer"},  // mi_preload()
    {.variable = "innodb_ddl_buffer_size",
     .of_sessions = true,
     .kind = Kind::growing,
     .allocated_by = "InnoDB: keys of indexes that are built, in all threads",
     .when = "per ALTER TABLE, CREATE INDEX",
     .instrument = "memory/innodb/ddl"},  // ddl::Context::scan_buffer_size()
    {.variable = "innodb_sort_buffer_size",
     .kind = Kind::growing,
     .allocated_by = "InnoDB: changes to a table while it is altered online",
     .when = "per table or index that is built",
     .times = Times::two_a_session,
     .instrument = "memory/innodb/row_log_buf",
     .note = "A block that is written and one that is read, counted once for "
             "each session."},
    // row_log_block_allocate()
    {.variable = "innodb_online_alter_log_max_size",
     .kind = Kind::limit,
     .allocated_by = "InnoDB: a file; in memory is innodb_sort_buffer_size"},
    // row_log_online_op()
    {.variable = "innodb_ft_result_cache_limit",
     .kind = Kind::growing,
     .allocated_by = "InnoDB: documents and rankings of a full-text query",
     .when = "per full-text query",
     .pool = "fts_query",
     .note = "By InnoDB's own count. This server refuses no query that stock "
             "would run."},
    // fts_query()

    // Limits of other variables' memory.
    {.variable = "connection_memory_limit",
     .of_sessions = true,
     .kind = Kind::limit,
     .allocated_by = "a session: what its statements take of instruments that "
                     "are collected",
     .note = "Does not bound sessions with CONNECTION_ADMIN."},
    // Thd_mem_cnt::alloc_cnt()
    {.variable = "global_connection_memory_limit",
     .kind = Kind::limit,
     .allocated_by = "all sessions together",
     .note = "Bounds them while global_connection_memory_tracking is ON."},
    {.variable = "innodb_open_files",
     .unit = "files",
     .kind = Kind::limit,
     .allocated_by =
         "descriptors; InnoDB's objects of files are there whether or "
         "not they are open"},
    {.variable = "open_files_limit",
     .unit = "files",
     .kind = Kind::limit,
     .allocated_by = "descriptors, which take the kernel's memory"},
};

}  // namespace memdiag::budget

#endif  // MEMDIAG_BUDGET_LIST_H
