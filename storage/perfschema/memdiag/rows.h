/*
  Estimates the number of rows of a table of Performance Schema, as upstream
  does.

  The optimizer makes plans from these estimates. Upstream derives them from the
  size of a container's pages, which are smaller here (patches/diets/0006). This
  header computes the estimate for upstream's page size, so plans stay the same.

  SHOW ENGINE PERFORMANCE_SCHEMA STATUS computes bytes from the same function of
  the containers. It gets the exact number (Exact_rows).

  Plain C++ without any header of the server or of this layer. Threads: any.
*/

#ifndef MEMDIAG_PFS_ROWS_H
#define MEMDIAG_PFS_ROWS_H

#include <cstddef>

struct PFS_account;
struct PFS_host;
struct PFS_table;
struct PFS_thread;
struct PFS_user;

namespace memdiag {

/** Rows in a page of upstream's container; 1: the page size is unchanged. */
template <class Row>
constexpr size_t rows_of_page = 1;
template <>
inline constexpr size_t rows_of_page<PFS_table> = 1024;
template <>
inline constexpr size_t rows_of_page<PFS_thread> = 256;
template <>
inline constexpr size_t rows_of_page<PFS_account> = 128;
template <>
inline constexpr size_t rows_of_page<PFS_user> = 128;
template <>
inline constexpr size_t rows_of_page<PFS_host> = 128;

/** @return bytes of the container of `Row` that are not in its rows */
template <class Row>
size_t bytes_beside_rows() {
  return 0;
}

/** While an object lives, its thread gets exact numbers instead of estimates.
 */
class Exact_rows {
 public:
  Exact_rows() { s_wanted = true; }
  ~Exact_rows() { s_wanted = false; }
  Exact_rows(const Exact_rows &) = delete;
  Exact_rows &operator=(const Exact_rows &) = delete;

  static bool are_wanted() { return s_wanted; }

 private:
  inline static constinit thread_local bool s_wanted = false;
};

/** The result of get_row_count() with upstream's pages. If the maximum is no
multiple of a page, upstream subtracts the rows that the last page lacks,
whether or not that page exists.
@param there  rows that have memory
@param most   maximum number of rows */
template <class Row>
size_t estimated_rows(size_t there, size_t most) {
  constexpr size_t step = rows_of_page<Row>;
  if (step == 1 || there == 0 || Exact_rows::are_wanted()) return there;
  const size_t pages = (there + step - 1) / step;
  const size_t lacks = (step - most % step) % step;
  return pages * step - lacks;
}

}  // namespace memdiag

#endif  // MEMDIAG_PFS_ROWS_H
