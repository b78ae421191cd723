#include "storage/innobase/memdiag/fts_words.h"

namespace memdiag {

// fts.cc has the same to the letter: UT_LOCATION_HERE names the file, by which
// heap_routes.h chooses the pool.
ib_rbt_t *words_in_heap(size_t sizeof_value, ib_rbt_arg_compare compare,
                        void *cmp_arg) {
  ib_rbt_t *tree =
      rbt_in(mem_heap_create(tree_heap_start, UT_LOCATION_HERE), sizeof_value);
  tree->compare_with_arg = compare;
  tree->cmp_arg = cmp_arg;
  return tree;
}

}  // namespace memdiag
