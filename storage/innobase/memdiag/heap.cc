// mem0mem.h includes memdiag/heap.h behind what InnoDB's headers need first.
#include "mem0mem.h"

#include <new>

#include "mysql/psi/mysql_memory.h"

namespace memdiag {
namespace {

/** The values that Performance Schema needs again when the block is freed. Its
size keeps the block behind it aligned as malloc() would. */
struct alignas(alignof(std::max_align_t)) Block_header {
#ifdef HAVE_PSI_MEMORY_INTERFACE
  PSI_thread *owner;
  PSI_memory_key key;
#endif
};

}  // namespace

void *heap_block_allocate(Packed_tag tag, PSI_memory_key key [[maybe_unused]],
                          size_t size) {
  const size_t total = sizeof(Block_header) + size;
  void *memory = memdiag_allocate(tag_of_heap_block(tag, total), total, false);
  if (memory == nullptr) return nullptr;
  auto *header = new (memory) Block_header;
#ifdef HAVE_PSI_MEMORY_INTERFACE
  header->key = PSI_MEMORY_CALL(memory_alloc)(key, total, &header->owner);
#endif
  return header + 1;
}

void heap_block_free(Packed_tag tag, void *block, size_t size) {
  auto *header = static_cast<Block_header *>(block) - 1;
  const size_t total = sizeof(Block_header) + size;
#ifdef HAVE_PSI_MEMORY_INTERFACE
  PSI_MEMORY_CALL(memory_free)(header->key, total, header->owner);
#endif
  memdiag_free(tag_of_heap_block(tag, total), header, total);
}

}  // namespace memdiag
