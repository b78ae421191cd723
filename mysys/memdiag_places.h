/*
  Places that allocate without a memory instrument of their own: the names of
  memdiag_route_list.h as an enumeration, and nothing else, so that upstream's
  files depend on no more.
*/

#ifndef MEMDIAG_PLACES_H
#define MEMDIAG_PLACES_H

#include <cstddef>
#include <cstdint>

namespace memdiag {

enum class Place : uint16_t {
#define MEMDIAG_PLACE(id, name, pool) id,
#define MEMDIAG_ROUTE(prefix, pool)
#include "memdiag_route_list.h"
#undef MEMDIAG_PLACE
#undef MEMDIAG_ROUTE
  count
};
constexpr size_t place_count = static_cast<size_t>(Place::count);

}  // namespace memdiag

#endif  // MEMDIAG_PLACES_H
