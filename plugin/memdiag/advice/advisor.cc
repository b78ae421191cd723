#include "plugin/memdiag/advice/advisor.h"

#include <algorithm>

#include "plugin/memdiag/advice/holder_list.h"
#include "plugin/memdiag/advice/rules.h"

namespace memdiag::advisor {

std::vector<Finding> findings(const Situation &situation) {
  std::vector<Finding> found;
  judge_pools(situation, &found);
  // First of its severity: the server is slow now, no matter who holds the
  // memory.
  judge_swap(situation, &found);
  judge_holders(situation, &found);
  judge_limits(situation, &found);
  judge_configuration(situation, &found);
  judge_ceiling(situation, &found);
  judge_host(situation, &found);
  std::stable_sort(found.begin(), found.end(),
                   [](const Finding &a, const Finding &b) {
                     return a.severity > b.severity;
                   });
  return found;
}

bool asks_for_tables(const Situation &situation) {
  const std::vector<Finding> all = findings(situation);
  return std::any_of(all.begin(), all.end(), [](const Finding &found) {
    return found.holder && find_holder(*found.holder)->of_expressions;
  });
}

}  // namespace memdiag::advisor
