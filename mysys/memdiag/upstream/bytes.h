/*
  A vector of bytes whose large blocks come from a pool, and a packed row that
  becomes such a vector. The vector replaces members of upstream's classes that
  were std::vector<uint8_t>, for which no memory key exists.

  Client programs have no pools; there it is a plain vector. Ownership and
  threads: as for any vector; a packed row is its thread's. Errors of the
  vector: std::bad_alloc. Units: bytes.
*/

#ifndef MEMDIAG_BYTES_H
#define MEMDIAG_BYTES_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "mysys/memdiag/upstream/hooks.h"
#include "mysys/memdiag/upstream/places.h"
// patches/diets/0062 needs it in rpl_rli.h, which has the events of this file.
#include "mysys/memdiag/upstream/relay_log_name.h"

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

/** @return false: no memory for `capacity` bytes */
inline bool reserve(Row_bytes *bytes, size_t capacity) noexcept {
  try {
    bytes->reserve(capacity);
    return true;
  } catch (const std::exception &) {
    return false;
  }
}

/** Make `bytes` a copy, with room for `capacity`, which is not less than
`length`.
@return false: no memory, and it is empty */
inline bool assign(Row_bytes *bytes, const char *from, size_t length,
                   size_t capacity) noexcept {
  bytes->clear();
  if (!reserve(bytes, capacity)) return false;
  // resize() and memcpy(), because assign() of another type of bytes, through
  // an allocator that the library does not know, copies one by one.
  bytes->resize(length);
  memcpy(bytes->data(), from, length);
  return true;
}

/** Where the server packs a large row for the binary log. The first event that
the row is added to takes the block over; upstream copies the row. The server
packs both images of an UPDATE into one block and adds one after the other.

The block has room for whole documents. With PARTIAL_JSON or an image without
BLOBs the row may take little of it, and its event would keep the block until it
is written. Such an event copies the row, or its first image until the second
one comes.

The function that adds a row knows no more than the row's bytes, so the thread
has a pointer to the object that it made last. A packed row throws nothing:
upstream copies a row that cannot be given. */
class Packed_row {
 public:
  Packed_row() = default;
  Packed_row(const Packed_row &) = delete;
  Packed_row &operator=(const Packed_row &) = delete;
  ~Packed_row() {
    if (s_latest == this) s_latest = nullptr;
  }

  /** @return room for `length` bytes, which lives as long as the object and
  what it was given to. nullptr: the row is small, or there is no memory */
  uint8_t *room(size_t length) noexcept {
    if (length <= large_block || !reserve(&m_bytes, length)) return nullptr;
    m_room = m_bytes.data();
    m_length = length;
    s_latest = this;
    return m_room;
  }

  /** Append `length` bytes of the thread's latest packed row to `rows`, which
  take its block over if they have nothing else and would take much of it. The
  first image lies at the beginning of room().
  @param most  of bytes that `rows` may have then
  @return false: the bytes are no such row's, or `rows` have others, or would be
  too many. Nothing has changed then */
  static bool give(Row_bytes *rows, const uint8_t *bytes, size_t length,
                   size_t most) noexcept {
    Packed_row *const row = s_latest;
    if (row == nullptr || bytes < row->m_room ||
        bytes >= row->m_room + row->m_length)
      return false;
    const size_t before = rows->size();
    if (before + length > most) return false;
    const bool has_block = row->m_bytes.data() == row->m_room;
    if (rows->data() != row->m_given && !(rows->empty() && has_block))
      return false;
    const bool is_small =
        row->m_length > kept_block && before + length < row->m_length / 4;
    // `rows` have a copy of the block's beginning.
    if (has_block && !(is_small && reserve(rows, before + length)))
      *rows = std::move(row->m_bytes);
    rows->resize(before + length);  // which writes no byte, and has the room
    memmove(rows->data() + before, bytes, length);
    row->m_given = rows->data();
    return true;
  }

 private:
  /** An event may keep so much for a small row. */
  static constexpr size_t kept_block = 1 << 20;

  static inline thread_local Packed_row *s_latest = nullptr;

  Row_bytes m_bytes;  // empty, with its capacity, until it is given
  uint8_t *m_room = nullptr;
  size_t m_length = 0;
  /** The bytes of the event that has the row. */
  const uint8_t *m_given = nullptr;
};

}  // namespace memdiag

#endif  // MEMDIAG_BYTES_H
