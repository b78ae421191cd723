/*
  Memory of the nodes of InnoDB's red-black trees (ut0rbt.h). A tree without a
  heap allocates each node alone, as upstream does. A tree with a heap holds its
  nodes and itself there.

  Ownership: the tree owns its nodes and its heap. Threads: as for the tree.
*/

#ifndef MEMDIAG_RBT_H
#define MEMDIAG_RBT_H

#include <cstddef>

#include "mem0mem.h"
#include "ut0new.h"
#include "ut0rbt.h"

namespace memdiag {

/** The size of upstream's tree. innodb_ft_result_cache_limit counts this size,
so the added pointer to a heap refuses no query. */
constexpr size_t sizeof_rbt = sizeof(ib_rbt_t) - sizeof(mem_heap_t *);

/** Allocate a node that will be added. Without memory a heap ends the server;
a tree without a heap gets nullptr, for which upstream does not test either.
@param key   memory key of a node outside of a heap
@param size  upstream's size, which includes the padding behind an empty node */
inline ib_rbt_node_t *rbt_allocate(const ib_rbt_t *tree,
                                   ut::PSI_memory_key_t key, size_t size) {
  size -= sizeof(ib_rbt_node_t) - offsetof(ib_rbt_node_t, value) - 1;
  return static_cast<ib_rbt_node_t *>(tree->heap != nullptr
                                          ? mem_heap_alloc(tree->heap, size)
                                          : ut::malloc_withkey(key, size));
}

}  // namespace memdiag

#endif  // MEMDIAG_RBT_H
