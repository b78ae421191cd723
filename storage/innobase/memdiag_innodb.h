/*
  Collector: what InnoDB knows of its own memory; and the request to write its
  full-text caches.

  Free of InnoDB's headers, so that the plugin includes it. Everything is copied
  out; nothing is owned. Callers are sessions, and threads that end with the
  plugin, which the server stops before it stops InnoDB. While InnoDB is not up
  there is nothing to read, and nothing is what they get.

  Locks: none for lengths, sizes and counters, which upstream's own monitor
  reads so too: they are apart by what happens meanwhile. Some components need a
  latch of InnoDB's, for as long as it takes to read a few numbers: the adaptive
  hash index (each part's, shared), the lock system's (shared), the list of read
  views (trx_sys->mutex), the undo tablespaces (shared). The dictionary's mutex,
  which others hold for long, is only tried.
*/

#ifndef MEMDIAG_INNODB_H
#define MEMDIAG_INNODB_H

#include <cstdint>
#include <optional>
#include <vector>

namespace memdiag::innodb {

/** Pages of all instances of the buffer pool. */
struct Buffer_pool {
  uint64_t page_size;
  /** Pages with data of a file, dirty_pages among them. */
  uint64_t data_pages;
  uint64_t dirty_pages;
  uint64_t free_pages;
  /** What is neither data nor free serves InnoDB otherwise. */
  uint64_t total_pages;
};

/** Reads lengths of lists, which are atomic. */
std::optional<Buffer_pool> buffer_pool();

/** A part of InnoDB's memory. Its bytes lie in a pool or in a region; what is
part_of another component is counted there too. */
struct Component {
  const char *name;
  std::optional<uint64_t> bytes{};
  /** What it may grow to. */
  std::optional<uint64_t> limit_bytes{};
  std::optional<uint64_t> items{};
  /** What is counted: pages, cells, tables. */
  std::optional<const char *> item{};
  /** The route that its blocks are taken under, and the route's pool. */
  std::optional<const char *> route{};
  std::optional<const char *> pool{};
  std::optional<const char *> region{};
  std::optional<const char *> part_of{};
  const char *note;
  /** Bytes are missing because somebody held the dictionary's mutex. */
  bool busy{false};
};

/** @throws std::bad_alloc */
std::vector<Component> components();

/** Have InnoDB's full-text thread write the caches of tables that have so much
in them, as it does when one is full.
@return what those caches have; empty: nobody was asked, because InnoDB is not
up, has more tables than can be looked at, or its dictionary is busy */
std::optional<uint64_t> write_full_text_caches(uint64_t worth_bytes);

struct Buffer_pool_size {
  /** innodb_buffer_pool_size, which is a multiple of the unit. */
  uint64_t bytes;
  uint64_t unit_bytes;
  /** What innodb_buffer_pool_instances needs. */
  uint64_t min_bytes;
};

/** Empty while InnoDB is not up, and while a change is under way. */
std::optional<Buffer_pool_size> buffer_pool_size();

/** innodb_numa_interleave, which only builds with NUMA have. */
std::optional<bool> numa_interleave();

/** Find the dictionary's mutex held from now on, to test what that looks like.
 */
void find_busy_for_test(bool busy);

}  // namespace memdiag::innodb

#endif  // MEMDIAG_INNODB_H
