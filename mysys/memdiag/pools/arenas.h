/*
  The arenas of the pools. A pool has a number of slots for them (pool_list.h).
  An arena is made when its slot is first used, and its pool owns it for ever.
  jemalloc's automatic arenas belong to Pool::general.

  Ownership: arenas are never destroyed. Another thread may be purging one, and
  jemalloc does not keep the two apart.
  Threads: any, but set_decay_times() by one thread at a time for each kind.
  Making an arena takes a mutex. Looking takes none, and never makes an arena.
  Errors: an arena that cannot be made leaves its slot unavailable, and the pool
  falls back to the general allocator.
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

/** The slot of a pool's arena; 0 for others. */
unsigned slot_of_arena(unsigned arena);

/** jemalloc's limit is 4095 (MALLOCX_ARENA_LIMIT). */
constexpr unsigned max_arenas = 4096;

/** A slot's arena is not made yet, or could not be made. Another attempt for
each allocation would be slow, and a shortage may pass: allocate() tries again
now and then. */
constexpr int no_arena = -1;
constexpr int unavailable = -2;

/** The index of the arena in a slot of a pool, or one of the above. */
int arena_in_slot(Pool pool, unsigned slot);

/** Calls visit(arena index) for each arena that the pool has made so far.
Pool::general has none in this sense: its arenas are those without an owner. */
template <typename Visitor>
void for_each_arena(Pool pool, Visitor visit) {
  for (unsigned slot = 0; slot < spec_of(pool).arenas; ++slot) {
    const int arena = arena_in_slot(pool, slot);
    if (arena >= 0) visit(static_cast<unsigned>(arena));
  }
}

/** Make a slot's arena, unless another thread has.
@return its index, or unavailable */
int make_arena(Pool pool, unsigned slot) noexcept;

/** jemalloc's two decay times. */
enum class Decay : uint8_t { dirty, muzzy, count };
/** By pool: -1 never, -2 as jemalloc's options say. */
using Decay_times = std::array<int64_t, pool_count>;

/** Set a decay time of all arenas there are, and of those to come. Until it is
called, the times of pool_list.h hold. An arena that refuses keeps what it has,
which MEMDIAG_ARENAS shows. */
void set_decay_times(Decay kind, const Decay_times &times);

/** @name Around fork(), see mysys/memdiag/fork.cc
hold() takes the mutex under which arenas are made. jemalloc_prefork() of 5.3.1
counts the arenas before it takes the lock that keeps others from being made.
Without the mutex, an arena that came in between would be unlocked in the parent
and had never been locked. @{ */
void hold_arenas() noexcept;
void let_go_of_arenas() noexcept;
/** @} */

}  // namespace memdiag::pools

#endif  // MEMDIAG_ARENAS_H
