/*
  What the advisor judges by, put together from what the collectors say. A pure
  function of that.
*/

#ifndef MEMDIAG_SITUATION_H
#define MEMDIAG_SITUATION_H

#include <span>

#include "plugin/memdiag/advice/advisor.h"
#include "plugin/memdiag/allocator/allocator_snapshot.h"
#include "plugin/memdiag/history/black_box.h"
#include "plugin/memdiag/advice/budget.h"
#include "plugin/memdiag/host/host.h"
#include "mysys/memdiag/accounting/scopes.h"

namespace memdiag::advisor {

/** @param samples    of this run, oldest first: trends are of the last quarter
                      of an hour
@param survivors  what is counted of them
@throws std::bad_alloc */
Situation make_situation(const Snapshot &snapshot, const host::Figures &host,
                         std::span<const budget::Row> budget,
                         std::span<const black_box::Sample> samples,
                         std::span<const scopes::Row> survivors);

}  // namespace memdiag::advisor

#endif  // MEMDIAG_SITUATION_H
