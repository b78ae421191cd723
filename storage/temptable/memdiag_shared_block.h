/*
  Gives back the block that a session keeps for its temporary tables
  (patches/0017).

  Upstream's first block of a session, 1 MB, stays until the session ends, with
  every page that a temporary table has ever written. Here it goes back to its
  pool with the last of the session's temporary tables, and the next statement,
  mostly one of another session, writes the same pages again.

  Ownership: the block's slot stays the session's. Threads: the session's.
*/

#ifndef MEMDIAG_SHARED_BLOCK_H
#define MEMDIAG_SHARED_BLOCK_H

#include "storage/temptable/include/temptable/allocator.h"
#include "storage/temptable/include/temptable/block.h"

namespace memdiag {

/** @param block  of the session; nullptr: it has none, because another session
    has its slot */
inline void give_back_unused(temptable::Block *block) {
  if (block == nullptr || block->is_empty() ||
      block->number_of_used_chunks() != 0)
    return;
  if (block->type() == temptable::Source::RAM)
    temptable::MemoryMonitor::RAM::decrease(block->size());
  else if (block->type() == temptable::Source::MMAP_FILE)
    temptable::MemoryMonitor::MMAP::decrease(block->size());
  block->destroy();
}

}  // namespace memdiag

#endif  // MEMDIAG_SHARED_BLOCK_H
