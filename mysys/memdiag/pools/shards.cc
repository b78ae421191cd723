#include "mysys/memdiag/pools/shards.h"

namespace memdiag::pools {

constinit Pool_state states[pool_count];

}  // namespace memdiag::pools
