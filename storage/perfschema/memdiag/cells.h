/*
  Memory for short texts of Performance Schema's records (patches/diets/0046).

  Upstream gives each record room for the longest text and the longest names.
  Here a record takes a cell of the size that it needs and keeps it when it
  serves another object.

  A cell has 64, 128, 256, 512 or 1,024 bytes and lies in a page of 64 KB. Cells
  that came back serve the next text of their size. Pages live as long as the
  process, as those of Performance Schema's records usually do.

  Readers of records take no lock. A reader may use the place of an old text
  with the length of the new one. No cell uses the last 1,024 bytes of a page,
  so even this read ends within the page.

  Plain C++ without any header of the server or of this layer. Ownership: the
  taker of a cell keeps it or gives it back. Threads: any. A thread holds the
  mutex for a few instructions or for the allocation of a page. Units: bytes.
*/

#ifndef MEMDIAG_PFS_CELLS_H
#define MEMDIAG_PFS_CELLS_H

#include <bit>
#include <cstddef>
#include <cstring>
#include <mutex>

namespace memdiag {

class Cells {
 public:
  static constexpr size_t smallest = 64;
  static constexpr unsigned kinds = 5;  ///< of sizes; each is twice the former
  static constexpr size_t greatest = smallest << (kinds - 1);
  static constexpr size_t page = 64 * 1024;

  /** @return zeros that live as long as the process, or a null pointer */
  using Allocate = void *(size_t bytes);

  constexpr explicit Cells(Allocate *allocate) : m_allocate(allocate) {}

  /** @param bytes  at most `greatest`
      @return the kind of the smallest cell that has so many */
  static constexpr unsigned kind_for(size_t bytes) {
    return bytes <= smallest ? 0 : std::bit_width((bytes - 1) / smallest);
  }
  static constexpr size_t size_of(unsigned kind) { return smallest << kind; }

  /** @return a cell with any content; a null pointer if there is no memory */
  char *take(unsigned kind) {
    const std::lock_guard guard(m_mutex);
    if (char *const cell = m_free[kind]; cell != nullptr) {
      memcpy(&m_free[kind], cell, sizeof(char *));
      return cell;
    }
    if (m_left < size_of(kind) && !add_page()) return nullptr;
    char *const cell = m_next;
    m_next += size_of(kind);
    m_left -= size_of(kind);
    return cell;
  }

  void give_back(char *cell, unsigned kind) {
    const std::lock_guard guard(m_mutex);
    memcpy(cell, &m_free[kind], sizeof(char *));
    m_free[kind] = cell;
  }

  /** @return bytes of all pages */
  size_t bytes() {
    const std::lock_guard guard(m_mutex);
    return m_pages * page;
  }

 private:
  bool add_page() {
    void *const memory = m_allocate(page);
    if (memory == nullptr) return false;
    m_next = static_cast<char *>(memory);
    m_left = page - greatest;
    ++m_pages;
    return true;
  }

  Allocate *const m_allocate;
  std::mutex m_mutex;
  char *m_free[kinds]{};  ///< each cell begins with the pointer to the next
  char *m_next = nullptr;
  size_t m_left = 0;  ///< bytes at m_next that cells can have
  size_t m_pages = 0;
};

}  // namespace memdiag

#endif  // MEMDIAG_PFS_CELLS_H
