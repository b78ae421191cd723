/*
  Blocks of InnoDB's memory heaps, from the pool of their heap.

  Only mem_heap_create_block() and mem_heap_block_free() call these functions. A
  heap keeps its tag in the header of each block, so both calls name the same
  tag. A tag of 0 means malloc(): the option memdiag_disabled_pools or
  memdiag_routes says so. Such a heap must not go through ut::malloc, whose key
  for this file leads to pool innodb. Performance Schema counts each block under
  the key that upstream gives it.

  Ownership: the heap owns the block until it frees it with the same tag and
  size. Threads: any; these functions take no lock. Units: bytes.
*/

#ifndef MEMDIAG_HEAP_H
#define MEMDIAG_HEAP_H

#include <cstddef>

#include "storage/innobase/memdiag/heap_routes.h"
#include "ut0new.h"

namespace memdiag {

/** Allocate a heap's block.
@param key   instrument of the calling file
@param size  bytes, including the header of the block
@return nullptr: no memory */
void *heap_block_allocate(Packed_tag tag, PSI_memory_key key, size_t size);
inline void *heap_block_allocate(Packed_tag tag, ut::PSI_memory_key_t key,
                                 size_t size) {
  return heap_block_allocate(tag, key(), size);
}

/** Free a heap's block. @param size  as at its allocation */
void heap_block_free(Packed_tag tag, void *block, size_t size);

}  // namespace memdiag

#endif  // MEMDIAG_HEAP_H
