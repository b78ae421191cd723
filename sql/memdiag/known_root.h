/*
  The memory root of a prepared statement expects the size that it reached for
  the same text before (patches/diets/0047-known-roots.patch, mysys/
  memdiag/upstream/root_sizes.h).

  A cursor or an execution may allocate in the root later. It gets small blocks.
  If parser_max_mem_size is set, whole blocks count towards it while a text is
  parsed, so the root takes the blocks of stock then. The size of a failed
  preparation is not kept.

  Threads: the one that fills the root. Units: bytes.
*/

#ifndef MEMDIAG_KNOWN_ROOT_H
#define MEMDIAG_KNOWN_ROOT_H

#include <cstddef>

#include "my_alloc.h"
#include "mysys/memdiag/upstream/root_blocks.h"

class THD;

namespace memdiag {

/** While it lives, its thread prepares a statement in a root. Other prepared
statements of the thread do not grow meanwhile. */
class Known_root {
 public:
  /** @param root  the statement's; lives longer
      @param text  the statement */
  Known_root(const THD *thd, MEM_ROOT *root, const char *text, size_t length);
  Known_root(const Known_root &) = delete;
  Known_root &operator=(const Known_root &) = delete;
  ~Known_root();

 private:
  const THD *const m_thd;
  MEM_ROOT *const m_root;
  const size_t m_text;  ///< hash of the statement and of the current database
  const root_blocks::Expected m_before{root_blocks::expected};
};

}  // namespace memdiag

#endif  // MEMDIAG_KNOWN_ROOT_H
