/*
  The functions that patched files of upstream call to allocate and free.

  Client programs link mysys too, and they have neither jemalloc nor pools. The
  functions are weak symbols there. The table of tags stays zero in a client, so
  my_malloc() never calls them.

  A tag names the route and the pool of a block; 0 is malloc(). my_malloc()
  finds the tag by the block's memory key and keeps it in the block's header
  until the block is freed. The keys are Performance Schema's. With
  performance_schema=OFF, memdiag_note_instrument() gives them.

  Ownership: a block belongs to its caller, who frees it with the same tag.
  Threads: any, without a mutex, except to make an arena and where a function
  says otherwise. A call may sleep for up to a second for a block that no cache
  holds, and much longer below the ceiling (mysys/memdiag/pools/pools.h).
  Units: bytes. Includes no header of the server or of this layer.
*/

#ifndef MEMDIAG_HOOKS_H
#define MEMDIAG_HOOKS_H

#include <stddef.h>
#include <stdint.h>

namespace memdiag {

/** Route in the lower half, pool in the upper. */
using Packed_tag = uint32_t;

/** A flag in an entry of the table of tags, or in a heap's tag: blocks up to a
limit come from malloc(), and only larger ones have the tag. large_block is the
limit of an instrument, large_heap_block the limit of a heap. */
constexpr Packed_tag only_large = 0x80000000;
constexpr size_t large_block = 16384;
constexpr size_t large_heap_block = 2048;

constexpr Packed_tag tag_of_block(Packed_tag tag, size_t size, size_t limit) {
  if (tag == 0)
    return 0;  // malloc(): one branch, which the caller's test joins
  if ((tag & only_large) == 0) return tag;
  return size > limit ? tag & ~only_large : 0;
}

/** Performance Schema has at most 1,024 memory classes
(performance_schema_max_memory_classes). Entry 0 is for blocks without a key;
key 1,024 shares it. The entry behind the keys is for InnoDB's blocks without a
key. */
constexpr uint32_t max_keys = 1024;
constexpr uint32_t tag_table_size = max_keys + 1;

}  // namespace memdiag

extern "C" {
/** The tag of each key. The patched my_malloc.cc defines the table;
memdiag_note_instrument() and changes of routes write it. A block keeps the tag
that it was allocated with. */
extern memdiag::Packed_tag memdiag_tags[memdiag::tag_table_size];

/** Performance Schema has registered a memory instrument. Takes a mutex.
@param key  the key that it gave; 0: it gave none
@return the key to use */
[[gnu::weak]] uint32_t memdiag_note_instrument(const char *category,
                                               const char *name, uint32_t key);

/** The tag for a new block of a place (mysys/memdiag/upstream/places.h). It may
have the flag only_large: tag_of_block() with the place's limit says which tag a
block of some size has. */
[[gnu::weak]] memdiag::Packed_tag memdiag_tag_of_place(uint16_t place);

/** Allocate a block. The flag only_large in a tag is ignored.
@return nullptr: no memory, or the ceiling refused the block */
[[gnu::weak]] void *memdiag_allocate(memdiag::Packed_tag tag, size_t size,
                                     bool zero);
/** Free a block. @param size  as at its allocation; 0: not known */
[[gnu::weak]] void memdiag_free(memdiag::Packed_tag tag, void *block,
                                size_t size);

/** Performance Schema's own memory. It keeps no tag with its blocks.
Allocating takes the mutex of the routes, to take over options.
@param alignment  a power of two up to 64
@param zero       zeros, as fresh pages are; a page that is never written takes
                  no memory */
void *memdiag_perfschema_allocate(size_t size, size_t alignment, bool zero);
void memdiag_perfschema_free(void *block);

/** Blocks of a place that keeps no tag with them. Freeing looks up the arena of
the block, which takes longer, so such blocks should be large. */
[[gnu::weak]] void *memdiag_place_allocate(uint16_t place, size_t size);
[[gnu::weak]] void memdiag_place_free(uint16_t place, void *block);

/** See mysys/memdiag/pages/regions.h. Adding takes the mutex of the routes,
then that of the regions; removing takes the second one.
@param key       the region's memory key; one that is not known:
                 Region_kind::other
@param reserved  it lies in huge pages that the system has reserved */
[[gnu::weak]] void memdiag_region_add(uint32_t key, void *address, size_t bytes,
                                      bool reserved = false);
[[gnu::weak]] void memdiag_region_remove(void *address);
/** The calling thread has begun. A second call changes nothing. The first one
takes the mutex of the stacks. */
[[gnu::weak]] void memdiag_thread_begins();
}

namespace memdiag {

/** The tag for a new block of that key and size. */
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

/** The tag in the header of a block of my_malloc(), behind the members of the
header.
@tparam header_size  bytes from the header to the block */
template <size_t header_size, typename Header>
Packed_tag &tag_behind(Header *header) {
  static_assert(sizeof(Header) + sizeof(Packed_tag) <= header_size);
  return *reinterpret_cast<Packed_tag *>(header + 1);
}

/** Report memory that was mapped without an allocator. */
inline void region_added(uint32_t key, void *address, size_t bytes) {
  if (memdiag_region_add != nullptr) memdiag_region_add(key, address, bytes);
}
/** The same in huge pages that the system has reserved (large_pages=ON). */
inline void reserved_region_added(uint32_t key, void *address, size_t bytes) {
  if (memdiag_region_add != nullptr)
    memdiag_region_add(key, address, bytes, true);
}
inline void region_removed(void *address) {
  if (memdiag_region_remove != nullptr) memdiag_region_remove(address);
}

/** Notes instruments when its scope ends, after Performance Schema has given
them keys. */
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
