/*
  Places that allocate without a memory instrument of their own: the names of
  mysys/memdiag/routes/route_list.h as an enumeration, so that upstream's files depend on no
  more, and hooks.h's functions for those that keep no tags.
*/

#ifndef MEMDIAG_PLACES_H
#define MEMDIAG_PLACES_H

#include <cstddef>
#include <cstdint>

#include "mysys/memdiag/routes/hooks.h"

namespace memdiag {

enum class Place : uint16_t {
#define MEMDIAG_PLACE(id, name, pool) id,
#define MEMDIAG_ROUTE(prefix, pool)
#include "mysys/memdiag/routes/route_list.h"
#undef MEMDIAG_PLACE
#undef MEMDIAG_ROUTE
  count
};
constexpr size_t place_count = static_cast<size_t>(Place::count);

inline void *place_allocate(Place place, size_t size) {
  return memdiag_place_allocate(static_cast<uint16_t>(place), size);
}
inline void place_free(Place place, void *block) {
  memdiag_place_free(static_cast<uint16_t>(place), block);
}

}  // namespace memdiag

#endif  // MEMDIAG_PLACES_H
