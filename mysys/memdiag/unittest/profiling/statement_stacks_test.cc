/* The stack that held most at the peak of a statement. */

#include <gtest/gtest.h>

#include "mysys/memdiag/profiling/statement_stacks.h"

namespace memdiag::profiling {

TEST(StatementStacks, NothingSampledHasNone) {
  Statement_stacks stacks;
  EXPECT_EQ(0u, stacks.top_at_peak());
  stacks.remove(3, 100);
  EXPECT_EQ(0u, stacks.top_at_peak());
}

TEST(StatementStacks, TheTopIsOfThePeakAndNotOfTheEnd) {
  Statement_stacks stacks;
  stacks.add(1, 100);
  stacks.add(2, 150);
  EXPECT_EQ(2u, stacks.top_at_peak());
  stacks.add(1, 100);
  EXPECT_EQ(1u, stacks.top_at_peak());
  stacks.remove(1, 200);
  stacks.remove(2, 150);
  // More than both, but never with them.
  stacks.add(3, 300);
  EXPECT_EQ(1u, stacks.top_at_peak());
  stacks.add(3, 100);
  EXPECT_EQ(3u, stacks.top_at_peak());
  stacks.clear();
  EXPECT_EQ(0u, stacks.top_at_peak());
}

TEST(StatementStacks, WhatWasThereBeforeMayGo) {
  Statement_stacks stacks;
  stacks.add(1, 100);
  stacks.remove(1, 1000);
  stacks.add(2, 101);
  EXPECT_EQ(2u, stacks.top_at_peak());
}

TEST(StatementStacks, ManySmallStacksDoNotHideALargeOne) {
  Statement_stacks stacks;
  for (uint32_t site = 1; site <= 1000; ++site) {
    stacks.add(site, 10);
    stacks.add(5000, 20);
  }
  EXPECT_EQ(5000u, stacks.top_at_peak());
}

}  // namespace memdiag::profiling
