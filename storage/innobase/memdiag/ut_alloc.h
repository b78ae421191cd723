/*
  Blocks of InnoDB's instrumented allocators (ut::malloc_withkey and the
  others), from the pool of their memory key.

  Upstream's detail/ut/alloc.h, aligned_alloc.h and ut0new.cc call these.
  They keep a block's tag in bytes that their metadata leaves unused. `Alloc_fn`
  is upstream's wrapper of malloc(); blocks without a pool use it as before.

  Ownership: a block is freed with the tag that it was allocated with.
  Threads: any, without a lock. Errors: nullptr means no memory. Units: bytes.
*/

#ifndef MEMDIAG_UT_ALLOC_H
#define MEMDIAG_UT_ALLOC_H

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "mysql/psi/psi_memory.h"
#include "mysys/memdiag/upstream/hooks.h"

struct sync_cell_t;

namespace memdiag {

/** The place of a block's tag.
@param metadata  the begin of the block's PFS_metadata */
template <typename Pfs_metadata>
Packed_tag &tag_of_block(void *metadata) {
  // A block begins a multiple of 16 bytes behind its metadata, and the last
  // four bytes before it are an offset: 24 of 32 bytes are in use.
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

/** @param size  the size given to allocate(); 0: not known */
template <typename Alloc_fn>
void free(Packed_tag tag, void *block, size_t size) {
  if (tag == 0) [[likely]]
    Alloc_fn::free(block);
  else
    memdiag_free(tag, block, size);
}

/** The flags of the instrument of a file's blocks. Events of latches belong to
no thread (storage/innobase/memdiag/latch_events.h). */
inline unsigned memory_flags(const char *file) {
  return strcmp(file, "os0event") == 0 ? PSI_FLAG_ONLY_GLOBAL_STAT : 0;
}

/** True if T{} is all zeros. An array of such objects needs no writing: the
system's pages are zero. */
template <typename T>
inline constexpr bool zero_is_a_value =
    std::is_trivially_default_constructible_v<T> &&
    !std::is_member_pointer_v<T>;
template <typename T>
inline constexpr bool zero_is_a_value<std::atomic<T>> = zero_is_a_value<T>;
/** A cell in which a thread waits for a latch. Its members have initial values,
and all of them are zero (sync0arr_impl.h). InnoDB makes 102,400 cells at start,
7 MB. */
template <>
inline constexpr bool zero_is_a_value<sync_cell_t> = true;

/** realloc(); the block may move to another pool. */
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
