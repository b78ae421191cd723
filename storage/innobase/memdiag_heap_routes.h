/*
  Which pool a memory heap of InnoDB belongs to, told by the source file that
  creates it: mem_heap_create() is given its caller's location anyway.

  The file name is a constant at every call, so in an optimised build the
  comparison is made by the compiler and the caller just passes a number.
  Needs no header of the server: unit tests include it.
*/

#ifndef MEMDIAG_HEAP_ROUTES_H
#define MEMDIAG_HEAP_ROUTES_H

#include <cstddef>
#include <utility>

#include "memdiag_pools.h"

namespace memdiag {

struct Heap_route {
  /** End of the creating file's path, with the slash before the name. */
  const char *file;
  Pool pool;
};

inline constexpr Heap_route heap_routes[] = {
    {"/fts0que.cc", Pool::fts_query},
};

namespace detail {

template <size_t route>
[[gnu::always_inline]] constexpr bool route_matches(const char *file,
                                                    size_t length) {
  constexpr size_t tail = __builtin_strlen(heap_routes[route].file);
  return length >= tail && __builtin_memcmp(file + length - tail,
                                            heap_routes[route].file, tail) == 0;
}

// A fold over the routes and not a loop: the compiler is then sure to evaluate
// it where the file name is a constant.
template <size_t... route>
[[gnu::always_inline]] constexpr Pool pool_of_file(
    const char *file, std::index_sequence<route...>) {
  const size_t length = __builtin_strlen(file);
  Pool pool = Pool::general;
  (void)((route_matches<route>(file, length) &&
          (pool = heap_routes[route].pool, true)) ||
         ...);
  return pool;
}

}  // namespace detail

/** The pool for heaps that `file` (a __FILE__) creates. */
[[gnu::always_inline]] constexpr Pool heap_pool(const char *file) {
  return detail::pool_of_file(
      file, std::make_index_sequence<std::size(heap_routes)>{});
}

}  // namespace memdiag

#endif  // MEMDIAG_HEAP_ROUTES_H
