/* Estimates of rows are upstream's, whatever the size of our pages. */

#include "storage/perfschema/memdiag/rows.h"

#include <gtest/gtest.h>

namespace memdiag_test {

/** As PFS_buffer_scalable_container::get_row_count() counts with pages of
`step` rows, of which `used` rows have made those that they need. */
size_t upstream(size_t step, size_t used, size_t most) {
  const size_t last = most % step == 0 ? step : most % step;
  const size_t pages = (used + step - 1) / step;
  return pages == 0 ? 0 : pages * step - step + last;
}

TEST(PfsRows, AreUpstreams) {
  // Our pages of accounts have 16 rows, upstream's 128.
  for (const size_t most : {16, 100, 128, 130, 1000, 1024, 131072})
    for (size_t used = 0; used <= most && used < 2000; ++used)
      EXPECT_EQ(upstream(128, used, most), memdiag::estimated_rows<PFS_account>(
                                               upstream(16, used, most), most))
          << used << " of " << most;
}

TEST(PfsRows, OfOtherRowsAreWhatIsThere) {
  struct Other;
  EXPECT_EQ(17u, memdiag::estimated_rows<Other>(17, 1000));
}

TEST(PfsRows, AreExactWhileThatIsWanted) {
  EXPECT_EQ(128u, memdiag::estimated_rows<PFS_account>(16, 128));
  {
    const memdiag::Exact_rows exact;
    EXPECT_EQ(16u, memdiag::estimated_rows<PFS_account>(16, 128));
  }
  EXPECT_EQ(128u, memdiag::estimated_rows<PFS_account>(16, 128));
}

}  // namespace memdiag_test
