#ifndef MEMDIAG_DICT_H
#define MEMDIAG_DICT_H

/**
  @file storage/innobase/memdiag_dict.h
  Memory of InnoDB's dictionary objects as large as what goes into it:
  patches/0015-dict-heaps.patch. All of it lies in the object's own heap, is
  freed with it, and is guarded as the object is.
*/

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "data0type.h"
#include "mem0mem.h"

namespace memdiag {

/** Numbers of nullable columns by row version: one, until the table has INSTANT
columns, which few have; a number for each of them takes 1 KB. Zeroes are an
empty one: upstream makes its objects by zeroing memory. */
template <size_t versions>
class Nullables {
 public:
  /** Makes all of them 0.
  @param[in,out]  heap  the index's
  @param[in]      last  the highest row version of the table */
  void clear(mem_heap_t *heap, uint32_t last) {
    if (last > 0 && m_all == nullptr) {
      m_all = static_cast<uint32_t *>(mem_heap_alloc(heap, size));
    }
    m_first = 0;
    if (m_all != nullptr) std::memset(m_all, 0, size);
  }

  uint32_t &operator[](size_t version) {
    return m_all == nullptr ? m_first : m_all[version];
  }
  uint32_t operator[](size_t version) const {
    if (m_all != nullptr) return m_all[version];
    return version == 0 ? m_first : 0;
  }

 private:
  static constexpr size_t size = versions * sizeof(uint32_t);

  uint32_t *m_all{nullptr};
  uint32_t m_first{0};
};

/** For names, and what else there is one of. */
constexpr size_t dict_heap_rest = 300;

/** @return bytes of the first block of a table's heap
@tparam    Table     dict_table_t, which the header that includes this defines
@param[in] n_cols    columns, without those that InnoDB adds
@param[in] n_v_cols  virtual columns */
template <typename Table>
size_t table_heap_size(size_t n_cols, size_t n_v_cols) {
  constexpr size_t name = 16;  // of a column
  return sizeof(Table) +
         (n_cols + DATA_N_SYS_COLS) * (sizeof(*Table::cols) + name) +
         n_v_cols * sizeof(*Table::v_cols) + dict_heap_rest;
}

/** @return bytes of the first block of the heap of an index
@tparam Index  dict_index_t */
template <typename Index>
size_t index_heap_size(size_t n_fields) {
  return sizeof(Index) + n_fields * sizeof(*Index::fields) + dict_heap_rest;
}

}  // namespace memdiag

#endif  // MEMDIAG_DICT_H
