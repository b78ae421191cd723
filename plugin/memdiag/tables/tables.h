/*
  Every INFORMATION_SCHEMA table of this plugin, in one list: the plugins, their
  field definitions and the reference page come from here.

  A table is <name>_table, the spec in <name>_table.h, and an overload of
  add_rows() in server/tables/table_rows.cc that makes its rows.

  At most 64 tables: a statement has a bit for each (base/read_group.h).
*/

#ifndef MEMDIAG_TABLES_H
#define MEMDIAG_TABLES_H

#include "plugin/memdiag/tables/advice_table.h"
#include "plugin/memdiag/tables/allocator_table.h"
#include "plugin/memdiag/tables/arenas_table.h"
#include "plugin/memdiag/tables/budget_table.h"
#include "plugin/memdiag/tables/ceiling_table.h"
#include "plugin/memdiag/tables/digests_table.h"
#include "plugin/memdiag/tables/history_pools_table.h"
#include "plugin/memdiag/tables/history_table.h"
#include "plugin/memdiag/tables/host_table.h"
#include "plugin/memdiag/tables/innodb_table.h"
#include "plugin/memdiag/tables/instruments_table.h"
#include "plugin/memdiag/tables/last_run_profile_table.h"
#include "plugin/memdiag/tables/ledger_table.h"
#include "plugin/memdiag/tables/mutexes_table.h"
#include "plugin/memdiag/tables/pinned_table.h"
#include "plugin/memdiag/tables/pools_table.h"
#include "plugin/memdiag/tables/profile_history_table.h"
#include "plugin/memdiag/tables/profile_table.h"
#include "plugin/memdiag/tables/purges_table.h"
#include "plugin/memdiag/tables/regions_table.h"
#include "plugin/memdiag/tables/routes_table.h"
#include "plugin/memdiag/tables/samples_table.h"
#include "plugin/memdiag/tables/sessions_table.h"
#include "plugin/memdiag/tables/size_classes_table.h"
#include "plugin/memdiag/tables/stacks_table.h"
#include "plugin/memdiag/tables/summary_table.h"
#include "plugin/memdiag/tables/survivors_table.h"

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
  TABLE(mutexes)                       \
  TABLE(routes)                        \
  TABLE(samples)                       \
  TABLE(stacks)                        \
  TABLE(regions)

#define MEMDIAG_TABLES(TABLE)    \
  MEMDIAG_EVERYDAY_TABLES(TABLE) \
  MEMDIAG_INTERNAL_TABLES(TABLE)

#endif  // MEMDIAG_TABLES_H
