/*
  Collector: what InnoDB knows of its own memory.

  Free of InnoDB's headers, so that the plugin includes it. Everything is copied
  out; nothing is owned. Callers are sessions, and threads that end with the
  plugin, which the server stops before it stops InnoDB. While InnoDB is not up
  there is nothing to read, and nothing is what they get.
*/

#ifndef MEMDIAG_INNODB_H
#define MEMDIAG_INNODB_H

#include <cstdint>
#include <optional>

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

/** Reads lengths of lists, which are atomic, without a mutex: they are apart by
what happens meanwhile. */
std::optional<Buffer_pool> buffer_pool();

}  // namespace memdiag::innodb

#endif  // MEMDIAG_INNODB_H
