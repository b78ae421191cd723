/*
  What patched files of upstream's call: the whole of it.

  mysys is linked into client programs too, which have neither jemalloc nor
  pools. So the functions are weak there, and the table of tags, which my_malloc
  asks first, stays zero: nothing is pooled, and none of them is ever called.

  A tag says what a block is accounted to; 0 is malloc(). It is found by the
  block's memory key, and kept with the block until it is freed. Keys are
  Performance Schema's, or, with performance_schema=OFF, of
  memdiag_note_instrument().

  Plain C++ without any header of the server or of this layer.
*/

#ifndef MEMDIAG_HOOKS_H
#define MEMDIAG_HOOKS_H

#include <stddef.h>
#include <stdint.h>

namespace memdiag {

/** Route in the lower half, pool in the upper. */
using Packed_tag = uint32_t;

/** In an entry of the table of tags, or in a heap's: only blocks larger than
this have the tag, the others are malloc()'s. */
constexpr Packed_tag only_large = 0x80000000;
constexpr size_t large_block = 16384;
constexpr size_t large_heap_block = 2048;

constexpr Packed_tag tag_of_block(Packed_tag tag, size_t size, size_t limit) {
  if ((tag & only_large) == 0) return tag;
  return size > limit ? tag & ~only_large : 0;
}

/** Performance Schema has 1,024 memory classes at most
(performance_schema_max_memory_classes); the last shares the first entry, that
of blocks without a key. InnoDB's blocks without a key have an entry behind
those of the keys. */
constexpr uint32_t max_keys = 1024;
constexpr uint32_t tag_table_size = max_keys + 1;

}  // namespace memdiag

extern "C" {
/** Defined by the patched my_malloc.cc. Written by memdiag_note_instrument()
and when a route is changed: a block keeps the tag it was allocated with. */
extern memdiag::Packed_tag memdiag_tags[memdiag::tag_table_size];

/** A memory instrument has been registered.
@param key  what Performance Schema gave it; 0: it gave none
@return the key to use */
[[gnu::weak]] uint32_t memdiag_note_instrument(const char *category,
                                               const char *name, uint32_t key);

/** The tag of blocks that are allocated at a place (mysys/memdiag/routes/places.h) now. */
[[gnu::weak]] memdiag::Packed_tag memdiag_tag_of_place(uint16_t place);

/** Allocate a block for a tag that is not 0. @return nullptr: no memory */
[[gnu::weak]] void *memdiag_allocate(memdiag::Packed_tag tag, size_t size,
                                     bool zero);
/** Free it. @param size  as at its allocation; 0: not known */
[[gnu::weak]] void memdiag_free(memdiag::Packed_tag tag, void *block,
                                size_t size);

/** Performance Schema's own memory, which it keeps no tag with.
@param alignment  a power of two up to 64
@param zero       as the system gives pages: what is never written takes none */
void *memdiag_perfschema_allocate(size_t size, size_t alignment, bool zero);
void memdiag_perfschema_free(void *block);

/** Blocks of a place (mysys/memdiag/routes/places.h) that keeps no tag with them: freeing
asks the allocator where they came from, so they should be large. */
[[gnu::weak]] void *memdiag_place_allocate(uint16_t place, size_t size);
[[gnu::weak]] void memdiag_place_free(uint16_t place, void *block);

/** See mysys/memdiag/pages/regions.h. @param key  the memory key it is accounted to */
[[gnu::weak]] void memdiag_region_add(uint32_t key, void *address,
                                      size_t bytes);
[[gnu::weak]] void memdiag_region_remove(void *address);
/** The calling thread has begun; it may be called again. */
[[gnu::weak]] void memdiag_thread_begins();
}

namespace memdiag {

/** The tag of a block of that size that is allocated under a key now. */
inline Packed_tag tag_of_key(uint32_t key, size_t size) {
  const Packed_tag tag =
      __atomic_load_n(&memdiag_tags[key % max_keys], __ATOMIC_RELAXED);
  return tag_of_block(tag, size, large_block);
}

/** The same for InnoDB's allocators. */
inline Packed_tag tag_of_innodb_key(uint32_t key, size_t size) {
  return key != 0 ? tag_of_key(key, size)
                  : __atomic_load_n(&memdiag_tags[max_keys], __ATOMIC_RELAXED);
}

/** Where my_malloc() keeps a block's tag: behind what its header holds.
@param header_size  from the header's begin to the block */
template <size_t header_size, typename Header>
Packed_tag &tag_behind(Header *header) {
  static_assert(sizeof(Header) + sizeof(Packed_tag) <= header_size);
  return *reinterpret_cast<Packed_tag *>(header + 1);
}

/** Memory that came from the system and not from an allocator. */
inline void region_added(uint32_t key, void *address, size_t bytes) {
  if (memdiag_region_add != nullptr) memdiag_region_add(key, address, bytes);
}
inline void region_removed(void *address) {
  if (memdiag_region_remove != nullptr) memdiag_region_remove(address);
}

/** Notes instruments once a registration function has returned. */
template <typename Info>
class Instruments {
 public:
  Instruments(const char *category, Info *info, int count)
      : m_category(category), m_info(info), m_count(count) {}
  ~Instruments() {
    if (memdiag_note_instrument == nullptr) return;
    for (int i = 0; i < m_count; ++i)
      *m_info[i].m_key = memdiag_note_instrument(m_category, m_info[i].m_name,
                                                 *m_info[i].m_key);
  }
  Instruments(const Instruments &) = delete;
  Instruments &operator=(const Instruments &) = delete;

 private:
  const char *const m_category;
  Info *const m_info;
  const int m_count;
};

}  // namespace memdiag

#endif  // MEMDIAG_HOOKS_H
