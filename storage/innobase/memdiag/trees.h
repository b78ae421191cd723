/*
  The calls for InnoDB's red-black trees (ut0rbt.h) that lie in a heap.

  Ownership: the tree owns its nodes and its heap. Threads: as for the tree.

  Only fts0que.cc and fts0fts.cc, where all such trees are made, may include
  this header: it redefines functions, see the end.
*/

#ifndef MEMDIAG_TREES_H
#define MEMDIAG_TREES_H

#include <cstddef>

#include "mem0mem.h"
#include "ut0rbt.h"

namespace memdiag {

/** First block of a tree's heap: the tree, its two sentinels and a few nodes.
Small, because a wildcard query makes a tree for each word it finds. */
constexpr size_t tree_heap_start = 384;

/** Create a tree in a heap, which belongs to it from then on. The caller sets
how it compares. */
inline ib_rbt_t *rbt_in(mem_heap_t *heap, size_t sizeof_value) {
  auto *tree = static_cast<ib_rbt_t *>(mem_heap_zalloc(heap, sizeof(ib_rbt_t)));
  auto *sentinels = static_cast<ib_rbt_node_t *>(
      mem_heap_zalloc(heap, 2 * sizeof(ib_rbt_node_t)));
  tree->heap = heap;
  tree->sizeof_value = sizeof_value;
  tree->nil = &sentinels[0];
  tree->root = &sentinels[1];
  for (ib_rbt_node_t *sentinel : {tree->nil, tree->root}) {
    sentinel->color = IB_RBT_BLACK;
    sentinel->left = sentinel->right = sentinel->parent = tree->nil;
  }
  return tree;
}

/** rbt_remove_node().
@return the node for its caller to free. In a heap its memory stays until the
        tree is freed, and there is nothing to free */
inline ib_rbt_node_t *remove_from_tree(ib_rbt_t *tree,
                                       const ib_rbt_node_t *node) {
  ib_rbt_node_t *const removed = rbt_remove_node(tree, node);
  return tree->heap != nullptr ? nullptr : removed;
}

/** rbt_insert(): behind the nodes that are equal. */
inline const ib_rbt_node_t *insert_into_tree(ib_rbt_t *tree, const void *key,
                                             const void *value) {
  ib_rbt_bound_t parent{tree->root, 0};
  for (const ib_rbt_node_t *node = tree->root->left; node != tree->nil;
       node = parent.result < 0 ? node->left : node->right) {
    parent.last = node;
    parent.result =
        tree->cmp_arg != nullptr
            ? tree->compare_with_arg(tree->cmp_arg, key, node->value)
            : tree->compare(key, node->value);
  }
  return rbt_add_node(tree, &parent, value);
}

/** rbt_delete() of a tree in a heap.
@return false: no node has the key */
inline bool rbt_delete_in_heap(ib_rbt_t *tree, const void *key) {
  ib_rbt_bound_t found;
  if (rbt_search(tree, &found, key) != 0) return false;
  rbt_remove_node(tree, found.last);
  return true;
}

/** rbt_free(). */
inline void free_tree(ib_rbt_t *tree) {
  if (tree->heap != nullptr)
    mem_heap_free(tree->heap);
  else
    rbt_free(tree);
}

}  // namespace memdiag

// These are macros so that upstream's calls need no patch.
#define rbt_insert memdiag::insert_into_tree
#define rbt_remove_node memdiag::remove_from_tree
#define rbt_free memdiag::free_tree

#endif  // MEMDIAG_TREES_H
