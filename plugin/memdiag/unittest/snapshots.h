/* What tests of snapshots share. */

#ifndef MEMDIAG_TEST_SNAPSHOTS_H
#define MEMDIAG_TEST_SNAPSHOTS_H

#include "plugin/memdiag/allocator/allocator_snapshot.h"

namespace memdiag {

constexpr Details all_details =
    detail_of<Bin_row> | detail_of<Large_row> | detail_of<Extents_row>;

}  // namespace memdiag

#endif  // MEMDIAG_TEST_SNAPSHOTS_H
