/*
  The advisor: findings about the server's memory, each with the figures that
  prove it and the statement or command that remedies it.

  A pure function from a situation to findings: tests use literal situations.
  An unknown figure proves nothing and makes no finding. The rules are in
  *_rules.cc, with each threshold and its reason.

  Threads: any. Units: bytes, seconds.
*/

#ifndef MEMDIAG_ADVISOR_H
#define MEMDIAG_ADVISOR_H

#include <vector>

#include "plugin/memdiag/advice/finding.h"

namespace memdiag::advisor {

/** The most severe first. @throws std::bad_alloc */
std::vector<Finding> findings(const Situation &situation);

/** A finding depends on value_tables and csv_tables, which take a look at each
definition in the table cache. */
bool asks_for_tables(const Situation &situation);

}  // namespace memdiag::advisor

#endif  // MEMDIAG_ADVISOR_H
