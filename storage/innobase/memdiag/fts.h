/*
  The diet of InnoDB's full-text queries: a phrase search keeps for each
  document as many bytes as it needs.

  Ownership: everything belongs to one query. Heaps that this file creates lie
  in the pool of full-text queries (heap_routes). Threads: only the query's own.

  Only fts0que.cc may include this header: it redefines two of its functions,
  see the end.
*/

#ifndef MEMDIAG_FTS_H
#define MEMDIAG_FTS_H

#include <cstddef>

#include "mem0mem.h"
#include "storage/innobase/memdiag/fts_match.h"
#include "storage/innobase/memdiag/rbt.h"
#include "storage/innobase/memdiag/trees.h"
#include "univ.i"
#include "ut0vec.h"

struct fts_string_t;

namespace memdiag {

/** Like rbt_create(), but the tree and its nodes lie in a memory heap of their
own. A new node advances a pointer instead of allocating a block with a header,
and rbt_free() frees the heap's blocks in one pass. The memory of a removed node
stays in the heap until the tree is freed. */
ib_rbt_t *rbt_in_heap(size_t sizeof_value, ib_rbt_compare compare);

/** Like rbt_create_arg_cmp(), in a heap as above. */
ib_rbt_t *rbt_in_heap_arg_cmp(size_t sizeof_value, ib_rbt_arg_compare compare,
                              void *cmp_arg);

/** Create a vector that moves to a new heap of the exact size when it grows. A
vector on a plain memory heap leaves its former elements behind instead. Free it
with vectors_free().
@param heap  holds the vector's head; must outlive it */
ib_vector_t *vector_create(mem_heap_t *heap, size_t sizeof_value, size_t size);

/** Free the `count` vectors of an array and set the pointer to the array to
nullptr. The array itself belongs to its owner. Without an array nothing
happens. */
void vectors_free(ib_vector_t ***vectors, size_t count);

/** Count the word positions of one document.
@param ilist  encoded positions. Each is a number of several bytes, the last one
with its highest bit set; a byte of 0 ends the document (fts_encode_int()). */
inline size_t count_positions(const byte *ilist) {
  size_t count = 0;
  while (*ilist != 0) {
    while ((*ilist & 0x80) == 0) ++ilist;
    ++ilist;
    ++count;
  }
  return count;
}

/** The positions of a word in a document, in the room that they need. To
fts0que.cc they are a vector, because the functions below have the names of the
vector's. The last element of a complete one is ULINT_UNDEFINED, which is
counted and not stored. */
struct Positions {
  ulint used;
  ulint stored[1];  // as many as new_positions() counted
};

/** Make an empty vector for the positions of one document.
@param allocator  of the vector of matches; its heap will own the positions
@param ilist      see count_positions() */
Positions *new_positions(const ib_alloc_t *allocator, const byte *ilist);

inline ulint ib_vector_size(const Positions *positions) {
  return positions->used;
}

inline const ulint *ib_vector_get_const(const Positions *positions, ulint n) {
  static constexpr ulint end = ULINT_UNDEFINED;
  return n + 1 < positions->used ? &positions->stored[n] : &end;
}

/** @param position  the next one, at most as many as were counted; then
                     ULINT_UNDEFINED */
inline void ib_vector_push(Positions *positions, const ulint *position) {
  if (*position != ULINT_UNDEFINED)
    positions->stored[positions->used] = *position;
  ++positions->used;
}

/** The element of a vector where the search for the next match begins. Vectors
of vector_create() have one; it starts at 0. */
ulint &next_match(const ib_vector_t *matches);

/** Find another token's match in the document that `first` is a match of, with
find_match().
@param matches  the matches of the other token
@return `first` itself if there is none: the index is corrupt */
template <typename Match>
const Match *match_of_document(const ib_vector_t *matches, const Match *first) {
  const Match *const found =
      find_match(static_cast<const Match *>(matches->data), matches->used,
                 first->doc_id, &next_match(matches));
  ut_ad(found != nullptr);
  return found == nullptr ? first : found;
}

/** The document's frequency of a word. A template, as the next one.
@param not_kept  serves while positions are collected: only documents that have
                 the phrase have frequencies */
template <typename Query, typename Doc_id, typename Frequency>
Frequency *doc_freq_of(Query *query, ib_rbt_t *doc_freqs, Doc_id doc_id,
                       Frequency *not_kept) {
  return query->collect_positions
             ? not_kept
             : fts_query_add_doc_freq(query, doc_freqs, doc_id);
}

/** Record how often a token of the phrase occurs in a document that contains
the phrase. A template, because the functions that it calls are static in
fts0que.cc.
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
    doc_freq->freq = ib_vector_size(match->positions) - 1;
}

}  // namespace memdiag

// Every tree that fts0que.cc creates belongs to a query. These are macros so
// that its calls need no patch.
#define rbt_create memdiag::rbt_in_heap
#define rbt_create_arg_cmp memdiag::rbt_in_heap_arg_cmp
#define rbt_delete memdiag::rbt_delete_in_heap

#endif  // MEMDIAG_FTS_H
