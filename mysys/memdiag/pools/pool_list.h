/*
  Every pool of this server, in one list. Enum, names, policies and the rows of
  INFORMATION_SCHEMA.MEMDIAG_POOLS come from here.

  MEMDIAG_POOL(id, lifetime, arenas, cached_max, quiet_ms, dirty_decay_ms,
               muzzy_decay_ms, purpose)

  lifetime        The end of a block's life: server, cache, session, transaction
                  or statement.
  arenas          The most arenas that the pool may have. Each CPU has a shard
                  of the pool, and shards share arenas where there are more of
                  them. An arena takes about 130 KB for itself. Too few make
                  threads wait for each other: each block that no cache holds
                  takes locks of its arena.
  cached_max      Blocks up to this size go through a cache of their CPU's shard
                  (an explicit tcache, 25 KB each), which makes small blocks as
                  cheap as malloc()'s. 0: none. jemalloc counts blocks that wait
                  in a cache as allocated. The purger drops caches that are
                  hardly used, and the others in turn.
  quiet_ms        The pool's unused pages are given back at once when hardly
                  any block came or went for so long. 0: never, decay alone
                  gives them back. Half a second bridges the gaps between the
                  queries of a burst, and the pages are still back within two
                  seconds.
  dirty_decay_ms  Unused pages stay so long while the pool never falls quiet.
                  Long for a pool that is purged when quiet: to give pages back
                  in the midst of a burst and take them again costs more than
                  it saves (mysys/memdiag/README.md has the figures). Short for
                  temp_table: monitoring alone, which reads through temporary
                  tables, keeps it from falling quiet.
  muzzy_decay_ms  0: pages go back at once (MADV_DONTNEED). MADV_FREE would
                  leave them in RSS, where the OOM killer counts them.

  `general` is the process's malloc(): jemalloc's automatic arenas. The options
  in mysys/memdiag/jemalloc/malloc_conf.cc set its decay times (-2 here).
  `connection` is malloc() too, at malloc()'s cost: threads that serve clients
  are bound to its arenas. It holds their small, hot blocks that have no key,
  such as the nodes of JSON documents. `group_replication` is the same for the
  threads of that plugin. Its busy ones are three: XCom's, the one that
  certifies, and the one that collects what needs no certification any more.

  No include guard: included with different definitions of MEMDIAG_POOL.
*/
// clang-format off
MEMDIAG_POOL(general,     "server",       0,     0,    0,    -2, -2, "everything that has no pool of its own")
MEMDIAG_POOL(connection,  "session",     64,     0,    0,    -2, -2, "what threads of connections take from malloc(): JSON documents, containers")
MEMDIAG_POOL(group_replication, "server", 4,  0,    0,    -2, -2, "what threads of group replication take from malloc(): certification, messages")
MEMDIAG_POOL(fts_query,   "statement",   64,     0,  500, 10000,  0, "InnoDB full-text queries: heaps, matches, rankings")
MEMDIAG_POOL(fts_cache,   "cache",        8,  4096,  500, 10000,  0, "InnoDB full-text caches, and writing and optimizing them")
MEMDIAG_POOL(dictionary,  "cache",        4, 16384,  500, 10000,  0, "data dictionary: the server's and InnoDB's objects")
MEMDIAG_POOL(table_cache, "cache",        8, 32768,  500, 10000,  0, "open tables and their definitions, triggers, stored programs, prefetched rows")
MEMDIAG_POOL(statement,   "statement",   16, 32768,  500, 10000,  0, "parsing, optimizing and executing: memory roots, range optimizer")
MEMDIAG_POOL(session,     "session",     16, 32768,  500, 10000,  0, "sort, join, read and network buffers, prepared statements, user variables")
MEMDIAG_POOL(temp_table,  "statement",    8, 32768,  500,  1000,  0, "temporary tables in memory (TempTable), and tables of the MEMORY engine")
MEMDIAG_POOL(binlog,      "transaction",  8, 32768,  500, 10000,  0, "binary and relay log: caches, events, GTIDs, appliers")
MEMDIAG_POOL(ddl,         "statement",    8,     0,  500, 10000,  0, "InnoDB online DDL: sort buffers, row log, bulk load")
MEMDIAG_POOL(transaction, "transaction", 16, 32768,  500, 10000,  0, "InnoDB transactions, locks, undo, query graphs, work on rows")
MEMDIAG_POOL(perfschema,  "server",       1,     0,    0,  1000,  0, "Performance Schema's own memory")
MEMDIAG_POOL(innodb,      "server",       4,  4096,  500, 10000,  0, "InnoDB otherwise: buffer-pool bookkeeping, adaptive hash index, files, log")
// clang-format on
