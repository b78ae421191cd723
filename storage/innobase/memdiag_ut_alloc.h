/*
  Blocks of InnoDB's instrumented allocators (ut::malloc_withkey and its like),
  from the pool of their memory key.

  Called by upstream's detail/ut/alloc.h and aligned_alloc.h only, which keep a
  block's tag in bytes that their metadata leaves unused. `Alloc_fn` is
  upstream's wrapper of malloc(): what has no pool goes through it as before.
*/

#ifndef MEMDIAG_UT_ALLOC_H
#define MEMDIAG_UT_ALLOC_H

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "mysys/memdiag/routes/hooks.h"

namespace memdiag {

/** Where a block's tag is kept.
@param metadata  begin of the block's PFS_metadata */
template <typename Pfs_metadata>
Packed_tag &tag_of_block(void *metadata) {
  // Blocks are a multiple of 16 bytes behind their metadata, whose last four
  // bytes are an offset: 24 of 32 bytes are taken.
  constexpr size_t free_from = Pfs_metadata::meta_size;
  static_assert(free_from % alignof(Packed_tag) == 0 &&
                free_from + sizeof(Packed_tag) +
                        sizeof(typename Pfs_metadata::pfs_meta_offset_t) <=
                    32);
  return *reinterpret_cast<Packed_tag *>(static_cast<uint8_t *>(metadata) +
                                         free_from);
}

template <typename Alloc_fn, bool zero_initialized>
void *allocate(Packed_tag tag, size_t size) {
  if (tag == 0) [[likely]]
    return Alloc_fn::template alloc<zero_initialized>(size);
  return memdiag_allocate(tag, size, zero_initialized);
}

/** @param size  as at its allocation; 0: not known */
template <typename Alloc_fn>
void free(Packed_tag tag, void *block, size_t size) {
  if (tag == 0) [[likely]]
    Alloc_fn::free(block);
  else
    memdiag_free(tag, block, size);
}

/** Whether an object that is all zeros is the one that T{} makes, so that an
array of them can be left as the system gives its pages. */
template <typename T>
inline constexpr bool zero_is_a_value =
    std::is_trivially_default_constructible_v<T> &&
    !std::is_member_pointer_v<T>;
template <typename T>
inline constexpr bool zero_is_a_value<std::atomic<T>> = zero_is_a_value<T>;

/** realloc() for a block that may change its pool. */
template <typename Alloc_fn>
void *reallocate(Packed_tag old_tag, void *block, size_t old_size,
                 Packed_tag tag, size_t size) {
  if (old_tag == 0 && tag == 0) [[likely]]
    return Alloc_fn::realloc(block, size);
  void *moved = allocate<Alloc_fn, false>(tag, size);
  if (moved == nullptr) return nullptr;
  memcpy(moved, block, std::min(old_size, size));
  free<Alloc_fn>(old_tag, block, old_size);
  return moved;
}

}  // namespace memdiag

#endif  // MEMDIAG_UT_ALLOC_H
