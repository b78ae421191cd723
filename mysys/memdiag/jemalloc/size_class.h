/*
  jemalloc's size classes up to 32 KB. Plain C++: client programs use it, too.
*/

#ifndef MEMDIAG_SIZE_CLASS_H
#define MEMDIAG_SIZE_CLASS_H

#include <algorithm>
#include <bit>
#include <cstddef>

namespace memdiag {

/** Above it, an option of jemalloc says how blocks are rounded
(opt.disable_large_size_classes). */
constexpr size_t largest_fixed_class = 32768;

/** The least class that holds so many bytes. jemalloc has four for each
doubling, 16 bytes apart at least (jemalloc(3), IMPLEMENTATION NOTES). Of a
block, for sizes up to largest_fixed_class only. */
constexpr size_t size_class(size_t size) {
  if (size <= 8) return 8;
  const unsigned lg = static_cast<unsigned>(std::bit_width(size - 1)) - 1;
  const size_t spacing = std::max<size_t>(16, (size_t{1} << lg) / 4);
  return (size + spacing - 1) & ~(spacing - 1);
}

/** The next smaller class. @param size  a class from 32 to largest_fixed_class
 */
constexpr size_t size_class_below(size_t size) {
  return size - std::max<size_t>(16, std::bit_floor(size - 1) / 4);
}

}  // namespace memdiag

#endif  // MEMDIAG_SIZE_CLASS_H
