/*
  Kinds of memory that come from the system and not from an allocator.

  MEMDIAG_REGION(kind, name, instrument, purpose)

  instrument  the memory instrument that such regions are added under; of
              several kinds that match, the first counts. "" matches all.

  No include guard: included with different definitions of MEMDIAG_REGION.
*/
// clang-format off
MEMDIAG_REGION(buffer_pool,     "buffer_pool",     "memory/innodb/buf_buf_pool",      "the InnoDB buffer pool: pages and their descriptors")
MEMDIAG_REGION(ddl_log,         "ddl_log",         "memory/innodb/row_log_buf",       "buffers of the row log that InnoDB's online DDL keeps")
MEMDIAG_REGION(temp_table_file, "temp_table_file", "memory/temptable/physical_disk",  "temporary tables of the TempTable engine in mapped files; their pages may be written to disk")
MEMDIAG_REGION(thread_stack,    "thread_stack",    "(stack)",                         "stacks of threads")
MEMDIAG_REGION(profile,         "profile",         "(profile)",                       "samples and stacks of the heap profiler, while it is on")
MEMDIAG_REGION(other,           "other",           "",                                "what is added under any other instrument")
// clang-format on
