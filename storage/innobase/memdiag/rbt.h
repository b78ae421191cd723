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

/** What rbt_remove_node() returns: the node for its caller to free. In a heap
its memory stays until the tree is freed, so there is nothing to free. */
inline ib_rbt_node_t *rbt_removed(const ib_rbt_t *tree,
                                  const ib_rbt_node_t *node) {
  return tree->heap != nullptr ? nullptr : const_cast<ib_rbt_node_t *>(node);
}

/** rbt_delete() of a tree in a heap.
@return false: no node has the key */
inline bool rbt_delete_in_heap(ib_rbt_t *tree, const void *key) {
  ib_rbt_bound_t found;
  if (rbt_search(tree, &found, key) != 0) return false;
  rbt_remove_node(tree, found.last);
  return true;
}

/** Free a tree with a heap. @return false: the tree has no heap */
inline bool rbt_free_heap(ib_rbt_t *tree) {
  if (tree->heap == nullptr) return false;
  mem_heap_free(tree->heap);
  return true;
}

}  // namespace memdiag

#endif  // MEMDIAG_RBT_H
