/*
  What the patched my_malloc.cc calls beside mysys/memdiag/upstream/hooks.h.
  These functions are weak, as there. Threads: any. Locks: none.
*/

#ifndef MEMDIAG_MALLOC_HOOKS_H
#define MEMDIAG_MALLOC_HOOKS_H

#include "mysys/memdiag/upstream/hooks.h"

/** The calling thread got no block, and an error says why. True once for each
block. */
extern "C" [[gnu::weak]] bool memdiag_error_is_raised();

/** A pool's block of the first size has room for the second one, too, and can
be freed with either. Units: bytes. */
extern "C" [[gnu::weak]] bool memdiag_is_same_size_class(size_t size,
                                                         size_t other);

#endif  // MEMDIAG_MALLOC_HOOKS_H
