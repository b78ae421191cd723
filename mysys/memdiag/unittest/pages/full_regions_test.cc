/* Regions: more than the table has room for. */

#include "mysys/memdiag/pages/regions.h"

#include "mysys/memdiag/unittest/test.h"

namespace memdiag_test {

using memdiag::Region_kind;
namespace regions = memdiag::regions;

regions::Row row_of(Region_kind kind) {
  int error = -1;
  const auto rows = regions::all(&error);
  EXPECT_EQ(0, error);
  return rows[static_cast<size_t>(kind)];
}

FRESH_TEST(Regions, WhatFindsNoRoomIsCounted) {
  const auto address = [](size_t i) { return reinterpret_cast<void *>(i); };
  for (size_t i = 1; i <= regions::max_regions + 3; ++i)
    regions::add(Region_kind::ddl_log, address(i), 1);
  regions::add(Region_kind::ddl_log, address(1), 2);
  regions::remove(address(regions::max_regions + 1));
  EXPECT_EQ(regions::max_regions, row_of(Region_kind::ddl_log).count);
  EXPECT_EQ(3u, row_of(Region_kind::ddl_log).untracked);
  EXPECT_EQ(regions::max_regions,
            regions::list(regions::Stacks::without).size());
  regions::remove(address(7));
  regions::add(Region_kind::ddl_log, address(8000000), 1);
  EXPECT_EQ(regions::max_regions, row_of(Region_kind::ddl_log).count);
}

}  // namespace memdiag_test
