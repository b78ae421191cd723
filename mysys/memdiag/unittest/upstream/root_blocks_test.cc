/* The sizes of a memory root's blocks. */

#include "mysys/memdiag/upstream/root_blocks.h"

#include "mysys/memdiag/unittest/test.h"

namespace memdiag_test {

namespace root_blocks = memdiag::root_blocks;

constexpr size_t no_limit = 0;

/** The blocks that a root takes until it has `bytes`. Its first is of `first`.
 */
std::vector<size_t> blocks_of(uint32_t key, size_t first, size_t bytes,
                              size_t limit) {
  std::vector<size_t> blocks;
  size_t size = first;
  for (size_t has = 0; has < bytes;) {
    const size_t room = root_blocks::room(key, limit, size, 8);
    blocks.push_back(room + root_blocks::headers);
    has += room;
    size += size / 2;
    root_blocks::adjust(&size, first, key, has, limit);
  }
  return blocks;
}

FRESH_TEST(RootBlocks, SizeClassesAreJemallocs) {
  for (size_t size = 64; size <= 32768; ++size)
    ASSERT_EQ(memdiag::placed::usable_by_library(size),
              root_blocks::filled(size))
        << size;
}

TEST(RootBlocks, FillTheirClassAndHoldWhatIsNeeded) {
  for (const size_t wanted :
       {8, 100, 512, 1024, 4095, 4096, 8192, 14336, 50000})
    for (const size_t least : {1, 8, 600, 5000, 8192}) {
      const size_t room = root_blocks::room(0, no_limit, wanted, least);
      const size_t block = room + root_blocks::headers;
      EXPECT_EQ(root_blocks::filled(block), block) << wanted;
      EXPECT_GE(room, least) << wanted;
      EXPECT_LE(block, root_blocks::filled(std::max<size_t>(wanted, least) +
                                           64 + root_blocks::headers));
    }
  EXPECT_EQ(8192u,
            root_blocks::room(0, no_limit, 8192, 8) + root_blocks::headers);
}

FRESH_TEST(RootBlocks, OfAStatementGrowByHalfUpToAMegabyte) {
  ASSERT_EQ(7u, memdiag_note_instrument("sql", "THD::main_mem_root", 7));
  const auto blocks = blocks_of(7, 8192, 20 << 20, no_limit);
  EXPECT_EQ(8192u, blocks[0]);
  EXPECT_EQ(12288u, blocks[1]);
  EXPECT_EQ(1u << 20, blocks.back());
}

/** query_alloc_block_size is up to 4 GB. The ceiling would wait for room for
all of it, and hardly any of it is touched. */
FRESH_TEST(RootBlocks, AreNoLargerThanAMegabyteUnlessOneAllocationIs) {
  ASSERT_EQ(7u, memdiag_note_instrument("sql", "THD::main_mem_root", 7));
  for (const size_t block : blocks_of(7, UINT32_MAX, 8 << 20, no_limit))
    EXPECT_EQ(1u << 20, block);
  EXPECT_LE(3u << 20, root_blocks::room(7, no_limit, 3 << 20, 3 << 20));
}

FRESH_TEST(RootBlocks, OfWhatIsKeptAreAQuarterOfIt) {
  ASSERT_EQ(7u, memdiag_note_instrument("sql", "TABLE_SHARE::mem_root", 7));
  ASSERT_EQ(8u, memdiag_note_instrument(
                    "sql", "Prepared_statement::main_mem_root", 8));
  for (const uint32_t key : {7u, 8u}) {
    size_t all = 0;
    for (const size_t block : blocks_of(key, 1024, 4 << 20, no_limit)) {
      // The next size class may be a quarter larger.
      EXPECT_LE(block, std::max<size_t>(1280, all * 5 / 16 + 256)) << all;
      all += block;
    }
  }
  const auto blocks = blocks_of(8, 8192, 22000, no_limit);
  EXPECT_EQ((std::vector<size_t>{8192, 4096, 4096, 5120, 6144}), blocks);
}

TEST(RootBlocks, TheClassBelowIsTheNextSmallerOne) {
  size_t below = 16;
  for (size_t size = 17; size <= memdiag::largest_fixed_class; ++size) {
    const size_t found = memdiag::size_class(size);
    if (found == size) {
      ASSERT_EQ(below, memdiag::size_class_below(size));
      below = size;
    }
  }
}

FRESH_TEST(RootBlocks, TheLastHasWhatIsExpected) {
  ASSERT_EQ(7u, memdiag_note_instrument("sql", "THD::main_mem_root", 7));
  ASSERT_EQ(8u, memdiag_note_instrument(
                    "sql", "Prepared_statement::main_mem_root", 8));
  for (size_t bytes = 8200; bytes < 40000; bytes += 8) {
    root_blocks::expected = {8, bytes};
    const auto blocks = blocks_of(8, 8192, bytes, no_limit);
    size_t all = 0;
    for (const size_t block : blocks) all += block - root_blocks::headers;
    ASSERT_GE(all, bytes);
    // A block fills its size class. Two take the place of one that would be
    // much larger.
    ASSERT_LE(all, bytes + 1024) << bytes;
    ASSERT_LE(blocks.size(), 3u) << bytes;
  }

  root_blocks::expected = {8, 9384};
  EXPECT_EQ((std::vector<size_t>{8192, 1536}),
            blocks_of(8, 8192, 9384, no_limit));
  // One block of 12,288 would be much larger.
  root_blocks::expected = {8, 18400};
  EXPECT_EQ((std::vector<size_t>{8192, 10240, 112}),
            blocks_of(8, 8192, 18400, no_limit));
  root_blocks::expected = {8, 9384};
  // More than was expected comes in small blocks.
  EXPECT_EQ((std::vector<size_t>{8192, 1536, 1024, 1024}),
            blocks_of(8, 8192, 11000, no_limit));
  // Other roots are not concerned.
  EXPECT_EQ((std::vector<size_t>{8192, 12288}),
            blocks_of(7, 8192, 9384, no_limit));
  root_blocks::expected = {};
  EXPECT_EQ((std::vector<size_t>{8192, 4096}),
            blocks_of(8, 8192, 9384, no_limit));
}

TEST(RootBlocks, ASizeGivesTheRoomThatIsWanted) {
  for (size_t bytes = 64; bytes < 40000; ++bytes) {
    const size_t room =
        root_blocks::room(0, no_limit, root_blocks::size_for(bytes), 8);
    ASSERT_GE(room, bytes);
    ASSERT_EQ(root_blocks::filled(bytes + root_blocks::headers),
              room + root_blocks::headers)
        << bytes;
  }
}

FRESH_TEST(RootBlocks, TowardsALimitAreThoseOfStock) {
  ASSERT_EQ(7u, memdiag_note_instrument("sql", "TABLE_SHARE::mem_root", 7));
  size_t size = 1000;
  for (const size_t block : blocks_of(7, size, 4 << 20, 8 << 20)) {
    EXPECT_EQ(size + root_blocks::headers, block);
    size += size / 2;
  }
  EXPECT_FALSE(root_blocks::is_limited(SIZE_MAX));
}

FRESH_TEST(RootBlocks, OfHashJoinsAreThoseOfStockBeforeTheirLimit) {
  ASSERT_EQ(7u, memdiag_note_instrument("sql", "hashed_operation", 7));
  size_t size = 16384;
  for (const size_t block : blocks_of(7, size, 1 << 20, no_limit)) {
    EXPECT_EQ(size + root_blocks::headers, block);
    size += size / 2;
  }
}

}  // namespace memdiag_test
