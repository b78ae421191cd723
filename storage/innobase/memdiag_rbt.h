/*
  Memory of the nodes of InnoDB's red-black trees (ut0rbt.h): each on its own,
  as upstream has it, or in the heap of their tree, which then holds all of it.
*/

#ifndef MEMDIAG_RBT_H
#define MEMDIAG_RBT_H

#include <cstddef>

#include "mem0mem.h"
#include "ut0new.h"
#include "ut0rbt.h"

namespace memdiag {

/** Of a tree as upstream has it. innodb_ft_result_cache_limit counts that, so
that no query is refused for the pointer to a heap. */
constexpr size_t sizeof_rbt = sizeof(ib_rbt_t) - sizeof(mem_heap_t *);

/** Memory for a node that is to be added. Never NULL.
@param key  what it is accounted to if it is on its own */
inline ib_rbt_node_t *rbt_allocate(const ib_rbt_t *tree,
                                   ut::PSI_memory_key_t key, size_t size) {
  return static_cast<ib_rbt_node_t *>(tree->heap != nullptr
                                          ? mem_heap_alloc(tree->heap, size)
                                          : ut::malloc_withkey(key, size));
}

/** Free a node that has been removed. In a heap it stays until the tree goes.
 */
inline void rbt_free_removed(const ib_rbt_t *tree, ib_rbt_node_t *node) {
  if (tree->heap == nullptr) ut::free(node);
}

/** Remove a node of a tree and free it. */
inline void rbt_discard(ib_rbt_t *tree, const ib_rbt_node_t *node) {
  rbt_free_removed(tree, rbt_remove_node(tree, node));
}

/** Free a tree that lives in a heap. @return false: it does not */
inline bool rbt_free_heap(ib_rbt_t *tree) {
  if (tree->heap == nullptr) return false;
  mem_heap_free(tree->heap);
  return true;
}

}  // namespace memdiag

#endif  // MEMDIAG_RBT_H
