/*
  Routes: what an allocation is for, and therefore which pool it comes from.

  A route is a memory instrument as Performance Schema knows them
  ("memory/sql/TABLE"), or a place that has none of its own
  ("mem_heap/dictionary"). Which pool each has is declared in
  mysys/memdiag/routes/route_list.h and may be overridden at start-up: blocks
  that were allocated before keep theirs. Routes appear as their instruments
  register; nothing here depends on Performance Schema being on.

  What lives under a route is counted where blocks come from a pool: bytes of
  size classes, and blocks. Blocks of Pool::general are not counted.

  Threads: everything may be called from any thread. Registering, options,
  name_of_key() and all() take a mutex. Allocating, freeing, tags and
  is_disabled() do not.
  Lifetime: routes are never removed. Names are copied. Units: bytes.
  Errors: a function that is not noexcept may throw std::bad_alloc.
*/

#ifndef MEMDIAG_ROUTES_H
#define MEMDIAG_ROUTES_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mysys/memdiag/pools/pools.h"
#include "mysys/memdiag/upstream/hooks.h"
#include "mysys/memdiag/upstream/places.h"

namespace memdiag {

/** Tags are packed route and pool; a tag of Pool::general is 0. */
constexpr Packed_tag pack_tag(uint16_t route, Pool pool) {
  return pool == Pool::general ? 0
                               : static_cast<Packed_tag>(pool) << 16 | route;
}
constexpr Pool pool_of(Packed_tag tag) {
  return static_cast<Pool>((tag & ~only_large) >> 16);
}
constexpr uint16_t route_of(Packed_tag tag) {
  return static_cast<uint16_t>(tag);
}

namespace routes {

/** Places come first, then instruments in the order they registered. More
instruments than there is room for stay in Pool::general. */
constexpr size_t max_routes = pools::max_accounts;

/** The tag of blocks that are allocated at a place now. */
Packed_tag tag_of_place(Place place);

/** The pool that the declarations give to an instrument: that of the longest
matching prefix. */
Pool declared_pool(std::string_view instrument);

/** The name of the instrument that has a key, which lives for ever; empty if
none has. */
std::string_view name_of_key(uint32_t key) noexcept;

/** Allocate a block and count it. A tag of 0 is malloc().
@return nullptr: no memory */
[[nodiscard]] inline void *allocate(Packed_tag tag, size_t size,
                                    bool zero = false) noexcept {
  return pools::allocate(pool_of(tag), size, zero, route_of(tag));
}
/** Free a block, or nullptr. @param size  as at its allocation; 0: not known */
inline void free(Packed_tag tag, void *block, size_t size) noexcept {
  pools::free(pool_of(tag), block, size, route_of(tag));
}

/** Free a block of a place that keeps no tags, or nullptr: the allocator says
which arena it came from. */
void free_of_place(Place place, void *block) noexcept;

/** Register an instrument, see memdiag_note_instrument() in hooks.h. */
uint32_t note_instrument(const char *category, const char *name,
                         uint32_t key) noexcept;

struct Row {
  std::string name;
  Pool pool;
  const char *pool_name;
  /** Blocks up to this size are malloc()'s all the same. */
  uint64_t larger_than;
  /** Live bytes that came from pools, whatever pool the route has now;
  empty where nothing is counted, because all of it is malloc()'s. */
  std::optional<uint64_t> live_bytes;
  std::optional<uint64_t> live_blocks;
};

/** Every route there is; the place in the vector is route_of() its tags.
@throws std::bad_alloc */
std::vector<Row> all();

/** Options of the server, which sets them while it reads its command line; they
hold from the first allocation after that. */
struct Options {
  /** "route=pool,...": routes whose names begin so, also those that register
  later, take another pool. Of several entries for a route the last counts. */
  const char *routes;
  /** "pool,..." or "all": pools whose routes, or threads, are to take malloc()
  as it is. */
  const char *disabled_pools;
};
extern Options options;

/** True if the options in force disable a pool. */
bool is_disabled(Pool pool);

/** Take over the options if they have changed.
@return what is wrong with them, or empty. Where something is, none of them is
in force. */
std::string apply_options();

/** Routes of the options that no route's name begins with as yet, separated by
commas. A plugin may register one later. */
std::string unknown_in_options();

/** Around fork(), see mysys/memdiag/fork.cc: the mutex is held. */
void hold() noexcept;
void let_go() noexcept;

}  // namespace routes
}  // namespace memdiag

#endif  // MEMDIAG_ROUTES_H
