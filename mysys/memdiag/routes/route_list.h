/*
  Which pool an allocation comes from, in one list.

  MEMDIAG_PLACE(id, name, pool)  a place with a hook of its own
  MEMDIAG_ROUTE(prefix, pool)    memory instruments whose name begins so; the
                                 longest prefix counts
  MEMDIAG_LARGE(prefix, pool)    the same, but only blocks larger than 16 KB
                                 (large_block)
  MEMDIAG_LARGE_PLACE(id, name, pool, size)
                                 a place, but only blocks larger than that

  A route that no line names stays in Pool::general, which is malloc(). Small
  blocks that come and go by the thousand with every statement are fastest
  there: with all of memory/sql/JSON in a pool, JSON_SET() takes a third more
  time. Only single large blocks make such statements large. The same is true of
  the heaps that InnoDB makes for each row it looks at: a foreign key makes
  seven for a row that it deletes, and takes 2% longer if they are in a pool. A
  heap that grows takes larger blocks.

  No include guard: included with different definitions of the macros;
  those for large blocks need not be defined.
*/
#ifndef MEMDIAG_LARGE_PLACE
#define MEMDIAG_LARGE_PLACE(id, name, pool, size) MEMDIAG_PLACE(id, name, pool)
#endif
#ifndef MEMDIAG_LARGE
#define MEMDIAG_LARGE(prefix, pool)
#endif
// clang-format off
MEMDIAG_PLACE(none,             "(none)",                     general)
MEMDIAG_LARGE_PLACE(without_key, "(without key)",             statement, large_block)
MEMDIAG_PLACE(perfschema,       "performance_schema",         perfschema)
MEMDIAG_PLACE(innodb_without_key, "innodb/(without key)",     innodb)
MEMDIAG_PLACE(temptable,        "temptable",                  temp_table)
MEMDIAG_PLACE(rows,             "binlog_event_rows",          binlog)
MEMDIAG_PLACE(heap_fts_query,   "mem_heap/fts0que",           fts_query)
MEMDIAG_PLACE(heap_fts,         "mem_heap/fts",               fts_cache)
MEMDIAG_PLACE(heap_dictionary,  "mem_heap/dictionary",        dictionary)
MEMDIAG_PLACE(heap_ddl,         "mem_heap/ddl",               ddl)
MEMDIAG_PLACE(heap_prebuilt,    "mem_heap/row0mysql",         table_cache)
MEMDIAG_LARGE_PLACE(heap_row,   "mem_heap/row",               transaction, large_heap_block)
MEMDIAG_PLACE(heap_transaction, "mem_heap/transaction",       transaction)
MEMDIAG_LARGE_PLACE(heap_other, "mem_heap/other",             transaction, large_heap_block)

MEMDIAG_ROUTE("memory/innodb/",                       innodb)
MEMDIAG_ROUTE("memory/innodb/fts",                    fts_cache)
MEMDIAG_ROUTE("memory/innodb/fts0que",                fts_query)
MEMDIAG_ROUTE("memory/innodb/ut0rbt",                 fts_cache) // no other has trees
MEMDIAG_ROUTE("memory/innodb/dict",                   dictionary)
MEMDIAG_ROUTE("memory/innodb/ddl",                    ddl)
MEMDIAG_ROUTE("memory/innodb/row_log_buf",            ddl)
MEMDIAG_ROUTE("memory/innodb/row0log",                ddl)
MEMDIAG_ROUTE("memory/innodb/btr0load",               ddl)
MEMDIAG_ROUTE("memory/innodb/btr0mtib",               ddl)
MEMDIAG_ROUTE("memory/innodb/handler0alter",          ddl)
MEMDIAG_ROUTE("memory/innodb/ha_inno",                table_cache)
MEMDIAG_ROUTE("memory/innodb/row0mysql",              table_cache)
MEMDIAG_ROUTE("memory/innodb/row0sel",                table_cache)
MEMDIAG_ROUTE("memory/innodb/partitioning",           table_cache)
MEMDIAG_ROUTE("memory/innodb/btr0pcur",               transaction)
MEMDIAG_ROUTE("memory/innodb/lock",                   transaction)
MEMDIAG_ROUTE("memory/innodb/que0que",                transaction)
MEMDIAG_ROUTE("memory/innodb/read0read",              transaction)
MEMDIAG_ROUTE("memory/innodb/trx",                    transaction)
MEMDIAG_ROUTE("memory/innodb/undo",                   transaction)

MEMDIAG_ROUTE("memory/sql/dd::",                      dictionary)
MEMDIAG_ROUTE("memory/sql/sql_acl_",                  dictionary)
MEMDIAG_ROUTE("memory/sql/acl_",                      dictionary)
MEMDIAG_ROUTE("memory/sql/TABLE",                     table_cache)
MEMDIAG_ROUTE("memory/sql/Partition",                 table_cache)
MEMDIAG_ROUTE("memory/sql/sp_head::main_mem_root",    table_cache)
MEMDIAG_ROUTE("memory/sql/THD::sp_cache",             table_cache)
MEMDIAG_ROUTE("memory/sql/THD::main_mem_root",        statement)
MEMDIAG_ROUTE("memory/sql/sp_head::",                 statement)
MEMDIAG_ROUTE("memory/sql/test_quick_select",         statement)
MEMDIAG_ROUTE("memory/sql/Blob_mem_storage",          statement)
MEMDIAG_ROUTE("memory/sql/bison_stack",               statement)
MEMDIAG_ROUTE("memory/sql/THD::transactions",         statement)
MEMDIAG_ROUTE("memory/sql/Prepared_statement",        session)
MEMDIAG_ROUTE("memory/sql/Filesort",                  session)
MEMDIAG_ROUTE("memory/sql/TABLE::sort_io_cache",      session)
MEMDIAG_ROUTE("memory/sql/Unique",                    session)
MEMDIAG_ROUTE("memory/sql/JOIN_CACHE",                session)
MEMDIAG_ROUTE("memory/sql/hashed_operation",          session)
MEMDIAG_ROUTE("memory/sql/READ_",                     session)
MEMDIAG_ROUTE("memory/sql/IndexRangeScanIterator",    session)
MEMDIAG_ROUTE("memory/sql/NET::",                     session)
MEMDIAG_ROUTE("memory/sql/user_var_entry",            session)
MEMDIAG_ROUTE("memory/sql/User_level_lock",           session)
MEMDIAG_ROUTE("memory/mysys/IO_CACHE",                session)
MEMDIAG_ROUTE("memory/sql/Log_event",                 binlog)
MEMDIAG_ROUTE("memory/sql/binlog",                    binlog)
MEMDIAG_ROUTE("memory/sql/Row_data_memory",           binlog)
MEMDIAG_ROUTE("memory/sql/Gtid",                      binlog)
// Certification keeps one for each transaction: threads of group replication
// take them from malloc(), which is their pool.
MEMDIAG_ROUTE("memory/sql/Gtid_set::Interval_chunk",  general)
MEMDIAG_ROUTE("memory/sql/rpl",                       binlog)
MEMDIAG_ROUTE("memory/sql/HASH_ROW_ENTRY",            binlog)
MEMDIAG_ROUTE("memory/memory/",                       temp_table)
MEMDIAG_ROUTE("memory/myisam/",                       table_cache)
MEMDIAG_ROUTE("memory/mysys/KEY_CACHE",               table_cache)
MEMDIAG_ROUTE("memory/mysys/lf_",                     table_cache) // metadata locks
MEMDIAG_ROUTE("memory/mysys/TREE",                    session)
MEMDIAG_ROUTE("memory/sql/THD::",                     session)
MEMDIAG_ROUTE("memory/sql/log_sink_pfs",              perfschema)
MEMDIAG_ROUTE("memory/vio/",                          session)

MEMDIAG_LARGE("memory/client/",                       session)
MEMDIAG_LARGE("memory/mysqld_openssl/",               session)
MEMDIAG_LARGE("memory/mysys/DYNAMIC_STRING",          session)
MEMDIAG_LARGE("memory/mysys/my_compress_alloc",       session)
MEMDIAG_LARGE("memory/sql/Geometry::",                statement)
MEMDIAG_LARGE("memory/sql/JSON",                      statement)
MEMDIAG_LARGE("memory/sql/String::value",             session)
#undef MEMDIAG_LARGE
#undef MEMDIAG_LARGE_PLACE
// clang-format on
