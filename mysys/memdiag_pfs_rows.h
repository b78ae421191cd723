/*
  How many rows a table of Performance Schema is said to have.

  The optimizer makes plans from it. Its containers have smaller pages here than
  upstream's (patches/0006, 0011), of which the first of each took megabytes for
  ever; estimates are what they are with upstream's, so that plans are the same.

  Plain C++ without any header of the server or of this layer.
*/

#ifndef MEMDIAG_PFS_ROWS_H
#define MEMDIAG_PFS_ROWS_H

#include <algorithm>
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

/** @param there  rows that there is memory for
@param most   rows that there can be */
template <class Row>
size_t estimated_rows(size_t there, size_t most) {
  constexpr size_t step = rows_of_page<Row>;
  return step == 1 ? there : std::min(most, (there + step - 1) / step * step);
}

}  // namespace memdiag

#endif  // MEMDIAG_PFS_ROWS_H
