/*
  What the patched my_malloc.cc needs: the hooks (hooks.h), what frees a block
  that a debug build fails to get on purpose, the flags of a block that was
  refused, and a function that reduces a block without moving it
  (patches/diets/0039-realloc-in-place.patch). No other file includes this.
*/

#ifndef MEMDIAG_MY_MALLOC_H
#define MEMDIAG_MY_MALLOC_H

#include <cstdlib>

#include "my_inttypes.h"
#include "my_sys.h"
#include "mysql/psi/mysql_memory.h"
#include "mysys/memdiag/upstream/hooks.h"
#include "mysys/memdiag/upstream/malloc_hooks.h"

namespace memdiag {

/** Stands for free() where upstream's code does not know of tags. */
struct Free {
  Packed_tag tag;
  size_t size;
  void operator()(void *block) const {
    tag != 0 ? memdiag_free(tag, block, size) : ::free(block);
  }
};

/** If the ceiling has refused the block, its error says more than that of
upstream, which writes a line into the error log for each block. */
inline myf flags_behind(const void *block, Packed_tag tag, myf flags) {
  return block == nullptr && tag != 0 && memdiag_error_is_raised()
             ? flags & ~MY_WME
             : flags;
}

/** Reduces a block to `size` bytes where it lies, if it is a pool's and keeps
its size class. Growing is another matter: where a pool is disabled, another
malloc() than jemalloc's may have served the block. Performance Schema counts a
new block and a freed one, as in stock.
@tparam header_size  bytes from the header to the block
@return false: the block is as before */
template <size_t header_size, typename Header>
bool reduced_in_place(Header *header, PSI_memory_key key, size_t size) {
  if (size >= header->m_size || tag_behind<header_size>(header) == 0 ||
      !memdiag_is_same_size_class(header_size + header->m_size,
                                  header_size + size))
    return false;
  const Header old = *header;
  header->m_key =
      PSI_MEMORY_CALL(memory_alloc)(key, header_size + size, &header->m_owner);
  PSI_MEMORY_CALL(memory_free)
  (old.m_key, header_size + old.m_size, old.m_owner);
  header->m_size = size;
  return true;
}

}  // namespace memdiag

#endif  // MEMDIAG_MY_MALLOC_H
