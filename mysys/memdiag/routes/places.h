/*
  Places: code that allocates without a memory instrument of its own.

  The enumeration stands alone, because nearly every file of upstream's InnoDB
  and of its SQL layer includes it. Names and pools of places are in
  mysys/memdiag/routes/route_list.h, in the same order; routes.cc checks that. A
  change of the list therefore compiles routes.cc and not the server.
*/

#ifndef MEMDIAG_PLACES_H
#define MEMDIAG_PLACES_H

#include <cstddef>
#include <cstdint>

#include "mysys/memdiag/routes/hooks.h"

namespace memdiag {

enum class Place : uint16_t {
  none,
  without_key,
  perfschema,
  innodb_without_key,
  temptable,
  rows,
  heap_fts_query,
  heap_fts,
  heap_dictionary,
  heap_ddl,
  heap_prebuilt,
  heap_row,
  heap_transaction,
  heap_other,
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
