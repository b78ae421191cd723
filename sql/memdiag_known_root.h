/*
  The memory root of a prepared statement takes blocks of the sizes that the
  same text needed before (patches/0047). mysys/memdiag/routes/root_sizes.h
  tells why that is known.

  Only blocks that are taken while an object lives are concerned. What the first
  execution adds goes into small ones.

  Threads: the one that fills the root. Units: bytes.
*/

#ifndef MEMDIAG_KNOWN_ROOT_H
#define MEMDIAG_KNOWN_ROOT_H

#include <cstddef>
#include <functional>
#include <string_view>

#include "my_alloc.h"
#include "my_psi_config.h"
#include "mysql/components/services/bits/psi_memory_bits.h"
#include "mysys/memdiag/routes/root_blocks.h"
#include "mysys/memdiag/routes/root_sizes.h"

namespace memdiag {

inline constinit Root_sizes root_sizes;

/** While it lives, its thread fills a root for a text. Other roots of this
thread with the same key should not grow meanwhile. */
class Known_root {
 public:
  /** @param root  lives longer
      @param key   of the root's memory */
  Known_root(MEM_ROOT *root, PSI_memory_key key, const char *text,
             size_t length)
      : m_root(root), m_text(std::hash<std::string_view>()({text, length})) {
    const size_t bytes = root_sizes.find(m_text);
    root_blocks::expected = {key, bytes};
    // PREPARE in SQL has put the statement's name there already.
    const size_t has = root->allocated_size();
    const size_t usual = has == 0 ? first_room : root_blocks::kept_least;
    if (bytes > has && bytes - has < usual)
      root->set_block_size(root_blocks::size_for(bytes - has));
  }
  Known_root(const Known_root &) = delete;
  Known_root &operator=(const Known_root &) = delete;

  ~Known_root() {
    const auto [begin, end] = m_root->Peek();
    root_sizes.note(m_text, m_root->allocated_size() - (end - begin));
    root_blocks::expected = m_before;
  }

 private:
  /** Of the first block by default. */
  static constexpr size_t first_room = 8192 - root_blocks::headers;

  MEM_ROOT *const m_root;
  const size_t m_text;
  const root_blocks::Expected m_before{root_blocks::expected};
};

}  // namespace memdiag

#endif  // MEMDIAG_KNOWN_ROOT_H
