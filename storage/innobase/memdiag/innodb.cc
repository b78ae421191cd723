#include "storage/innobase/memdiag/innodb.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "btr0sea.h"
#include "buf0buf.h"
#include "dict0dict.h"
#include "fil0fil.h"
#include "fts0fts.h"
#include "fts0types.h"
#include "ha_innodb.h"
#include "hash0hash.h"
#include "ibuf0ibuf.h"
#include "lock0guards.h"
#include "lock0lock.h"
#include "log0log.h"
#include "log0recv.h"
#include "mem0mem.h"
#include "mysys/memdiag/base/clock.h"
#include "mysys/memdiag/base/fault.h"
#include "mysys/memdiag/routes/routes.h"
#include "read0read.h"
#include "sql/mysqld.h"
#include "srv0shutdown.h"
#include "srv0srv.h"
#include "srv0start.h"
#include "srv0tmp.h"
#include "storage/innobase/memdiag/asked_caches.h"
#include "storage/innobase/memdiag/balloon.h"
#include "trx0purge.h"
#include "trx0rseg.h"
#include "trx0sys.h"
#include "trx0trx.h"
#include "univ.i"

namespace memdiag::innodb {
namespace {

/** True from the end of InnoDB's start until its shutdown begins to free
memory. */
bool is_up() {
  return buf_pool_ptr != nullptr && !srv_is_being_started &&
         srv_shutdown_state.load() < SRV_SHUTDOWN_CLEANUP;
}

/** Takes the dictionary's mutex, unless others hold it for more than a
millisecond. */
class Dictionary_guard {
 public:
  Dictionary_guard() {
    for (int tries = 10; tries > 0; --tries) {
      m_owned = !fault::at(fault::Point::dictionary) &&
                mutex_enter_nowait(&dict_sys->mutex) == 0;
      if (m_owned) return;
      std::this_thread::sleep_for(std::chrono::microseconds{100});
    }
  }
  ~Dictionary_guard() {
    if (m_owned) mutex_exit(&dict_sys->mutex);
  }
  Dictionary_guard(const Dictionary_guard &) = delete;
  Dictionary_guard &operator=(const Dictionary_guard &) = delete;
  explicit operator bool() const { return m_owned; }

 private:
  bool m_owned = false;
};

void set_cells(Component *component, uint64_t cells) {
  component->items = cells;
  component->bytes = cells * sizeof(hash_cell_t);
}

void read_data_pages(const Buffer_pool &pool, Component *component) {
  buf_pools_list_size_t sizes;
  buf_get_total_list_size_in_bytes(&sizes);
  component->bytes = sizes.LRU_bytes + sizes.unzip_LRU_bytes;
  component->items = pool.data_pages;
}

void read_dirty_pages(const Buffer_pool &pool, Component *component) {
  buf_pools_list_size_t sizes;
  buf_get_total_list_size_in_bytes(&sizes);
  component->bytes = sizes.flush_list_bytes;
  component->items = pool.dirty_pages;
}

void read_free_pages(const Buffer_pool &pool, Component *component) {
  component->bytes = pool.free_pages * pool.page_size;
  component->items = pool.free_pages;
}

void read_parked_pages(const Buffer_pool &pool, Component *component) {
  component->bytes = balloon::parked_bytes();
  component->items = *component->bytes / pool.page_size;
}

void read_misc_pages(const Buffer_pool &pool, Component *component) {
  // Compressed pages without a frame are in the list of data pages too.
  const uint64_t other = pool.data_pages + pool.free_pages +
                         balloon::parked_bytes() / pool.page_size;
  if (other > pool.total_pages) return;
  component->items = pool.total_pages - other;
  component->bytes = *component->items * pool.page_size;
}

// buf_chunk_init()
void read_control_blocks(const Buffer_pool &pool, Component *component) {
  component->items = pool.total_pages;
  component->bytes = pool.total_pages * sizeof(buf_block_t);
}

// See buf_pool_create() and buf_pool_resize_hash(). A resize of the buffer pool
// replaces zip_hash but not page_hash, so only page_hash is safe to read. Both
// have the same number of cells.
void read_page_hash(const Buffer_pool &, Component *component) {
  uint64_t cells = 0;
  for (ulint i = 0; i < srv_buf_pool_instances; ++i)
    cells += 2 * buf_pool_from_array(i)->page_hash->get_n_cells();
  set_cells(component, cells);
}

/** Calls add(table) for the hash table of each part, under the part's latch. */
template <typename Add>
void for_each_adaptive_hash_table(Add add) {
  for (ulong i = 0; i < btr_ahi_parts; ++i) {
    auto &part = btr_search_sys->parts[i];
    rw_lock_s_lock(&part.latch, UT_LOCATION_HERE);
    add(*part.hash_table);
    rw_lock_s_unlock(&part.latch);
  }
}

void read_adaptive_hash_cells(const Buffer_pool &, Component *component) {
  uint64_t cells = 0;
  for_each_adaptive_hash_table(
      [&](const hash_table_t &table) { cells += table.get_n_cells(); });
  set_cells(component, cells);
}

void read_adaptive_hash_entries(const Buffer_pool &, Component *component) {
  uint64_t bytes = 0;
  for_each_adaptive_hash_table([&](const hash_table_t &table) {
    // All blocks of the heap but the first are pages.
    bytes += mem_heap_get_size(table.heap) - mem_block_get_len(table.heap);
  });
  component->bytes = bytes;
}

void read_views(const Buffer_pool &, Component *component) {
  component->items = trx_sys->mvcc->size();
}

void read_dictionary(const Buffer_pool &, Component *component) {
  component->bytes = dict_sys->size;
  component->items = UT_LIST_GET_LEN(dict_sys->table_LRU) +
                     UT_LIST_GET_LEN(dict_sys->table_non_LRU);
}

void read_dictionary_hash_tables(const Buffer_pool &, Component *component) {
  const Dictionary_guard guard;
  component->busy = !guard;
  if (guard)
    set_cells(component, dict_sys->table_hash->get_n_cells() +
                             dict_sys->table_id_hash->get_n_cells());
}

/** So many tables are searched for temporary ones. */
constexpr uint64_t sampled_tables = 2000;

/** Sessions' temporary tables are among those that cannot be evicted, the
newest of which come first. */
void read_temporary_tables(const Buffer_pool &, Component *component) {
  const Dictionary_guard guard;
  component->busy = !guard;
  if (!guard) return;
  uint64_t seen = 0;
  uint64_t tables = 0;
  uint64_t bytes = 0;
  for (const dict_table_t *table : dict_sys->table_non_LRU) {
    if (seen == sampled_tables) break;
    ++seen;
    if (!table->is_temporary() || table->is_intrinsic()) continue;
    ++tables;
    bytes += mem_heap_get_size(table->heap);
    for (const dict_index_t *index : table->indexes)
      bytes += mem_heap_get_size(index->heap);
  }
  const uint64_t all = UT_LIST_GET_LEN(dict_sys->table_non_LRU);
  const double scale =
      seen == 0 ? 0 : static_cast<double>(all) / static_cast<double>(seen);
  component->items = static_cast<uint64_t>(scale * static_cast<double>(tables));
  component->bytes = static_cast<uint64_t>(scale * static_cast<double>(bytes));
}

/** More tables are not searched for full-text caches: the dictionary's mutex
would be held for more than a millisecond. */
constexpr size_t max_tables = 10000;

/** Calls visit(table) for each table that has a full-text cache. Such tables
are never evicted (fts_optimize_add_table()), so only those that cannot be
evicted are searched, under the same mutex as in fts_is_sync_needed().
@return false: another thread holds the dictionary's mutex */
template <typename Visit>
bool for_each_full_text_cache(Visit visit) {
  const Dictionary_guard guard;
  if (!guard) return false;
  for (dict_table_t *table : dict_sys->table_non_LRU)
    if (table->fts != nullptr && table->fts->cache != nullptr) visit(table);
  return true;
}

bool has_too_many_tables() {
  return UT_LIST_GET_LEN(dict_sys->table_non_LRU) > max_tables;
}

void read_full_text_caches(const Buffer_pool &, Component *component) {
  component->limit_bytes = fts_max_total_cache_size;
  if (has_too_many_tables()) return;
  uint64_t bytes = 0;
  uint64_t tables = 0;
  component->busy = !for_each_full_text_cache([&](const dict_table_t *table) {
    bytes += table->fts->cache->total_size;
    ++tables;
  });
  if (component->busy) return;
  component->bytes = bytes;
  component->items = tables;
}

void read_files(const Buffer_pool &, Component *component) {
  component->items = fil_n_files_open.load();
}

void read_lock_hash_tables(const Buffer_pool &, Component *component) {
  const locksys::Global_shared_latch_guard guard{UT_LOCATION_HERE};
  set_cells(component, lock_sys->rec_hash.get_n_cells() +
                           lock_sys->prdt_hash.get_n_cells() +
                           lock_sys->prdt_page_hash.get_n_cells());
}

void read_recovery(const Buffer_pool &, Component *component) {
  component->bytes =
      sizeof *recv_sys + (recv_sys->buf != nullptr ? recv_sys->buf_len : 0) +
      recv_sys->saved_recs.capacity() * sizeof(recv_sys_t::Mlog_record);
}

void read_change_buffer(const Buffer_pool &pool, Component *component) {
  component->items = ibuf->size;
  component->limit_bytes = ibuf->max_size * pool.page_size;
}

void read_log_buffer(const Buffer_pool &, Component *component) {
  component->bytes = log_sys->buf_size;
}

void read_recent_written(const Buffer_pool &, Component *component) {
  using Link = std::atomic<Link_buf<lsn_t>::Distance>;
  component->items = log_sys->recent_written.capacity();
  component->bytes = *component->items * sizeof(Link);
}

void read_write_ahead_buffer(const Buffer_pool &, Component *component) {
  component->bytes = log_sys->write_ahead_buf_size;
}

void read_transactions(const Buffer_pool &, Component *component) {
  component->items = UT_LIST_GET_LEN(trx_sys->mysql_trx_list);
}

void read_rollback_segments(const Buffer_pool &, Component *component) {
  trx_sys->tmp_rsegs.s_lock();
  uint64_t segments = trx_sys->tmp_rsegs.size();
  trx_sys->tmp_rsegs.s_unlock();
  undo::spaces->s_lock();
  for (const auto space : undo::spaces->m_spaces) {
    space->rsegs()->s_lock();
    segments += space->rsegs()->size();
    space->rsegs()->s_unlock();
  }
  undo::spaces->s_unlock();
  component->items = segments;
}

/** A component. Its reader fills in the bytes. If no other component shares its
route, the bytes are the route's live bytes instead; the route's blocks are then
the items, unless the reader counts items. */
struct Declared {
  const char *name;
  const char *item = nullptr;
  const char *route = nullptr;
  bool has_route_for_itself = false;
  const char *region = nullptr;
  const char *part_of = nullptr;
  const char *note;
  void (*read)(const Buffer_pool &, Component *) = nullptr;
};

constexpr const char *without_key = "innodb/(without key)";
constexpr const char *buffer_pool_region = "buffer_pool";

constexpr Declared declared[] = {
    {.name = "buffer_pool_data",
     .item = "pages",
     .region = buffer_pool_region,
     .note = "Pages with data of files, dirty ones among them.",
     .read = read_data_pages},
    {.name = "buffer_pool_dirty",
     .item = "pages",
     .region = buffer_pool_region,
     .part_of = "buffer_pool_data",
     .note = "Pages that are to be written to their files.",
     .read = read_dirty_pages},
    {.name = "buffer_pool_free",
     .item = "pages",
     .region = buffer_pool_region,
     .note =
         "Pages that hold nothing. Those that never did, or that the ceiling "
         "returned, take no physical memory.",
     .read = read_free_pages},
    {.name = "buffer_pool_parked",
     .item = "pages",
     .region = buffer_pool_region,
     .note =
         "Pages that the ceiling has given back to the kernel. They take no "
         "physical memory. InnoDB counts them as occupied.",
     .read = read_parked_pages},
    {.name = "buffer_pool_misc",
     .item = "pages",
     .region = buffer_pool_region,
     .note = "Pages that serve otherwise: adaptive hash index, locks, "
             "compressed pages. NULL where compressed pages make the count of "
             "data pages larger than the pool.",
     .read = read_misc_pages},
    {.name = "buffer_pool_control_blocks",
     .item = "blocks",
     .region = buffer_pool_region,
     .note = "The descriptor of each page.",
     .read = read_control_blocks},
    {.name = "page_hash",
     .item = "cells",
     .route = without_key,
     .note = "Hash tables by which InnoDB finds pages and compressed pages. "
             "They become resident as pages are added.",
     .read = read_page_hash},
    {.name = "adaptive_hash_index_cells",
     .item = "cells",
     .route = without_key,
     .note = "There whether or not innodb_adaptive_hash_index is ON.",
     .read = read_adaptive_hash_cells},
    {.name = "adaptive_hash_index_entries",
     .region = buffer_pool_region,
     .part_of = "buffer_pool_misc",
     .note = "Without the first 4 KB of each part, which are no page.",
     .read = read_adaptive_hash_entries},
    {.name = "read_views",
     .item = "open views",
     .route = "memory/innodb/read0read",
     .has_route_for_itself = true,
     .note = "BYTES has all views, open or kept for the next; InnoDB starts "
             "with 1,024.",
     .read = read_views},
    {.name = "dictionary_objects",
     .item = "tables",
     .route = "mem_heap/dictionary",
     .note = "Tables and indexes in InnoDB's dictionary, as InnoDB's monitor "
             "counts them (Dictionary memory allocated).",
     .read = read_dictionary},
    {.name = "temporary_tables",
     .item = "tables",
     .route = "mem_heap/dictionary",
     .part_of = "dictionary_objects",
     .note = "Those that sessions created. Of more than 2,000 tables that "
             "cannot be evicted, an estimate by the newest.",
     .read = read_temporary_tables},
    {.name = "dictionary_hash_tables",
     .item = "cells",
     .route = without_key,
     .note = "Hash tables by which InnoDB finds tables.",
     .read = read_dictionary_hash_tables},
    {.name = "file_system",
     .item = "open files",
     .route = "memory/innodb/fil0fil",
     .has_route_for_itself = true,
     .note = "Tablespaces; without their names and lists of files.",
     .read = read_files},
    {.name = "lock_hash_tables",
     .item = "cells",
     .route = without_key,
     .note = "Hash tables by which InnoDB finds locks of rows, predicates and "
             "pages.",
     .read = read_lock_hash_tables},
    {.name = "lock_cells_in_use",
     .route = "memory/innodb/lock_sys",
     .has_route_for_itself = true,
     .note = "Marks of those cells of lock_hash_tables that have locks."},
    {.name = "lock_objects",
     .route = "memory/innodb/lock0lock",
     .has_route_for_itself = true,
     .note = "The lock system, its waiting threads, and the locks that each "
             "transaction object has in store. Further locks are in heaps of "
             "the transactions: route mem_heap/transaction, and "
             "buffer_pool_misc where they grow."},
    {.name = "recovery_system",
     .route = "memory/innodb/log0recv",
     .note = "Structures that InnoDB keeps after recovery has ended.",
     .read = read_recovery},
    {.name = "full_text_caches",
     .item = "tables",
     .route = "mem_heap/fts",
     .note = "Words not yet in their index, as counted against "
             "innodb_ft_cache_size; the limit is innodb_ft_total_cache_size. "
             "NULL with more than 10,000 tables that cannot be evicted.",
     .read = read_full_text_caches},
    {.name = "change_buffer",
     .item = "pages",
     .region = buffer_pool_region,
     .part_of = "buffer_pool_data",
     .note = "ITEMS is the size of its tree on disk. BYTES is NULL: InnoDB "
             "does not know how many of these pages are in memory.",
     .read = read_change_buffer},
    {.name = "redo_log_buffer",
     .route = "memory/innodb/log_buffer_memory",
     .note =
         "innodb_log_buffer_size; resident from the first use of each page.",
     .read = read_log_buffer},
    {.name = "redo_recent_written",
     .item = "links",
     .route = "memory/innodb/ut0link_buf",
     .note = "Marks of the parts of the log buffer that have been written.",
     .read = read_recent_written},
    {.name = "redo_write_ahead_buffer",
     .route = "memory/innodb/log0log",
     .note = "innodb_log_write_ahead_size.",
     .read = read_write_ahead_buffer},
    {.name = "transactions",
     .item = "transactions",
     .route = "memory/innodb/ut0pool",
     .has_route_for_itself = true,
     .note = "BYTES has all transaction objects, ITEMS those of sessions. The "
             "blocks of 4 MB become resident as objects are used.",
     .read = read_transactions},
    {.name = "rollback_segments",
     .item = "segments",
     .route = "memory/innodb/trx0rseg",
     .has_route_for_itself = true,
     .note = "Of undo tablespaces and of the temporary tablespace.",
     .read = read_rollback_segments},
    {.name = "undo_logs",
     .item = "logs",
     .route = "memory/innodb/trx0undo",
     .has_route_for_itself = true,
     .note = "Descriptors of undo logs in use or kept for the next; the logs "
             "are pages."},
};

std::optional<const char *> text(const char *text) {
  return text == nullptr ? std::nullopt : std::optional{text};
}

}  // namespace

std::optional<Buffer_pool> buffer_pool() {
  if (!is_up()) return std::nullopt;
  ulint data;
  ulint free;
  ulint dirty;
  buf_get_total_list_len(&data, &free, &dirty);
  return Buffer_pool{UNIV_PAGE_SIZE, data, dirty, free, buf_pool_get_n_pages()};
}

// A heap belongs to its transaction's object for as long as that is in the
// list. Its size may change meanwhile.
std::optional<Row_locks> row_locks(uint64_t worth_bytes) {
  const auto pool = buffer_pool();
  if (!pool) return std::nullopt;
  Component misc{};
  read_misc_pages(*pool, &misc);
  if (misc.bytes.value_or(0) < worth_bytes) return std::nullopt;
  Row_locks all{};
  trx_sys_mutex_enter();
  for (const trx_t *const trx : trx_sys->mysql_trx_list) {
    const uint64_t bytes = trx->lock.lock_heap->total_size;
    all.bytes += bytes;
    if (bytes <= all.largest_bytes || trx->mysql_thd == nullptr) continue;
    all.largest_bytes = bytes;
    all.largest_processlist_id = thd_get_thread_id(trx->mysql_thd);
  }
  // The list above has only those of sessions.
  for (const trx_t *const trx : trx_sys->rw_trx_list)
    if (trx->mysql_thd == nullptr && trx_state_eq(trx, TRX_STATE_PREPARED))
      all.prepared_bytes += trx->lock.lock_heap->total_size;
  trx_sys_mutex_exit();
  all.bytes += all.prepared_bytes;
  // The first blocks of a heap are in pool transaction.
  all.bytes = std::min(all.bytes, *misc.bytes);
  all.largest_bytes = std::min(all.largest_bytes, *misc.bytes);
  all.prepared_bytes = std::min(all.prepared_bytes, *misc.bytes);
  return all;
}

// This is safe beside a shutdown: fts_optimize_shutdown() announces its end
// under the dictionary's mutex before it frees the queue of requests. Later
// requests are ignored.
std::optional<uint64_t> write_full_text_caches(uint64_t worth_bytes) {
  if (!is_up() || srv_shutdown_state.load() != SRV_SHUTDOWN_NONE ||
      has_too_many_tables())
    return std::nullopt;
  static Asked_caches caches;
  caches.begin(clock_us(CLOCK_MONOTONIC));
  const bool asked = for_each_full_text_cache([&](dict_table_t *table) {
    const uint64_t bytes = table->fts->cache->total_size;
    if (bytes >= worth_bytes && caches.see(table->id, bytes))
      fts_optimize_request_sync_table(table);
  });
  return asked ? std::optional{caches.end()} : std::nullopt;
}

std::vector<Component> components() {
  std::vector<Component> rows;
  const std::optional<Buffer_pool> pool = buffer_pool();
  if (!pool) return rows;
  const std::vector<routes::Row> all_routes = routes::all();
  for (const Declared &of : declared) {
    Component row{.name = of.name,
                  .item = text(of.item),
                  .route = text(of.route),
                  .region = text(of.region),
                  .part_of = text(of.part_of),
                  .note = of.note};
    if (of.read != nullptr) of.read(*pool, &row);
    const auto route = std::find_if(
        all_routes.begin(), all_routes.end(), [&of](const routes::Row &each) {
          return of.route != nullptr && each.name == of.route;
        });
    if (route != all_routes.end()) {
      row.pool = route->pool_name;
      if (of.has_route_for_itself) {
        row.bytes = route->live_bytes;
        if (of.item != nullptr && !row.items) row.items = route->live_blocks;
      }
    }
    rows.push_back(row);
  }
  return rows;
}

std::optional<uint64_t> buffer_pool_unit_bytes() {
  const auto status = buf_pool_resize_status_code.load();
  if (!is_up() ||
      (status != BUF_POOL_RESIZE_COMPLETE && status != BUF_POOL_RESIZE_FAILED))
    return std::nullopt;
  return srv_buf_pool_chunk_unit * srv_buf_pool_instances;
}

uint64_t lock_bytes(const void *thd) {
  if (!is_up()) return 0;
  const trx_t *const trx =
      thd_to_trx(static_cast<THD *>(const_cast<void *>(thd)));
  if (trx == nullptr || trx->lock.lock_heap == nullptr) return 0;
  return mem_heap_get_size(trx->lock.lock_heap);
}

bool rolls_back(const void *thd) {
  if (!is_up()) return false;
  // thd_to_trx() makes a session that has none.
  const auto *const session = static_cast<const innodb_session_t *>(
      *thd_ha_data(static_cast<const THD *>(thd), innodb_hton));
  return session != nullptr && session->m_trx != nullptr &&
         session->m_trx->lock.que_state == TRX_QUE_ROLLING_BACK;
}

std::span<const std::byte> log_buffer() {
  if (!is_up()) return {};
  const byte *const begin = log_sys->buf;
  // A change of its size may be half done.
  if (begin == nullptr) return {};
  return {reinterpret_cast<const std::byte *>(begin), log_sys->buf_size};
}

const char *temporary_tablespaces_folder() { return ibt::srv_temp_dir; }

std::optional<bool> numa_interleave() {
#ifdef HAVE_LIBNUMA
  return srv_numa_interleave;
#else
  return std::nullopt;
#endif
}

}  // namespace memdiag::innodb
