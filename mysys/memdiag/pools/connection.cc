#include "mysys/memdiag/pools/connection.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "mysys/memdiag/jemalloc/mallctl.h"
#include "mysys/memdiag/pools/arenas.h"

namespace memdiag::pools {

void bind_thread_to_connection() noexcept {
  constexpr Pool pool = Pool::connection;
  // Where malloc() is not jemalloc's, nothing would come from the arena.
  if (!mallctl::serves_malloc()) return;
  // In turn, as many as can run at once: threads come and go, and where a new
  // one happens to run says nothing.
  static const auto cpus =
      static_cast<unsigned>(std::max(sysconf(_SC_NPROCESSORS_ONLN), 1L));
  static constinit std::atomic<unsigned> bound{0};
  const unsigned shard = bound.fetch_add(1, std::memory_order_relaxed) %
                         std::min(cpus, spec_of(pool).shards);
  int arena = arena_of_shard(pool, shard);
  if (arena < 0) arena = make_arena(pool, shard);
  if (arena >= 0)
    (void)mallctl::write<Ctl::thread_arena>(static_cast<unsigned>(arena));
}

}  // namespace memdiag::pools
