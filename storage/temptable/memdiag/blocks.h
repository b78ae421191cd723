/*
  Blocks of TempTable from the pool (patches/hooks/0017).

  TempTable counts a block towards temptable_max_ram before it has it, and keeps
  the count if it does not get it. The ceiling refuses blocks of statements that
  are to end, so some such statements would leave none of temptable_max_ram.

  Ownership: the caller's. Threads: any. Units: bytes. Errors: nullptr.
*/

#ifndef MEMDIAG_TEMPTABLE_BLOCKS_H
#define MEMDIAG_TEMPTABLE_BLOCKS_H

#include <cstddef>

namespace memdiag::temptable_blocks {

/** @param size  with the header of Performance Schema */
void *allocate(size_t size);
void free(void *block);

/** A block that counts already is allocated while this lives. */
class Counts_already {
 public:
  Counts_already();
  ~Counts_already();
  Counts_already(const Counts_already &) = delete;
  Counts_already &operator=(const Counts_already &) = delete;
};

}  // namespace memdiag::temptable_blocks

#endif  // MEMDIAG_TEMPTABLE_BLOCKS_H
