/*
  A statement that writes a large full-text document, or changes a row so that
  InnoDB collects its words again, waits below the ceiling for what they will
  take when its transaction commits. A COMMIT
  neither waits nor ends, so what does not fit has to end before.

  Ownership: nothing is kept. Threads: the session's own, without a latch of
  InnoDB's. Errors: see refuses_document(). Units: bytes.

  A patched file of the SQL layer includes this header, so it includes none of
  InnoDB.
*/

#ifndef MEMDIAG_DOCUMENTS_H
#define MEMDIAG_DOCUMENTS_H

#include "mysys/memdiag/upstream/scope_hooks.h"

struct TABLE;

namespace memdiag {

/** The row was written.
@param before  what it was; nullptr: it is new
@param row     what it is now; nullptr: it was deleted
@return true: there is no room for its documents' words. The statement must end,
        and the error was raised */
bool refuses_document(TABLE *table, const unsigned char *before,
                      const unsigned char *row);

/** The same, for the calls of upstream's: without a ceiling it costs a load and
a branch. */
inline bool is_refused_document(TABLE *table, const unsigned char *before,
                                const unsigned char *row) {
  return &memdiag_has_gate != nullptr &&
         memdiag_has_gate.load(std::memory_order_relaxed) && row != nullptr &&
         refuses_document(table, before, row);
}

}  // namespace memdiag

#endif  // MEMDIAG_DOCUMENTS_H
