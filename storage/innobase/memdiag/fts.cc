#include "storage/innobase/memdiag/fts.h"

#include <cstddef>
#include <cstring>

namespace memdiag {
namespace {

/** The allocator of one vector: `elements` holds its elements, nothing else,
and `heap` its head. */
struct Vector_allocator {
  ib_alloc_t base;
  mem_heap_t *heap;
  mem_heap_t *elements;
  ulint next_match;
};

Vector_allocator *allocator_of(const ib_vector_t *vector) {
  return static_cast<Vector_allocator *>(vector->allocator->arg);
}

/** Move the elements to a heap that just holds them, and free the former. */
void *resize_vector(ib_alloc_t *allocator, void *elements, ulint old_size,
                    ulint new_size) {
  auto *self = static_cast<Vector_allocator *>(allocator->arg);
  mem_heap_t *heap = mem_heap_create(new_size, UT_LOCATION_HERE);
  void *moved = mem_heap_alloc(heap, new_size);
  memcpy(moved, elements, old_size);
  mem_heap_free(self->elements);
  self->elements = heap;
  return moved;
}

}  // namespace

ib_rbt_t *rbt_in_heap(size_t sizeof_value, ib_rbt_compare compare) {
  ib_rbt_t *tree =
      rbt_in(mem_heap_create(tree_heap_start, UT_LOCATION_HERE), sizeof_value);
  tree->compare = compare;
  return tree;
}

ib_rbt_t *rbt_in_heap_arg_cmp(size_t sizeof_value, ib_rbt_arg_compare compare,
                              void *cmp_arg) {
  ib_rbt_t *tree =
      rbt_in(mem_heap_create(tree_heap_start, UT_LOCATION_HERE), sizeof_value);
  tree->compare_with_arg = compare;
  tree->cmp_arg = cmp_arg;
  return tree;
}

ib_vector_t *vector_create(mem_heap_t *heap, size_t sizeof_value, size_t size) {
  auto *allocator = static_cast<Vector_allocator *>(
      mem_heap_zalloc(heap, sizeof(Vector_allocator)));
  allocator->base.arg = allocator;
  allocator->base.mem_resize = resize_vector;
  allocator->heap = heap;
  allocator->elements = mem_heap_create(sizeof_value * size, UT_LOCATION_HERE);
  auto *vector =
      static_cast<ib_vector_t *>(mem_heap_zalloc(heap, sizeof(ib_vector_t)));
  vector->allocator = &allocator->base;
  vector->sizeof_value = sizeof_value;
  vector->total = size;
  vector->data = mem_heap_alloc(allocator->elements, sizeof_value * size);
  return vector;
}

Positions *new_positions(const ib_alloc_t *allocator, const byte *ilist) {
  mem_heap_t *const heap =
      allocator->mem_resize == resize_vector
          ? static_cast<Vector_allocator *>(allocator->arg)->heap
          : static_cast<mem_heap_t *>(allocator->arg);
  auto *const positions = static_cast<Positions *>(mem_heap_alloc(
      heap,
      offsetof(Positions, stored) + count_positions(ilist) * sizeof(ulint)));
  positions->used = 0;
  return positions;
}

ulint &next_match(const ib_vector_t *matches) {
  return allocator_of(matches)->next_match;
}

void vectors_free(ib_vector_t ***vectors, size_t count) {
  for (size_t i = 0; *vectors != nullptr && i < count; ++i)
    mem_heap_free(allocator_of((*vectors)[i])->elements);
  *vectors = nullptr;
}

}  // namespace memdiag
