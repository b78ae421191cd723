/*
  Collector: the sizes that InnoDB knows of its own memory. It also asks InnoDB
  to write its full-text caches.

  The plugin includes this header, so it includes none of InnoDB.
  Ownership: every result is a copy.
  Threads: sessions and the plugin's threads. The server stops the plugin before
  it stops InnoDB. While InnoDB is not up, results are empty.
  Locks: lengths, sizes and counters are read without a lock, as InnoDB's own
  monitor reads them, so they may be of slightly different moments. The
  following components take a latch while a few numbers are read: the adaptive
  hash index (one part at a time, shared), the lock system (shared), the list of
  read views (trx_sys->mutex), the undo tablespaces (shared). Others hold the
  dictionary's mutex for long, so it is only tried, for a millisecond.
  Errors: a figure that cannot be read is empty. Units: bytes; pages of
  page_size.
*/

#ifndef MEMDIAG_INNODB_H
#define MEMDIAG_INNODB_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace memdiag::innodb {

/** Pages of all instances of the buffer pool. */
struct Buffer_pool {
  uint64_t page_size;
  /** Pages that hold data of a file, including dirty_pages. */
  uint64_t data_pages;
  uint64_t dirty_pages;
  uint64_t free_pages;
  /** All pages. InnoDB uses the rest for other purposes. */
  uint64_t total_pages;
};

/** Read the lengths of lists, which are atomic. Empty: InnoDB is not up. */
std::optional<Buffer_pool> buffer_pool();

/** Locks that lie in pages of the buffer pool: a transaction's heap of locks
takes whole pages as it grows. */
struct Row_locks {
  uint64_t bytes;
  /** The session that has most of them, and what it has. */
  uint64_t largest_processlist_id;
  uint64_t largest_bytes;
  /** XA transactions that are prepared and whose session is gone have these. */
  uint64_t prepared_bytes;
};

/** Goes through the lists of transactions, under their mutex.
@return empty: less than `worth_bytes` of the buffer pool serve anything but
data, or InnoDB is not up */
std::optional<Row_locks> row_locks(uint64_t worth_bytes);

/** A part of InnoDB's memory. Its bytes lie in a pool or in a region. A
component with part_of is also counted in that other component. */
struct Component {
  const char *name;
  std::optional<uint64_t> bytes{};
  /** The size that it may grow to. */
  std::optional<uint64_t> limit_bytes{};
  std::optional<uint64_t> items{};
  /** The unit of `items`: pages, cells, tables. */
  std::optional<const char *> item{};
  /** The route of its blocks, and the route's pool. */
  std::optional<const char *> route{};
  std::optional<const char *> pool{};
  std::optional<const char *> region{};
  std::optional<const char *> part_of{};
  const char *note;
  /** Bytes are missing because another thread held the dictionary's mutex. */
  bool busy{false};
};

/** @throws std::bad_alloc */
std::vector<Component> components();

/** Where temporary tables on disk are. InnoDB's own, and set for good once it
is up; nullptr before. */
const char *temporary_tablespaces_folder();

/** Ask InnoDB's full-text thread to write large caches, as it does when one is
full. The thread writes them later. One that was asked for, and is as large as
then, is not asked for again. One caller at a time.
@param worth_bytes  write the caches of tables that hold at least this much
@return the bytes that have left such caches since the call before; empty if
nothing was asked, because InnoDB is not up, has too many tables to look at, or
its dictionary is busy
@throws std::bad_alloc */
std::optional<uint64_t> write_full_text_caches(uint64_t worth_bytes);

/** innodb_buffer_pool_size is a multiple of it. Empty while InnoDB is not up,
and while the size is being changed. */
std::optional<uint64_t> buffer_pool_unit_bytes();

/** The memory of the locks of a session's open transaction. Called by the
session's own thread. @param thd  a THD */
uint64_t lock_bytes(const void *thd);

/** A transaction of the session is rolled back, as a whole or in part. Called
by the session's own thread. Allocates nothing. @param thd  a THD */
bool rolls_back(const void *thd);

/** The calling thread computes a virtual column or a pushed condition within
InnoDB, or writes a row of INFORMATION_SCHEMA below a latch of InnoDB's. */
bool runs_sql();

/** The redo log buffer, to ask the system which of its pages are there. It
moves with innodb_log_buffer_size, so that nothing may be read or written there.
Empty: InnoDB is not up. */
std::span<const std::byte> log_buffer();

/** innodb_numa_interleave; empty in a build without NUMA. */
std::optional<bool> numa_interleave();

}  // namespace memdiag::innodb

#endif  // MEMDIAG_INNODB_H
