#include "mysys/memdiag/pools/pool.h"

#include <strings.h>

namespace memdiag {

std::optional<Pool> find_pool(std::string_view name) {
  for (size_t i = 0; i < pool_count; ++i) {
    const std::string_view candidate = pool_specs[i].name;
    if (candidate.size() == name.size() &&
        strncasecmp(candidate.data(), name.data(), name.size()) == 0)
      return static_cast<Pool>(i);
  }
  return std::nullopt;
}

}  // namespace memdiag
