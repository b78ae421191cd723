/* Values of the server's variables: policies, the target of the ceiling. */

#include "mysys/memdiag/purging/policies.h"
#include "plugin/memdiag/ceiling/target.h"
#include "plugin/memdiag/unittest/fuzz/fuzz.h"

using memdiag::Policy;
using memdiag_test::require;
namespace ceiling = memdiag::ceiling;
namespace policies = memdiag::policies;

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  const std::string_view text = memdiag_test::text_of(bytes, size);
  for (size_t i = 0; i < memdiag::policy_count; ++i) {
    const auto policy = static_cast<Policy>(i);
    const std::string fault = policies::check(policy, text);
    // The others would set jemalloc's times, which takes long.
    if (policy != Policy::quiet_ms && policy != Policy::dirty_limit) continue;
    require(policies::set(policy, text) == fault);
    for (size_t pool = 0; pool < memdiag::pool_count; ++pool)
      require(policies::get(policy, static_cast<memdiag::Pool>(pool)) >= 0);
  }
  if (const auto target = ceiling::parse_target(text))
    require(target->mode == ceiling::Target::bytes
                ? target->target_bytes >= ceiling::least_target_bytes
                : target->target_bytes == 0);
  return 0;
}
