#include "storage/innobase/memdiag/fts_words.h"

namespace memdiag {
namespace {

/** First block of a tree's heap: the tree, its two sentinels and a few nodes.
 */
constexpr size_t words_heap_start = 384;

}  // namespace

ib_rbt_t *words_in_heap(size_t sizeof_value, ib_rbt_arg_compare compare,
                        void *cmp_arg) {
  ib_rbt_t *tree =
      rbt_in(mem_heap_create(words_heap_start, UT_LOCATION_HERE), sizeof_value);
  tree->compare_with_arg = compare;
  tree->cmp_arg = cmp_arg;
  return tree;
}

}  // namespace memdiag
