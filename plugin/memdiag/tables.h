/*
  Every INFORMATION_SCHEMA table of this plugin, in one list: the plugins, their
  field definitions and the reference page come from here.

  A table is <name>_table, the spec in <name>_table.h, and an overload of rows()
  in information_schema.cc that gets its rows.
*/

#ifndef MEMDIAG_TABLES_H
#define MEMDIAG_TABLES_H

#include "advice_table.h"
#include "allocator_table.h"
#include "arenas_table.h"
#include "bins_table.h"
#include "budget_table.h"
#include "digests_table.h"
#include "extents_table.h"
#include "history_pools_table.h"
#include "history_table.h"
#include "host_table.h"
#include "innodb_table.h"
#include "instruments_table.h"
#include "large_table.h"
#include "last_run_table.h"
#include "ledger_table.h"
#include "mutexes_table.h"
#include "pools_table.h"
#include "purges_table.h"
#include "regions_table.h"
#include "routes_table.h"
#include "sessions_table.h"
#include "survivors_table.h"

#define MEMDIAG_TABLES(TABLE) \
  TABLE(advice)               \
  TABLE(ledger)               \
  TABLE(ledger_exact)         \
  TABLE(allocator)            \
  TABLE(pools)                \
  TABLE(arenas)               \
  TABLE(bins)                 \
  TABLE(large)                \
  TABLE(extents)              \
  TABLE(mutexes)              \
  TABLE(routes)               \
  TABLE(instruments)          \
  TABLE(survivors)            \
  TABLE(sessions)             \
  TABLE(digests)              \
  TABLE(regions)              \
  TABLE(innodb)               \
  TABLE(budget)               \
  TABLE(host)                 \
  TABLE(purges)               \
  TABLE(history)              \
  TABLE(history_pools)        \
  TABLE(last_run)

#endif  // MEMDIAG_TABLES_H
