/*
  The diet of InnoDB's full-text queries: what a phrase search keeps of each
  document, in as many bytes as it needs.

  Everything here belongs to one query and is used by its thread only. Heaps
  that are made here are in the pool of full-text queries (heap_routes).

  For fts0que.cc alone: see the end.
*/

#ifndef MEMDIAG_FTS_H
#define MEMDIAG_FTS_H

#include <cstddef>

#include "mem0mem.h"
#include "storage/innobase/memdiag_rbt.h"
#include "univ.i"
#include "ut0vec.h"

struct fts_string_t;

namespace memdiag {

/** As rbt_create(), with the tree and its nodes in a memory heap of its own:
one step of a pointer for a node instead of an allocation with its header, and
one pass over blocks to free them all. rbt_free() frees the heap. A node that is
removed stays in the heap until then: free it with rbt_discard(). */
ib_rbt_t *rbt_in_heap(size_t sizeof_value, ib_rbt_compare compare);

/** As rbt_create_arg_cmp(), likewise. */
ib_rbt_t *rbt_in_heap_arg_cmp(size_t sizeof_value, ib_rbt_arg_compare compare,
                              void *cmp_arg);

/** A vector that grows without leaving its former selves behind, as one on a
plain memory heap does: each growth moves it to a heap of the exact size. Free
it with vectors_free().
@param heap  for the vector's head; outlives it */
ib_vector_t *vector_create(mem_heap_t *heap, size_t sizeof_value, size_t size);

/** Free all `count` of an array of such vectors, if there is one, and forget
the array, which is its owner's. */
void vectors_free(ib_vector_t ***vectors, size_t count);

/** How many word positions of one document stand at `ilist`, up to the mark
that ends the document. Each is a number of several bytes, the last with its
highest bit set; the mark is a 0 (fts_encode_int()). */
inline size_t count_positions(const byte *ilist) {
  size_t count = 0;
  while (*ilist != 0) {
    while ((*ilist & 0x80) == 0) ++ilist;
    ++ilist;
    ++count;
  }
  return count;
}

/** Room for these positions and the ULINT_UNDEFINED that ends them. */
inline ulint *new_positions(mem_heap_t *heap, const byte *ilist) {
  return static_cast<ulint *>(
      mem_heap_alloc(heap, (count_positions(ilist) + 1) * sizeof(ulint)));
}

/** Entries of a list of positions, the ULINT_UNDEFINED that ends it included.
 */
inline size_t positions_size(const ulint *positions) {
  size_t size = 1;
  while (*positions++ != ULINT_UNDEFINED) ++size;
  return size;
}

/** The element of a vector where the search for the next match begins. Vectors
of vector_create() have one; it starts at 0. */
ulint &next_match(const ib_vector_t *matches);

/** Find another token's match in the document that `first` is a match of.

The merge of fts0que.cc walks the match lists of all tokens forward, and a
document is in its result only where it stopped in each list. So the search goes
on from the last match it found, and all searches of a query together read each
list once, whatever the order of its documents is.
@param matches  the matches of the other token
@return `first` itself if there is none: the index is corrupt */
template <typename Match>
const Match *match_of_document(const ib_vector_t *matches, const Match *first) {
  const auto *const all = static_cast<const Match *>(matches->data);
  ulint &next = next_match(matches);
  for (ulint n = matches->used; n > 0; --n) {
    if (next >= matches->used) next = 0;
    if (all[next].doc_id == first->doc_id) return &all[next];
    ++next;
  }
  ut_ad(false);
  return first;
}

/** Note how often a token of a phrase stands in a document that has the phrase.
The query's own functions are fts0que.cc's, found there by its type.
@param token  the token
@param n      its number in the phrase
@param first  the document's match of token 0 */
template <typename Query, typename Match>
void add_match_freq(Query *query, const fts_string_t *token, size_t n,
                    const Match *first) {
  const Match *match =
      n == 0 ? first : match_of_document(query->match_array[n], first);
  auto *const word_freq = fts_query_add_word_freq(query, token);
  auto *const doc_freq =
      fts_query_add_doc_freq(query, word_freq->doc_freqs, first->doc_id);
  if (doc_freq->freq == 0)
    doc_freq->freq = positions_size(match->positions) - 1;
}

}  // namespace memdiag

// Every tree that fts0que.cc creates belongs to a query. Macros, so that its
// fourteen calls need no patch.
#define rbt_create memdiag::rbt_in_heap
#define rbt_create_arg_cmp memdiag::rbt_in_heap_arg_cmp

#endif  // MEMDIAG_FTS_H
