/*
  Places: code that allocates without a memory instrument of its own.

  Nearly every file of InnoDB and of the SQL layer includes the enumeration.
  mysys/memdiag/routes/route_list.h has the names and pools, in the same order,
  so a change of these compiles routes.cc only. The functions need the hooks of
  the server (hooks.h), which describe memory, threads and errors.
*/

#ifndef MEMDIAG_PLACES_H
#define MEMDIAG_PLACES_H

#include <cstddef>
#include <cstdint>

#include "mysys/memdiag/upstream/hooks.h"

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
