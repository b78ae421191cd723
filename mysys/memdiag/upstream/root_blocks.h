/*
  The sizes of a memory root's blocks (patches/diets/0024).
  Upstream counts whole blocks towards a root's limit, so a root with a limit,
  or that gets one, keeps stock's sizes.

  A block fills its size class of jemalloc, headers included. The rest of the
  class would be lost. Upstream makes each block half as large again as the last
  one, and on average a sixth of a root stays empty. A statement's roots end
  with it, so their empty part costs little. A session or a cache keeps its
  roots: open tables, prepared statements, stored programs. The next block of
  such a root is a quarter of its blocks together.

  A thread may expect a size of the kept root that it fills (mysys/memdiag/
  upstream/root_sizes.h). The next block then has all missing bytes, or most of
  them. Fewer blocks waste less: an allocation that does not fit leaves the rest
  of its block empty. Blocks beyond the expected size are small.

  Upstream gives an allocation that is larger than the next block a block of its
  own, so a small next block loses nothing. The functions keep no state. A
  thread_local variable has the expected size. Client programs use the
  functions, too, and have no pools. Units: bytes.
*/

#ifndef MEMDIAG_ROOT_BLOCKS_H
#define MEMDIAG_ROOT_BLOCKS_H

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "mysys/memdiag/jemalloc/size_class.h"
#include "mysys/memdiag/pools/pool.h"
#include "mysys/memdiag/upstream/hooks.h"

namespace memdiag::root_blocks {

/** In front of a block's contents: my_malloc()'s header, the root's own. */
constexpr size_t headers = 32 + 16;
/** A larger block costs no less time. One of query_alloc_block_size, which may
be gigabytes, would have to wait for room below the ceiling. */
constexpr size_t largest = size_t{1} << 20;
/** A kept root that began with larger blocks goes on with such ones. */
constexpr size_t kept_least = 4096 - headers;

/** A block beyond the expected size has a sixteenth of the root, at least this.
 */
constexpr size_t beyond_least = 1024 - headers;

/** The size class of a block. A large block keeps its size, because the rest of
its last page is all that it can lose. */
constexpr size_t filled(size_t size) {
  return size > largest_fixed_class ? size : size_class(size);
}

/** With ASAN and Valgrind, upstream gives each allocation a block, and a write
behind the block's end is an error. */
#if defined(HAVE_ASAN) || defined(HAVE_VALGRIND)
constexpr bool ends_are_watched = true;
#else
constexpr bool ends_are_watched = false;
#endif

/** A root's limit, as it keeps it: two values stand for none. */
constexpr bool is_limited(size_t limit) {
  return limit != 0 && limit != SIZE_MAX;
}

/** The instrument of hash joins, set operations and batched key access. Roots
of the first two get a limit, which is join_buffer_size for example, behind the
first block. */
constexpr std::string_view limited_later = "memory/sql/hashed_operation";
/** Its key; 0: not registered. memdiag_note_instrument() sets it. */
inline constinit std::atomic<uint32_t> key_limited_later{0};

inline bool has_stock_sizes(uint32_t key, size_t limit) {
  return is_limited(limit) ||
         (key != 0 && key == key_limited_later.load(std::memory_order_relaxed));
}

/** The room of a block that shall have this room, and at least `least`. From 4
KB on, the headers are part of what was wanted: a block of 8,192 would take one
of 10,240.
@param key    of the root's memory
@param limit  the root's */
inline size_t room(uint32_t key, size_t limit, size_t wanted, size_t least) {
  if (has_stock_sizes(key, limit) || ends_are_watched) return wanted;
  wanted = std::min(wanted, std::max(least, largest));
  const size_t reduced = wanted < 4096 ? wanted : wanted - headers;
  return filled(std::max({reduced, least, size_t{64}}) + headers) - headers;
}

/** A block size for which room() has place for `bytes`, and hardly more. */
constexpr size_t size_for(size_t bytes) {
  return bytes < 4096 ? bytes : bytes + headers;
}

/** Two blocks take the place of one if they are so much smaller together. The
first one may have an empty rest. */
constexpr size_t boundary = 256;

/** The block size for a root that lacks so many bytes: one block for all of
them, or one of the class below, which leaves a small rest. */
constexpr size_t size_towards(size_t missing) {
  const size_t block = missing + headers;
  if (missing <= kept_least || block > largest_fixed_class)
    return size_for(missing);
  const size_t whole = filled(block);
  const size_t most = size_class_below(whole);
  const size_t rest = filled(std::max<size_t>(block - most, 64) + headers);
  return size_for((most + rest + boundary > whole ? block : most) - headers);
}

/** The expected size of the kept root that this thread fills. */
struct Expected {
  uint32_t key{0};  ///< of the root's memory
  size_t bytes{0};  ///< of all its blocks; 0: unknown
};
inline constinit thread_local Expected expected;

/** One bit for each pool that keeps its blocks longer than a statement. */
constexpr uint32_t keeping_pools = [] {
  uint32_t found = 0;
  for (size_t pool = 0; pool < pool_count; ++pool) {
    const std::string_view lifetime = pool_specs[pool].lifetime;
    if (!uses_malloc(static_cast<Pool>(pool)) &&
        (lifetime == "cache" || lifetime == "session"))
      found |= uint32_t{1} << pool;
  }
  return found;
}();
static_assert(pool_count <= 32);

/** @param key  of the root's memory */
inline bool is_kept(uint32_t key) {
  const uint32_t pool = tag_of_key(key, 0) >> 16;
  return pool < pool_count && (keeping_pools >> pool & 1) != 0;
}

/**
  A root has one more block, and upstream has grown its block size.

  @param size   the block size, to be adjusted
  @param first  the block size at the beginning
  @param key    of the root's memory
  @param has    the root's blocks together
  @param limit  the root's
*/
inline void adjust(size_t *size, size_t first, uint32_t key, size_t has,
                   size_t limit) {
  if (has_stock_sizes(key, limit)) return;
  if (is_kept(key)) {
    *size = std::max(has / 4, std::min(first, kept_least));
    if (expected.bytes != 0 && expected.key == key)
      *size = has < expected.bytes ? size_towards(expected.bytes - has)
                                   : std::max(has / 16, beyond_least);
  }
  *size = std::min(*size, largest);
}

}  // namespace memdiag::root_blocks

#endif  // MEMDIAG_ROOT_BLOCKS_H
