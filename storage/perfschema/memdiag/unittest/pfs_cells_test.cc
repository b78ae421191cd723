/* Cells for the texts of Performance Schema's records. */

#include "storage/perfschema/memdiag/cells.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

namespace memdiag_test {

using memdiag::Cells;

namespace {

bool fails;
std::vector<std::unique_ptr<char[]>> pages;

void *allocate(size_t bytes) {
  if (fails) return nullptr;
  pages.push_back(std::make_unique<char[]>(bytes));
  return pages.back().get();
}

class PfsCells : public testing::Test {
 protected:
  PfsCells() {
    fails = false;
    pages.clear();
  }
  ~PfsCells() override { pages.clear(); }

  /** @return bytes from the cell to the end of its page */
  static size_t behind(const char *cell) {
    for (const auto &page : pages)
      if (cell >= page.get() && cell < page.get() + Cells::page)
        return page.get() + Cells::page - cell;
    return 0;
  }

  Cells m_cells{allocate};
};

}  // namespace

TEST_F(PfsCells, ACellHoldsTheText) {
  for (size_t bytes = 0; bytes <= Cells::greatest; ++bytes) {
    const unsigned kind = Cells::kind_for(bytes);
    ASSERT_LT(kind, Cells::kinds);
    EXPECT_LE(bytes, Cells::size_of(kind));
    if (kind > 0) {
      EXPECT_GT(bytes, Cells::size_of(kind - 1));
    }
  }
}

TEST_F(PfsCells, NothingIsAllocatedBeforeTheFirstCell) {
  EXPECT_EQ(0, m_cells.bytes());
  EXPECT_NE(nullptr, m_cells.take(0));
  EXPECT_EQ(Cells::page, m_cells.bytes());
}

TEST_F(PfsCells, CellsDoNotOverlapAndTheGreatestFitsBehindEach) {
  std::mt19937 random(1);
  struct Taken {
    char *cell;
    unsigned kind;
    char mark;
  };
  std::vector<Taken> taken;
  for (unsigned turn = 0; turn < 20000; ++turn) {
    if (!taken.empty() && random() % 5 < 2) {
      const size_t i = random() % taken.size();
      for (size_t at = 0; at < Cells::size_of(taken[i].kind); ++at)
        ASSERT_EQ(taken[i].mark, taken[i].cell[at]);
      m_cells.give_back(taken[i].cell, taken[i].kind);
      taken[i] = taken.back();
      taken.pop_back();
      continue;
    }
    const unsigned kind = random() % Cells::kinds;
    char *const cell = m_cells.take(kind);
    ASSERT_GE(behind(cell), Cells::size_of(kind) + Cells::greatest);
    const char mark = static_cast<char>(random());
    memset(cell, mark, Cells::size_of(kind));
    taken.push_back({cell, kind, mark});
  }
}

TEST_F(PfsCells, ACellThatCameBackServesTheNextOfItsSize) {
  char *const first = m_cells.take(1);
  char *const second = m_cells.take(1);
  m_cells.give_back(first, 1);
  m_cells.give_back(second, 1);
  EXPECT_NE(second, m_cells.take(2));
  EXPECT_EQ(second, m_cells.take(1));
  EXPECT_EQ(first, m_cells.take(1));
}

TEST_F(PfsCells, WithoutMemoryThereIsNoCell) {
  fails = true;
  EXPECT_EQ(nullptr, m_cells.take(0));
  EXPECT_EQ(0, m_cells.bytes());
  fails = false;
  EXPECT_NE(nullptr, m_cells.take(0));
}

}  // namespace memdiag_test
