/*
  The function that the patched my_realloc() calls. It is weak, as in
  mysys/memdiag/upstream/hooks.h.
*/

#ifndef MEMDIAG_REALLOC_HOOKS_H
#define MEMDIAG_REALLOC_HOOKS_H

#include "mysys/memdiag/upstream/hooks.h"

/** A pool's block of the first size has room for the second one, too, and can
be freed with either. Any thread; no lock. Units: bytes. */
extern "C" [[gnu::weak]] bool memdiag_is_same_size_class(size_t size,
                                                         size_t other);

#endif  // MEMDIAG_REALLOC_HOOKS_H
