/*
  Blocks of InnoDB's memory heaps, from the pool of their heap.

  Called by mem_heap_create_block() and mem_heap_block_free() only. A heap keeps
  its tag in its block headers, so both calls name the same one. Heaps with a
  tag of 0 go on through ut::malloc as before. Other blocks are reported to
  Performance Schema under the same key as before.
*/

#ifndef MEMDIAG_HEAP_H
#define MEMDIAG_HEAP_H

#include <cstddef>

#include "storage/innobase/memdiag_heap_routes.h"
#include "ut0new.h"

namespace memdiag {

/** @return nullptr: no memory */
void *pool_block_allocate(Packed_tag tag, PSI_memory_key key, size_t size);
void pool_block_free(Packed_tag tag, void *block, size_t size);

/** Allocate a heap's block.
@param key   instrument of the calling file
@param size  bytes, header of the block included
@return nullptr: no memory */
inline void *heap_block_allocate(Packed_tag tag, ut::PSI_memory_key_t key,
                                 size_t size) {
  if (tag == 0) return ut::malloc_withkey(key, size);
  return pool_block_allocate(tag, key(), size);
}

/** Free a heap's block. @param size  as at its allocation */
inline void heap_block_free(Packed_tag tag, void *block, size_t size) {
  if (tag == 0)
    ut::free(block);
  else
    pool_block_free(tag, block, size);
}

}  // namespace memdiag

#endif  // MEMDIAG_HEAP_H
