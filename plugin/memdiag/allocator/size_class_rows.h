/*
  The rows of MEMDIAG_SIZE_CLASSES: small blocks, large blocks and unused
  extents of a snapshot in one shape.

  Pure: no state, no threads. Units: bytes. Errors: a figure that could not be
  read is empty, as is one that the kind does not have. @throws std::bad_alloc
*/

#ifndef MEMDIAG_SIZE_CLASS_ROWS_H
#define MEMDIAG_SIZE_CLASS_ROWS_H

#include <optional>
#include <vector>

#include "plugin/memdiag/allocator/allocator_snapshot.h"

namespace memdiag {

struct Size_class_row : Arena_id {
  /** small, large, dirty, muzzy or retained; a literal. */
  const char *kind;
  Reading min_size;
  Reading max_size;
  Reading blocks;
  Reading bytes;
  Reading allocations;
  Reading frees;
  Reading requests;
  Reading slab_bytes;
  Reading blocks_per_slab;
  Reading slabs;
  Reading nonfull_slabs;
  Reading capacity_blocks;
  std::optional<double> utilisation;
  Reading waste_bytes;
  Reading fills;
  Reading flushes;
};

template <>
constexpr Details detail_of<Size_class_row> =
    detail_of<Bin_row> | detail_of<Large_row> | detail_of<Extents_row>;

/** Extents of a kind that a class is known to have none of have no row. */
std::vector<Size_class_row> size_class_rows(const Snapshot &snapshot);

}  // namespace memdiag

#endif  // MEMDIAG_SIZE_CLASS_ROWS_H
