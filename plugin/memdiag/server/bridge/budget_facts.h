/*
  Collector: the facts that the budget is made from, asked of the running
  server.

  For sessions: the server's variables are read as for them. Takes the locks
  that SHOW VARIABLES takes, one variable at a time. The list of replication
  channels is not read while another thread changes it.

  Errors: what cannot be read is missing in the facts, and named.
*/

#ifndef MEMDIAG_BUDGET_FACTS_H
#define MEMDIAG_BUDGET_FACTS_H

#include <span>
#include <vector>

#include "mysys/memdiag/routes/routes.h"
#include "plugin/memdiag/advice/holdings.h"
#include "plugin/memdiag/budget/budget.h"
#include "storage/innobase/memdiag/innodb.h"

namespace memdiag::budget {

/** All but the peaks of instruments.
@param routes      as routes::all() has them
@param components  as innodb::components() has them
@param unreadable  gets the names of what could not be read
@throws std::bad_alloc */
Facts take_facts(std::span<const routes::Row> routes,
                 std::span<const innodb::Component> components,
                 std::vector<const char *> *unreadable);

/** What table caches and sessions' temporary tables have; 0: not known. While
others use InnoDB's dictionary, the last figures that could be read.
@param components  as innodb::components() has them */
advisor::Tables tables(std::span<const innodb::Component> components);

/** Most clients at one time since the server started, or since the last FLUSH
STATUS. */
uint64_t max_used_connections();

/** How long ago that was. */
uint64_t max_used_connections_seconds();

}  // namespace memdiag::budget

#endif  // MEMDIAG_BUDGET_FACTS_H
