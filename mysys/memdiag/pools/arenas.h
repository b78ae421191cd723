/*
  The arenas of the pools: one for each shard, made when the shard is first
  used, owned by its pool for ever. jemalloc's automatic arenas belong to
  Pool::general.

  Ownership: arenas are never destroyed. Another thread may be purging one, and
  jemalloc does not keep the two apart.
  Threads: any, but set_decay_times() by one thread at a time for each kind.
  Making an arena takes a mutex. Looking takes none, and never makes an arena.
  Errors: an arena that cannot be made leaves the shard without one, and the
  pool falls back to the general allocator.
  Units: milliseconds, as jemalloc has them.
*/

#ifndef MEMDIAG_ARENAS_H
#define MEMDIAG_ARENAS_H

#include <array>
#include <cstdint>

#include "mysys/memdiag/pools/pool.h"

namespace memdiag::pools {

/** The pool that an arena belongs to; Pool::general for automatic arenas. */
Pool owner_of_arena(unsigned arena);

/** Arena index of a shard of a pool, or a negative number if it has none. */
int arena_of_shard(Pool pool, unsigned shard);

/** Calls visit(arena index) for each arena that the pool has made so far.
Pool::general has none in this sense: its arenas are those without an owner. */
template <typename Visitor>
void for_each_arena(Pool pool, Visitor visit) {
  for (unsigned shard = 0; shard < max_shards; ++shard) {
    const int arena = arena_of_shard(pool, shard);
    if (arena >= 0) visit(static_cast<unsigned>(arena));
  }
}

/** Make a shard's arena, unless another thread has.
@return its index, or a negative number if it could not be made */
int make_arena(Pool pool, unsigned shard) noexcept;

/** jemalloc's two decay times. */
enum class Decay : uint8_t { dirty, muzzy, count };
/** By pool: -1 never, -2 as jemalloc's options say. */
using Decay_times = std::array<int64_t, pool_count>;

/** Set a decay time of all arenas there are, and of those to come. Until it is
called, the times of pool_list.h hold. An arena that refuses keeps what it has,
which MEMDIAG_ARENAS shows. */
void set_decay_times(Decay kind, const Decay_times &times);

/** @name Around fork(), see mysys/memdiag/fork.cc
The mutex that arenas are made under is held: jemalloc counts its arenas before
it takes the lock that keeps others from being made (jemalloc_prefork() of
5.3.1), and then unlocks in the parent those that came in between and were never
locked. @{ */
void hold_arenas() noexcept;
void let_go_of_arenas() noexcept;
/** @} */

}  // namespace memdiag::pools

#endif  // MEMDIAG_ARENAS_H
