/*
  The pool of an InnoDB memory heap, found by the source file that creates the
  heap. mem_heap_create() receives its caller's location anyway.

  The file name is a constant at nearly every call, so an optimised build
  compares it at compile time and the caller passes a number. In some calls the
  file name is a function's parameter (rec_get_offsets(), for each record with
  more columns than fit on the stack). There the comparison would cost more than
  the heap, so such heaps are heap_other.
  Includes no header of the server: unit tests include this one.
*/

#ifndef MEMDIAG_HEAP_ROUTES_H
#define MEMDIAG_HEAP_ROUTES_H

#include <cstddef>
#include <iterator>
#include <utility>

#include "mysys/memdiag/upstream/hooks.h"
#include "mysys/memdiag/upstream/places.h"

namespace memdiag {

struct Heap_route {
  /** The beginning of the file name. InnoDB's file names begin with the name of
  their module. */
  const char *begin_of_name;
  Place place;
};

/** The first match counts. */
inline constexpr Heap_route heap_routes[] = {
    {"fts0que.cc", Place::heap_fts_query},
    {"fts.cc", Place::heap_fts_query},  // storage/innobase/memdiag
    {"fts", Place::heap_fts},
    {"dict", Place::heap_dictionary},
    {"mem.cc", Place::heap_dictionary},  // dict/mem.cc
    {"ddl", Place::heap_ddl},
    {"handler0alter.cc", Place::heap_ddl},
    {"row0log.cc", Place::heap_ddl},
    {"row0import.cc", Place::heap_ddl},
    {"btr0load.cc", Place::heap_ddl},
    {"btr0mtib.cc", Place::heap_ddl},
    {"row0mysql.cc", Place::heap_prebuilt},
    {"row", Place::heap_row},
    {"trx", Place::heap_transaction},
    {"lock", Place::heap_transaction},
    {"pars", Place::heap_transaction},
    {"que", Place::heap_transaction},
    {"", Place::heap_other},
};

namespace detail {

template <size_t route>
[[gnu::always_inline]] constexpr bool route_matches(const char *name) {
  constexpr size_t length = __builtin_strlen(heap_routes[route].begin_of_name);
  return __builtin_strncmp(name, heap_routes[route].begin_of_name, length) == 0;
}

// A fold over the routes, not a loop: only then does the compiler reliably
// evaluate it for a constant path.
template <size_t... route>
[[gnu::always_inline]] constexpr Place place_of_file(
    const char *path, std::index_sequence<route...>) {
  const char *const slash = __builtin_strrchr(path, '/');
  const char *const name = slash == nullptr ? path : slash + 1;
  Place place = Place::heap_other;
  (void)((route_matches<route>(name) &&
          (place = heap_routes[route].place, true)) ||
         ...);
  return place;
}

}  // namespace detail

/** The place of heaps that `path` (a __FILE__) creates. */
[[gnu::always_inline]] constexpr Place heap_place(const char *path) {
  return detail::place_of_file(
      path, std::make_index_sequence<std::size(heap_routes)>{});
}

/** The tag of a heap that `path` creates now. Upstream's tools that read
InnoDB's files (ibd2sdi, innochecksum) have no pools: 0. */
[[gnu::always_inline]] inline Packed_tag heap_tag(const char *path) {
  if (memdiag_tag_of_place == nullptr) return 0;
  Place place = heap_place(path);
#ifdef __OPTIMIZE__
  if (!__builtin_constant_p(place)) place = Place::heap_other;
#endif
  return memdiag_tag_of_place(static_cast<uint16_t>(place));
}

/** The tag of a heap's block of that size; 0: malloc() serves it. */
constexpr Packed_tag tag_of_heap_block(Packed_tag heap, size_t size) {
  return tag_of_block(heap, size, large_heap_block);
}

}  // namespace memdiag

#endif  // MEMDIAG_HEAP_ROUTES_H
