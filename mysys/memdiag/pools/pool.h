/*
  The pools by name, and what pool_list.h declares of each. Types and constants
  only: every room above uses them, and nothing here calls anything.
*/

#ifndef MEMDIAG_POOL_H
#define MEMDIAG_POOL_H

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace memdiag {

enum class Pool : uint8_t {
#define MEMDIAG_POOL(id, lifetime, arenas, cached_max, quiet_ms, dirty_ms, \
                     muzzy_ms, purpose)                                    \
  id,
#include "mysys/memdiag/pools/pool_list.h"
#undef MEMDIAG_POOL
  count
};
constexpr size_t pool_count = static_cast<size_t>(Pool::count);

/** One entry of pool_list.h, which explains the members. A decay time of -2
means: as jemalloc's options say; -1 is jemalloc's "never". */
struct Pool_spec {
  const char *name;
  const char *lifetime;
  unsigned arenas;
  size_t cached_max;
  uint32_t quiet_ms;
  ssize_t dirty_decay_ms;
  ssize_t muzzy_decay_ms;
  const char *purpose;
};

inline constexpr std::array<Pool_spec, pool_count> pool_specs{{
#define MEMDIAG_POOL(id, lifetime, arenas, cached_max, quiet_ms, dirty_ms, \
                     muzzy_ms, purpose)                                    \
  {#id, lifetime, arenas, cached_max, quiet_ms, dirty_ms, muzzy_ms, purpose},
#include "mysys/memdiag/pools/pool_list.h"
#undef MEMDIAG_POOL
}};

constexpr const Pool_spec &spec_of(Pool pool) {
  return pool_specs[static_cast<size_t>(pool)];
}

/** true: the pool is malloc() as some threads use it. The layer counts no
block of such a pool, and its blocks go through the threads' own caches. */
constexpr bool uses_malloc(Pool pool) {
  return pool <= Pool::group_replication;
}
static_assert(uses_malloc(Pool::general) && uses_malloc(Pool::connection) &&
              !uses_malloc(Pool::fts_query));

/** Blocks of the pool outlive the clients, as far as the layer knows: malloc()
serves both kinds. */
constexpr bool outlives_clients(Pool pool) {
  const std::string_view lifetime = spec_of(pool).lifetime;
  return lifetime == "cache" || lifetime == "server";
}

/** The pool of that name, in any case of letters. */
std::optional<Pool> find_pool(std::string_view name);

namespace pools {

/** A number below max_accounts that a caller gives with its blocks, to have its
live bytes counted; 0: not counted. Nothing checks it on the way: a larger
number would write outside of the table. */
using Account = uint16_t;
constexpr size_t max_accounts = 1024;

/** A pool has a shard for each CPU, up to so many; more CPUs share them. */
constexpr unsigned max_shards = 128;
/** The most arenas that pool_list.h may give a pool. */
constexpr unsigned max_slots = 64;

}  // namespace pools
}  // namespace memdiag

#endif  // MEMDIAG_POOL_H
