// dict0mem.h includes memdiag/dict.h behind what InnoDB's headers need first.
#include "dict0dict.h"

namespace memdiag {

void *allocate_in_index(mem_heap_t *heap, bool cached, size_t size) {
  const size_t before = mem_heap_get_size(heap);
  void *const block = mem_heap_alloc(heap, size);
  if (cached) {
    mutex_enter(&dict_sys->mutex);
    dict_sys->size += mem_heap_get_size(heap) - before;
    mutex_exit(&dict_sys->mutex);
  }
  return block;
}

}  // namespace memdiag
