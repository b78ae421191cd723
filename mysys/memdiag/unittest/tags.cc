/* Symbols that the patched my_malloc.cc defines in the server. */

#include "mysys/memdiag/upstream/hooks.h"

memdiag::Packed_tag memdiag_tags[memdiag::tag_table_size];
