/*
  Finds a document's matches in the match lists of a phrase's tokens.

  Plain C++ without any header of the server or of this layer. Ownership: the
  list and the place in it are the caller's. Threads: the query's own.
*/

#ifndef MEMDIAG_FTS_MATCH_H
#define MEMDIAG_FTS_MATCH_H

namespace memdiag {

/** Find the match of a document in one token's list.

The merge of fts0que.cc walks the match lists of all tokens forward, and a
document is in its result only where it stopped in each list. So the search goes
on from the last match it found, and all searches of a query together read each
list once, whatever the order of its documents is.
@param matches       the list
@param count         matches in it
@param doc_id        the document's
@param[in,out] next  the element where the search begins, at first 0; then the
                     one that it found
@return nullptr: there is none; then all were read */
template <typename Match, typename Number, typename Doc_id>
const Match *find_match(const Match *matches, Number count,
                        const Doc_id &doc_id, Number *next) {
  for (Number n = count; n > 0; --n) {
    if (*next >= count) *next = 0;
    if (matches[*next].doc_id == doc_id) return &matches[*next];
    ++*next;
  }
  return nullptr;
}

}  // namespace memdiag

#endif  // MEMDIAG_FTS_MATCH_H
