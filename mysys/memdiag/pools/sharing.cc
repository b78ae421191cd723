#include "mysys/memdiag/pools/sharing.h"

#include <atomic>

#include "mysys/memdiag/pools/shards.h"

namespace memdiag::pools {
namespace {

constinit std::atomic<bool> one_arena{true};

}  // namespace

// A thread that has just found the shared arena may store it into its shard
// afterwards. The shard then keeps it.
void share_one_arena(bool share) noexcept {
  one_arena.store(share);
  for (Pool_state &state : states)
    for (Shard &shard : state.shards)
      // Most shards were never used, and their pages are not to be written.
      if (shard.arena.load() != no_arena) shard.arena.store(no_arena);
}

bool shares_one_arena() noexcept {
  return one_arena.load(std::memory_order_relaxed);
}

}  // namespace memdiag::pools
