/*
  The diet of the words of full-text documents: those of a document whose
  transaction commits, and those in a table's cache.

  Stock makes for each different word of a document a tree node with a header of
  the allocator, and a vector with room for 32 positions. The cache has another
  such node, and a vector with room for four nodes. Most words occur once. Here
  the nodes of a tree lie in its heap, and a vector begins with one element. The
  heap of a repeated word gets its copy back.

  Ownership: a document belongs to its thread, a cache to those who hold its
  lock. Errors: without memory a heap ends the server, as upstream's do.

  Only fts0fts.cc may include this header: it redefines functions, see the end.
*/

#ifndef MEMDIAG_FTS_WORDS_H
#define MEMDIAG_FTS_WORDS_H

#include <cstddef>

#include "fts0types.h"
#include "mem0mem.h"
#include "storage/innobase/memdiag/trees.h"
#include "ut0vec.h"

namespace memdiag {

/** Like rbt_create_arg_cmp(), but the tree and its nodes lie in a memory heap
of their own, in the pool of full-text caches. The memory of a removed node
stays there until the tree is freed: upstream removes the words of such a tree
only before it frees the tree. */
ib_rbt_t *words_in_heap(size_t sizeof_value, ib_rbt_arg_compare compare,
                        void *cmp_arg);

/** The first room of a vector, by the size of its elements: positions of a word
in a document, nodes of a word in a cache, and a table's full-text indexes. More
often than not there is one. Such a vector doubles when it is full.
@param size  upstream's */
constexpr size_t first_elements(size_t sizeof_value, size_t size) {
  return sizeof_value == sizeof(ulint) || sizeof_value == sizeof(fts_node_t)
             ? 1
             : size;
}

/** As upstream's. */
inline ib_vector_t *words_vector(ib_alloc_t *allocator, size_t sizeof_value,
                                 size_t size) {
  return ib_vector_create(allocator, sizeof_value,
                          first_elements(sizeof_value, size));
}

/** The document has the word already: its heap takes the copy back, which is
the last thing that it was asked for. A block that would be empty stays as it
is: the next copy of a repeated word would allocate it again.
@param word  as it is in the text */
inline void drop_copy(const fts_doc_t *doc, const fts_string_t &word) {
  const size_t size = word.f_len * doc->charset->casedn_multiply + 1;
  auto *const heap = static_cast<mem_heap_t *>(doc->self_heap->arg);
  mem_block_t *const block = UT_LIST_GET_LAST(heap->base);
  if (mem_block_get_free(block) - MEM_SPACE_NEEDED(size) !=
      mem_block_get_start(block))
    mem_heap_free_top(heap, size);
}

}  // namespace memdiag

// These are macros so that upstream's calls need no patch.
#define rbt_create_arg_cmp memdiag::words_in_heap
#define ib_vector_create memdiag::words_vector

#endif  // MEMDIAG_FTS_WORDS_H
