/* Memory of pools by intervals of a statement. */

#include "mysys/memdiag/accounting/intervals.h"

#include <cstdint>

#include "mysys/memdiag/unittest/accounting/counted.h"
#include "mysys/memdiag/upstream/interval_hooks.h"

namespace memdiag_test {

/** Bytes taken in an interval, which stays open; -1: not counted. */
struct So_far {
  int64_t taken = -1, growth = -1, peak = -1;
  bool operator==(const So_far &) const = default;
};
So_far so_far(const memdiag::Interval &interval) {
  memdiag::Interval_memory memory;
  if (!memdiag_interval_so_far(&interval, &memory)) return {};
  return {static_cast<int64_t>(memory.taken) / block_size,
          memory.growth / block_size, memory.peak / block_size};
}

TEST_F(Sessions, IntervalsNest) {
  EXPECT_TRUE(memdiag_counts_intervals.load());
  memdiag::session_began();
  void *before = take(Pool::statement);
  memdiag::Interval outer;
  memdiag_interval_begins(&outer);
  EXPECT_EQ((So_far{0, 0, 0}), so_far(outer));
  void *first = take(Pool::statement);
  void *second = take(Pool::session);
  give_back(Pool::session, second);
  EXPECT_EQ((So_far{2, 1, 2}), so_far(outer));

  // Less than the outer one had before.
  memdiag::Interval inner;
  memdiag_interval_begins(&inner);
  give_back(Pool::statement, take(Pool::statement));
  EXPECT_EQ((So_far{1, 0, 1}), so_far(inner));
  memdiag_interval_ends(&inner);
  EXPECT_EQ((So_far{3, 1, 2}), so_far(outer));

  // More than that, and it frees what came before.
  memdiag::Interval other;
  memdiag_interval_begins(&other);
  void *third = take(Pool::statement);
  void *fourth = take(Pool::statement);
  give_back(Pool::statement, third);
  give_back(Pool::statement, fourth);
  give_back(Pool::statement, first);
  EXPECT_EQ((So_far{2, -1, 2}), so_far(other));
  memdiag_interval_ends(&other);
  EXPECT_EQ((So_far{5, 0, 3}), so_far(outer));
  memdiag_interval_ends(&outer);

  // Nothing is lost of the statement's own.
  give_back(Pool::statement, before);
  end_statement(digest_of(1));
  EXPECT_EQ(6 * block_size,
            static_cast<int64_t>(row_of(digest_of(1))->taken_bytes));
  EXPECT_EQ(4 * block_size,
            static_cast<int64_t>(row_of(digest_of(1))->peak_bytes));
}

TEST_F(Sessions, AnIntervalDoesNotOutliveItsStatement) {
  memdiag::session_began();
  void *block = take(Pool::statement);
  memdiag::Interval interval;
  memdiag_interval_begins(&interval);
  give_back(Pool::statement, take(Pool::statement));
  end_statement(digest_of(1));
  EXPECT_EQ(So_far{}, so_far(interval));
  memdiag_interval_ends(&interval);
  end_statement(digest_of(2));
  EXPECT_EQ(0u, row_of(digest_of(2))->peak_bytes);
  give_back(Pool::statement, block);
}

TEST_F(Sessions, AStatementThatEndsWithinAnInterval) {
  memdiag::session_began();
  void *kept = take(Pool::statement);
  end_statement(digest_of(1));
  give_back(Pool::statement, kept);
  memdiag::Interval interval;
  memdiag_interval_begins(&interval);
  end_statement(digest_of(2));
  EXPECT_EQ(0u, row_of(digest_of(2))->peak_bytes);
}

TEST_F(Sessions, AnIntervalDoesNotOutliveCounting) {
  memdiag::Interval interval;
  memdiag_interval_begins(&interval);
  void *block = take(Pool::statement);
  EXPECT_EQ((So_far{1, 1, 1}), so_far(interval));
  sessions::track(true);
  EXPECT_EQ(So_far{}, so_far(interval));
  give_back(Pool::statement, block);
  EXPECT_EQ(So_far{}, so_far(interval));
  memdiag_interval_ends(&interval);
  sessions::track(false);
  EXPECT_FALSE(memdiag_counts_intervals.load());
  // One that was not begun.
  EXPECT_EQ(So_far{}, so_far({}));
  memdiag_interval_ends(&interval);
}

}  // namespace memdiag_test
