/*
  The function that the patched my_realloc() calls. It is weak, as in
  mysys/memdiag/routes/hooks.h.
*/

#ifndef MEMDIAG_REALLOC_HOOKS_H
#define MEMDIAG_REALLOC_HOOKS_H

#include "mysys/memdiag/routes/hooks.h"

/** A pool's block of the first size has room for the second one, too, and can
be freed with either. Any thread; no lock. Units: bytes. */
extern "C" [[gnu::weak]] bool memdiag_is_same_size_class(size_t size,
                                                         size_t other);

namespace memdiag {

/** A block of my_malloc() from a pool can be reduced to `size` bytes in place.
Growing is another matter: where a pool is disabled, another malloc() than
jemalloc's may have served the block.
@tparam header_size  bytes from the header to the block */
template <size_t header_size, typename Header>
bool stays_in_place(Header *header, size_t size) {
  return size < header->m_size && tag_behind<header_size>(header) != 0 &&
         memdiag_is_same_size_class(header_size + header->m_size,
                                    header_size + size);
}

}  // namespace memdiag

#endif  // MEMDIAG_REALLOC_HOOKS_H
