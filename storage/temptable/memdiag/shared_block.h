/*
  The block that a session keeps for its internal temporary tables
  (patches/diets/0051).

  Upstream's first block of a session, 1 MB, stays until the session ends, with
  every page that a temporary table has ever written. Here its memory goes back
  to the pool with the last of the session's temporary tables, and the next
  statement, mostly one of another session, writes the same pages again.

  Towards temptable_max_ram the block counts until the session ends, as in
  stock: a session that had one has it again, however much others use. A block
  in a mapped file stays.

  Ownership: the block's slot stays the session's. Threads: the session's.
  Units: bytes. Errors: as in stock, where the block cannot be had.
*/

#ifndef MEMDIAG_SHARED_BLOCK_H
#define MEMDIAG_SHARED_BLOCK_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "storage/temptable/include/temptable/block.h"
#include "storage/temptable/include/temptable/constants.h"
#include "storage/temptable/memdiag/blocks.h"

namespace memdiag {

/** Slot by slot, what counts while the block is empty; 0: nothing. It is
written once in a session's life, because slots of sessions that run on other
processors have the same cache line. */
inline std::array<size_t, temptable::SHARED_BLOCK_POOL_SIZE> sizes_given_back;

/** Blocks of slots lie in an array, each in a cache line of its own. */
inline size_t &size_given_back(const temptable::Block *block) {
  return sizes_given_back[reinterpret_cast<uintptr_t>(block) /
                          temptable::L1_DCACHE_SIZE %
                          temptable::SHARED_BLOCK_POOL_SIZE];
}

/** The session ends.
@return what still counts for a block whose memory went back */
inline size_t forget_given_back(const temptable::Block *block) {
  const size_t size = std::exchange(size_given_back(block), 0);
  return block->is_empty() ? size : 0;
}

/** A temporary table of the session has ended.
@param block  nullptr: another session has the session's slot */
inline void give_back_unused(temptable::Block *block) {
  if (block == nullptr || block->is_empty() ||
      block->number_of_used_chunks() != 0 ||
      block->type() != temptable::Source::RAM)
    return;
  size_t &size = size_given_back(block);
  if (size != block->size()) size = block->size();
  block->destroy();
}

/** A temporary table of the session is about to allocate. The block that went
back is there again, as if it had stayed.
@param block  as above */
inline void have_again(temptable::Block *block) {
  if (block == nullptr || !block->is_empty()) return;
  const size_t size = size_given_back(block);
  if (size == 0) return;
  const temptable_blocks::Counts_already counted;
  *block = temptable::Block(size, temptable::Source::RAM);
}

}  // namespace memdiag

#endif  // MEMDIAG_SHARED_BLOCK_H
