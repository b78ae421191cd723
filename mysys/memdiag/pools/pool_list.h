/*
  Every pool of this server, in one list. Enum, names, policies and the rows of
  INFORMATION_SCHEMA.MEMDIAG_POOLS come from here.

  MEMDIAG_POOL(id, lifetime, shards, cached_max, quiet_ms, dirty_decay_ms,
               muzzy_decay_ms, purpose)

  lifetime        what ends the life of a block: server, cache, session,
                  transaction or statement.
  shards          how many arenas it may have at most: each CPU that uses the
                  pool takes one, and CPUs share them where there are more. An
                  arena takes about 130 KB for itself; too few make threads wait
                  for each other.
  cached_max      blocks up to this size go through a cache of their CPU's shard
                  (an explicit tcache, 25 KB each), which makes small blocks as
                  cheap as malloc()'s; 0: none. What waits in a cache counts as
                  live until the pool is purged.
  quiet_ms        how long no block may have come or gone before the pool's
                  unused pages are given back at once; 0: never, decay alone
                  does it. Half a second bridges the gaps between the queries
                  of a burst and leaves room to meet "given back within two
                  seconds".
  dirty_decay_ms  how long unused pages stay while the pool never falls quiet.
                  Long for a pool that is purged when quiet: to give pages back
                  in the midst of a burst and take them again costs more than
                  it saves (docs/architecture.md has the figures). Short for
                  temp_table: monitoring alone, which reads through temporary
                  tables, keeps it from falling quiet.
  muzzy_decay_ms  0: pages go back at once (MADV_DONTNEED). MADV_FREE would
                  leave them in RSS, where the OOM killer counts them.

  `general` is the process's malloc(): jemalloc's automatic arenas. Its decay
  is set by the options in mysys/memdiag/jemalloc/malloc_conf.cc (-2 here).
  `connection` is malloc() too, at malloc()'s cost: threads that serve clients
  are bound to its arenas. What is small, hot and has no key, such as the nodes
  of JSON documents, is told apart by who takes it.

  No include guard: included with different definitions of MEMDIAG_POOL.
*/
// clang-format off
MEMDIAG_POOL(general,     "server",       0,     0,    0,    -2, -2, "everything that has no pool of its own")
MEMDIAG_POOL(connection,  "session",     64,     0,    0,    -2, -2, "what threads of connections take without a key: JSON documents, containers")
MEMDIAG_POOL(fts_query,   "statement",   64,     0,  500, 10000,  0, "InnoDB full-text queries: heaps, matches, rankings")
MEMDIAG_POOL(fts_cache,   "cache",        8,  4096,  500, 10000,  0, "InnoDB full-text caches, and writing and optimizing them")
MEMDIAG_POOL(dictionary,  "cache",        4, 16384,  500, 10000,  0, "data dictionary: the server's and InnoDB's objects")
MEMDIAG_POOL(table_cache, "cache",        8, 32768,  500, 10000,  0, "open tables and their definitions, triggers, stored programs, prefetched rows")
MEMDIAG_POOL(statement,   "statement",   64, 32768,  500, 10000,  0, "parsing, optimizing and executing: memory roots, range optimizer")
MEMDIAG_POOL(session,     "session",     64, 32768,  500, 10000,  0, "sort, join, read and network buffers, prepared statements, user variables")
MEMDIAG_POOL(temp_table,  "statement",    8, 32768,  500,  1000,  0, "temporary tables in memory (TempTable), and tables of the MEMORY engine")
MEMDIAG_POOL(binlog,      "transaction",  8, 32768,  500, 10000,  0, "binary and relay log: caches, events, GTIDs, appliers")
MEMDIAG_POOL(ddl,         "statement",    8,     0,  500, 10000,  0, "InnoDB online DDL: sort buffers, row log, bulk load")
MEMDIAG_POOL(transaction, "transaction", 64, 32768,  500, 10000,  0, "InnoDB transactions, locks, undo, query graphs, work on rows")
MEMDIAG_POOL(perfschema,  "server",       1,     0,    0,  1000,  0, "Performance Schema's own memory")
MEMDIAG_POOL(innodb,      "server",       4,  4096,  500, 10000,  0, "InnoDB otherwise: buffer-pool bookkeeping, adaptive hash index, files, log")
// clang-format on
