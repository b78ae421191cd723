/*
  A vector of bytes whose large blocks come from a pool. It replaces members of
  upstream's classes that were std::vector<uint8_t>, for which no memory key
  exists.

  Client programs have no pools; there it is a plain vector. Ownership and
  threads: as for any vector. Errors: std::bad_alloc. Units: bytes.
*/

#ifndef MEMDIAG_BYTES_H
#define MEMDIAG_BYTES_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "mysys/memdiag/upstream/places.h"

namespace memdiag {

/** Allocates blocks above large_block from the pool of a place, and smaller
ones by operator new. */
template <typename T, Place place>
struct Place_allocator {
  using value_type = T;
  template <typename Other>
  struct rebind {
    using other = Place_allocator<Other, place>;
  };

  Place_allocator() = default;
  template <typename Other>
  explicit Place_allocator(const Place_allocator<Other, place> &) {}

  T *allocate(size_t count) {
    if (!is_placed(count)) return std::allocator<T>{}.allocate(count);
    void *block = place_allocate(place, count * sizeof(T));
    if (block == nullptr) throw std::bad_alloc();
    return static_cast<T *>(block);
  }
  void deallocate(T *block, size_t count) {
    if (is_placed(count))
      place_free(place, block);
    else
      std::allocator<T>{}.deallocate(block, count);
  }

  /** Default-initialise: resize() must not zero bytes that the caller
  overwrites. */
  template <typename U>
  void construct(U *byte) noexcept {
    ::new (static_cast<void *>(byte)) U;
  }

  bool operator==(const Place_allocator &) const { return true; }

 private:
  static bool is_placed(size_t count) {
    return memdiag_place_allocate != nullptr &&
           count > large_block / sizeof(T) && count < SIZE_MAX / 2 / sizeof(T);
  }
};

/** The rows of an event of the binary log. */
using Row_bytes = std::vector<uint8_t, Place_allocator<uint8_t, Place::rows>>;

/** Make `bytes` a copy, with room for `capacity`.
@return false: no memory, and it is empty */
inline bool assign(Row_bytes *bytes, const char *from, size_t length,
                   size_t capacity) noexcept {
  try {
    bytes->reserve(capacity);
    // resize() and memcpy(), because assign() of another type of bytes, through
    // an allocator that the library does not know, copies one by one.
    bytes->resize(length);
    memcpy(bytes->data(), from, length);
    return true;
  } catch (const std::exception &) {
    bytes->clear();
    return false;
  }
}

}  // namespace memdiag

#endif  // MEMDIAG_BYTES_H
