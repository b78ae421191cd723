/*
  The buffer of a transaction's binary-log cache, in pool binlog.

  The buffer is an IO_CACHE's. All IO_CACHEs share one memory instrument, whose
  route leads to pool session, but a transaction holds up to binlog_cache_size
  here. Performance Schema keeps counting the buffer under the instrument of
  upstream: only the tag behind the block's header changes.

  The linker redirects the calls of open_cached_file() to this file (--wrap, in
  cmake/upstream/product.cmake). The caches of transactions are known by the
  name of their files.

  Ownership: the IO_CACHE owns the buffer and frees it as before; the tag names
  the pool. Threads: a session's own, a worker of a replica, one of group
  replication. Errors: without memory for the new buffer the cache keeps the one
  that it has.
*/

#include <cstring>

#include "my_sys.h"
#include "mysql/psi/mysql_memory.h"
#include "mysys/memdiag/upstream/hooks.h"
#include "sql/psi_memory_key.h"

bool open_by_server(
    IO_CACHE *cache, const char *folder, const char *prefix, size_t size,
    myf flags) asm("__real__Z16open_cached_fileP8IO_CACHEPKcS2_mi");
bool open_in_pool(
    IO_CACHE *cache, const char *folder, const char *prefix, size_t size,
    myf flags) asm("__wrap__Z16open_cached_fileP8IO_CACHEPKcS2_mi");

using namespace memdiag;

namespace {

/** Of Binlog_cache_storage::open() alone. */
constexpr const char *of_transactions = "ML";

/** Replace the buffer of a cache that was just opened for writing. */
void move_to_binlog_pool(IO_CACHE *cache) {
  if (memdiag_allocate == nullptr || cache->buffer == nullptr) return;
  my_memory_header *const old = USER_TO_HEADER(cache->buffer);
  const size_t size = PSI_HEADER_SIZE + old->m_size;
  const Packed_tag tag = tag_of_key(key_memory_binlog_cache_mngr, size);
  Packed_tag &old_tag = tag_behind<PSI_HEADER_SIZE>(old);
  if (tag == 0 || tag == old_tag) return;
  void *const block = memdiag_allocate(tag, size, false);
  if (block == nullptr) return;
  auto *const header = static_cast<my_memory_header *>(block);
  *header = *old;
  tag_behind<PSI_HEADER_SIZE>(header) = tag;
  memdiag_free(old_tag, old, size);
  cache->buffer = reinterpret_cast<uchar *>(HEADER_TO_USER(header));
  cache->write_buffer = cache->request_pos = cache->buffer;
  cache->read_pos = cache->write_pos = cache->buffer;
  cache->write_end = cache->buffer + cache->buffer_length;
}

}  // namespace

bool open_in_pool(IO_CACHE *cache, const char *folder, const char *prefix,
                  size_t size, myf flags) {
  if (open_by_server(cache, folder, prefix, size, flags)) return true;
  if (prefix != nullptr && strcmp(prefix, of_transactions) == 0)
    move_to_binlog_pool(cache);
  return false;
}
