/*
  Every pool of this server, in one list. Enum, names, policies and the rows of
  INFORMATION_SCHEMA.MEMDIAG_POOLS come from here.

  MEMDIAG_POOL(id, lifetime, quiet_ms, dirty_decay_ms, muzzy_decay_ms, purpose)

  lifetime        what ends the life of a block: server, cache, session,
                  transaction or statement.
  quiet_ms        how long no block may have come or gone before the pool's
                  unused pages are given back at once; 0: never, decay alone
                  does it. Half a second bridges the gaps between the queries
                  of a burst and leaves room to meet "given back within two
                  seconds".
  dirty_decay_ms  how long unused pages stay while the pool never falls quiet.
                  Long for a pool that is purged when quiet: to give pages back
                  in the midst of a burst and take them again costs more than
                  it saves (docs/architecture.md has the figures).
  muzzy_decay_ms  0: pages go back at once (MADV_DONTNEED). MADV_FREE would
                  leave them in RSS, where the OOM killer counts them.

  `general` is the process's malloc(): jemalloc's automatic arenas. Its decay
  is set by the options in memdiag_malloc_conf.cc.

  No include guard: included with different definitions of MEMDIAG_POOL.
*/
// clang-format off
MEMDIAG_POOL(general,   "server",      0,    -2,    -2, "everything that has no pool of its own")
MEMDIAG_POOL(fts_query, "statement", 500, 10000,     0, "InnoDB full-text queries: heaps, matches, rankings")
// clang-format on
