#include "storage/temptable/memdiag/blocks.h"

#include <cstdint>

#include "mysql/psi/mysql_memory.h"
#include "mysys/memdiag/upstream/places.h"
#include "storage/temptable/include/temptable/allocator.h"

namespace memdiag::temptable_blocks {
namespace {

constinit thread_local bool counts_already = false;

}  // namespace

Counts_already::Counts_already() { counts_already = true; }
Counts_already::~Counts_already() { counts_already = false; }

void *allocate(size_t size) {
  void *const block = place_allocate(Place::temptable, size);
  // Upstream counts the size that its policy gives a block, in 32 bits. Such a
  // size is aligned, so the block adds no more than the header to it.
  if (block == nullptr && !counts_already)
    temptable::MemoryMonitor::RAM::decrease(
        static_cast<uint32_t>(size - PSI_HEADER_SIZE));
  return block;
}

void free(void *block) { place_free(Place::temptable, block); }

}  // namespace memdiag::temptable_blocks
