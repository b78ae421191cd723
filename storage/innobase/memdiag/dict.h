#ifndef MEMDIAG_DICT_H
#define MEMDIAG_DICT_H

/**
  @file storage/innobase/memdiag/dict.h
  Sizes the memory of InnoDB's dictionary objects by their content
  (patches/diets/0015-dict-heaps.patch).

  Ownership: the memory lies in the heap of the table or index, and is freed
  with it. Threads: whatever guards the object guards this. Units: bytes.
*/

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "data0type.h"
#include "mem0mem.h"

namespace memdiag {

/** Allocates from the heap of an index. InnoDB's dictionary cache adds up the
heaps of its indexes. It is told if the index is one of them: IMPORT TABLESPACE
changes such an index. Takes the dictionary's mutex then; the caller has not.
@param[in,out] heap    the heap of the index
@param[in]     cached  the index is in the cache */
void *allocate_in_index(mem_heap_t *heap, bool cached, size_t size);

/** The number of nullable columns in each row version. Few tables have more
than one row version (INSTANT columns), and an array for all versions takes 1
KB, so the array is made only for those. All zeros are a valid empty object:
upstream creates its objects by zeroing memory. */
template <size_t versions>
class Nullables {
 public:
  /** Set all numbers to 0.
  @tparam         Index  dict_index_t
  @param[in,out]  index  the owner
  @param[in]      last   the highest row version of the table */
  template <typename Index>
  void clear(Index *index, uint32_t last) {
    if (last > 0 && m_all == nullptr) {
      m_all = static_cast<uint32_t *>(
          allocate_in_index(index->heap, index->cached, size));
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

/** Room for the name and for other single objects. */
constexpr size_t dict_heap_rest = 300;

/** The size of the first block of a table's heap.
@tparam    Table     dict_table_t; the including header defines it
@param[in] n_cols    columns, without those that InnoDB adds
@param[in] n_v_cols  virtual columns */
template <typename Table>
size_t table_heap_size(size_t n_cols, size_t n_v_cols) {
  constexpr size_t name = 16;  // room for a column's name
  return sizeof(Table) +
         (n_cols + DATA_N_SYS_COLS) * (sizeof(*Table::cols) + name) +
         n_v_cols * sizeof(*Table::v_cols) + dict_heap_rest;
}

/** The size of the first block of an index's heap.
@tparam Index  dict_index_t */
template <typename Index>
size_t index_heap_size(size_t n_fields) {
  return sizeof(Index) + n_fields * sizeof(*Index::fields) + dict_heap_rest;
}

}  // namespace memdiag

#endif  // MEMDIAG_DICT_H
