/*
  How many rows a table of Performance Schema is said to have.

  The optimizer makes plans from it. Its containers have smaller pages here than
  upstream's (patches/0006, 0011), of which the first of each took megabytes for
  ever; estimates are what they are with upstream's, so that plans are the same.

  Plain C++ without any header of the server or of this layer.
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

/** Rows of a page of upstream's; 1: the pages are the same. */
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

/** What get_row_count() of upstream's container says: where the most is no
multiple of a page, what lacks of the last page is taken off, whether that page
is there or not.
@param there  rows that there is memory for
@param most   rows that there can be */
template <class Row>
size_t estimated_rows(size_t there, size_t most) {
  constexpr size_t step = rows_of_page<Row>;
  if (step == 1 || there == 0) return there;
  const size_t pages = (there + step - 1) / step;
  const size_t lacks = (step - most % step) % step;
  return pages * step - lacks;
}

}  // namespace memdiag

#endif  // MEMDIAG_PFS_ROWS_H
