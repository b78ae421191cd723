/*
  Every INFORMATION_SCHEMA table of this plugin, in one list: the plugins, their
  field definitions and the reference page come from here.

  A table is <name>_table, a spec, and an overload of add_rows() in
  server/tables/table_rows.cc that makes its rows.

  At most 64 tables: a statement has a bit for each (base/read_group.h).

  Specs are constants, which live for ever. Threads: any. Errors: columns that
  do not agree with the fingerprint of their table do not compile.
*/

#ifndef MEMDIAG_TABLES_H
#define MEMDIAG_TABLES_H

#include "plugin/memdiag/tables/action_tables.h"
#include "plugin/memdiag/tables/advice_tables.h"
#include "plugin/memdiag/tables/allocator_tables.h"
#include "plugin/memdiag/tables/history_tables.h"
#include "plugin/memdiag/tables/profile_tables.h"
#include "plugin/memdiag/tables/session_tables.h"
#include "plugin/memdiag/tables/usage_tables.h"

/** Tables for people who run servers. */
#define MEMDIAG_EVERYDAY_TABLES(TABLE) \
  TABLE(summary)                       \
  TABLE(advice)                        \
  TABLE(ledger)                        \
  TABLE(pools)                         \
  TABLE(instruments)                   \
  TABLE(innodb)                        \
  TABLE(sessions)                      \
  TABLE(digests)                       \
  TABLE(survivors)                     \
  TABLE(budget)                        \
  TABLE(host)                          \
  TABLE(purges)                        \
  TABLE(ceiling)                       \
  TABLE(profile)                       \
  TABLE(pinned)                        \
  TABLE(history)                       \
  TABLE(history_pools)                 \
  TABLE(last_run_profile)              \
  TABLE(profile_history)

/** Tables that show the allocator's and this plugin's insides. */
#define MEMDIAG_INTERNAL_TABLES(TABLE) \
  TABLE(ledger_exact)                  \
  TABLE(allocator)                     \
  TABLE(arenas)                        \
  TABLE(size_classes)                  \
  TABLE(routes)                        \
  TABLE(samples)                       \
  TABLE(stacks)                        \
  TABLE(regions)

#define MEMDIAG_TABLES(TABLE)    \
  MEMDIAG_EVERYDAY_TABLES(TABLE) \
  MEMDIAG_INTERNAL_TABLES(TABLE)

namespace memdiag {

#define CHECK(name)                                                       \
  static_assert(fingerprint_of(name##_table) == name##_table.fingerprint, \
                "columns of " #name                                       \
                " changed: raise the table's version, then set "          \
                "this fingerprint in its spec");
MEMDIAG_TABLES(CHECK)
#undef CHECK

}  // namespace memdiag

#endif  // MEMDIAG_TABLES_H
