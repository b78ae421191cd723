/* Memory of pools by thread, and by digest of statements. */

#include "mysys/memdiag/accounting/digests.h"
#include "mysys/memdiag/accounting/thread_bytes.h"
#include "mysys/memdiag/accounting/tracking.h"

#include <algorithm>
#include <atomic>
#include <latch>
#include <thread>

#include "mysys/memdiag/accounting/block_events.h"
#include "mysys/memdiag/accounting/scopes.h"
#include "mysys/memdiag/routes/routes.h"
#include "mysys/memdiag/unittest/a_session.h"
#include "mysys/memdiag/unittest/test.h"
#include "mysys/memdiag/upstream/interval_hooks.h"
#include "mysys/memdiag/upstream/scope_hooks.h"

namespace memdiag_test {

namespace sessions = memdiag::sessions;
using sessions::Digest;
using sessions::Holdings;
using sessions::Nets;

constexpr pools::Account account = 7;
constexpr size_t of_session = static_cast<size_t>(Pool::session);
constexpr size_t of_statement = static_cast<size_t>(Pool::statement);

/** A size class, so that what is counted is known. */
constexpr int64_t block_size = 65536;

void *take(Pool from, size_t size = block_size) {
  return pools::allocate(from, size, false, account);
}
void give_back(Pool to, void *block, size_t size = block_size) {
  pools::free(to, block, size, account);
}

Digest digest_of(uint64_t number) {
  Digest digest{};
  memcpy(digest.data() + 3, &number, sizeof number);
  digest[0] = 1;
  return digest;
}
void end_statement(Digest digest) {
  memdiag::statement_ended(false, digest.data());
}

std::optional<sessions::Digest_row> row_of(const Digest &digest) {
  for (const sessions::Digest_row &row : sessions::digests())
    if (row.digest == sessions::text_of(digest)) return row;
  return std::nullopt;
}

/** Bytes that a thread holds; empty if it is not there. */
Nets nets_of(pthread_t thread) {
  for (const sessions::Thread_nets &each : sessions::holdings().threads)
    if (pthread_equal(each.thread, thread)) return each.nets;
  return {};
}

int64_t sum(const Holdings &holdings, size_t of_pool) {
  int64_t total = holdings.gone[of_pool];
  for (const sessions::Thread_nets &each : holdings.threads)
    total += each.nets[of_pool];
  return total;
}

/** Lets threads wait for each other. */
class Turns {
 public:
  void wait_for(int turn) {
    for (int now = m_turn; now < turn; now = m_turn) m_turn.wait(now);
  }
  void next() {
    ++m_turn;
    m_turn.notify_all();
  }

 private:
  std::atomic<int> m_turn{0};
};

class Sessions : public testing::Test {
 protected:
  void SetUp() override { sessions::track(true); }
  void TearDown() override { sessions::track(false); }
};

TEST_F(Sessions, AThreadHoldsWhatItTook) {
  void *block = take(Pool::session);
  void *other = take(Pool::statement);
  Nets mine = nets_of(pthread_self());
  EXPECT_EQ(block_size, mine[of_session]);
  EXPECT_EQ(block_size, mine[of_statement]);
  EXPECT_EQ(0, mine[static_cast<size_t>(Pool::ddl)]);
  give_back(Pool::session, block);
  mine = nets_of(pthread_self());
  EXPECT_EQ(0, mine[of_session]);
  EXPECT_EQ(block_size, mine[of_statement]);
  give_back(Pool::statement, other);
}

TEST_F(Sessions, SizesAreThoseOfClasses) {
  void *block = take(Pool::session, 65537);
  EXPECT_EQ(static_cast<int64_t>(memdiag::placed::usable(65537)),
            nets_of(pthread_self())[of_session]);
  give_back(Pool::session, block, 65537);
  EXPECT_EQ(0, nets_of(pthread_self())[of_session]);
}

TEST_F(Sessions, WhoFreesWhatOthersTookIsBelowNone) {
  Turns turns;
  void *block = nullptr;
  std::thread taker([&] {
    block = take(Pool::session);
    turns.next();
    turns.wait_for(2);
  });
  turns.wait_for(1);
  EXPECT_EQ(block_size, nets_of(taker.native_handle())[of_session]);
  give_back(Pool::session, block);
  EXPECT_EQ(-block_size, nets_of(pthread_self())[of_session]);
  EXPECT_EQ(block_size, nets_of(taker.native_handle())[of_session]);
  EXPECT_EQ(0, sum(sessions::holdings(), of_session));
  turns.next();
  taker.join();
  EXPECT_EQ(block_size, sessions::holdings().gone[of_session]);
  EXPECT_EQ(0, sum(sessions::holdings(), of_session));
}

TEST_F(Sessions, ASessionThatEndsLeavesWhatItDidNotFree) {
  void *block = take(Pool::session);
  memdiag::session_ended();
  EXPECT_EQ(0, nets_of(pthread_self())[of_session]);
  EXPECT_EQ(block_size, sessions::holdings().gone[of_session]);
  give_back(Pool::session, block);
  EXPECT_EQ(0, sum(sessions::holdings(), of_session));
}

TEST_F(Sessions, WhatIsFreedByTheLastDestructorsIsCounted) {
  // The layer's own key is made first, and so its destructor runs first.
  give_back(Pool::session, take(Pool::session));
  pthread_key_t key;
  ASSERT_EQ(0, pthread_key_create(
                   &key, [](void *block) { give_back(Pool::session, block); }));
  std::thread([&] {
    ASSERT_EQ(0, pthread_setspecific(key, take(Pool::session)));
  }).join();
  EXPECT_EQ(0, sessions::holdings().gone[of_session]);
  pthread_key_delete(key);
}

TEST_F(Sessions, TheSumIsWhatLives) {
  const pools::Live before = pools::live(account);
  constexpr int threads_count = 4;
  std::vector<std::vector<void *>> left(threads_count);
  std::vector<std::thread> threads;
  for (int t = 0; t < threads_count; ++t)
    threads.emplace_back([&left, t] {
      for (int i = 0; i < 300; ++i) {
        left[t].push_back(take(Pool::session, 100 + i * 37));
        if (i % 3 == 0) {
          give_back(Pool::session, left[t].back(), 100 + i * 37);
          left[t].back() = nullptr;
        }
        if (i % 50 == 0) memdiag::session_ended();
      }
    });
  for (std::thread &thread : threads) thread.join();
  const auto live =
      static_cast<int64_t>(pools::live(account).bytes - before.bytes);
  EXPECT_GT(live, 0);
  EXPECT_EQ(live, sum(sessions::holdings(), of_session));
  for (const auto &blocks : left)
    for (int i = 0; i < 300; ++i)
      if (blocks[i] != nullptr)
        give_back(Pool::session, blocks[i], 100 + i * 37);
  EXPECT_EQ(0, sum(sessions::holdings(), of_session));
  EXPECT_LT(nets_of(pthread_self())[of_session], 0);
}

TEST_F(Sessions, OffNothingIsCountedAndOnBeginsWithNone) {
  void *before = take(Pool::session);
  end_statement(digest_of(1));
  sessions::track(false);
  EXPECT_TRUE(sessions::holdings().threads.empty());
  EXPECT_EQ(0, sum(sessions::holdings(), of_session));
  void *meanwhile = take(Pool::session);
  end_statement(digest_of(1));
  ASSERT_TRUE(row_of(digest_of(1)).has_value());
  EXPECT_EQ(1u, row_of(digest_of(1))->statements);
  sessions::track(true);
  EXPECT_TRUE(sessions::digests().empty());
  EXPECT_EQ(0, nets_of(pthread_self())[of_session]);
  void *after = take(Pool::session);
  EXPECT_EQ(block_size, nets_of(pthread_self())[of_session]);
  give_back(Pool::session, before);
  give_back(Pool::session, meanwhile);
  EXPECT_EQ(-block_size, nets_of(pthread_self())[of_session]);
  give_back(Pool::session, after);
}

TEST_F(Sessions, BothListenersAreTold) {
  memdiag::scopes::track(true);
  void *block = take(Pool::session);
  memdiag::session_ended();
  EXPECT_EQ(block_size, sessions::holdings().gone[of_session]);
  sessions::track(false);
  EXPECT_TRUE(memdiag::block_events::any_is_on());
  memdiag::scopes::track(false);
  EXPECT_FALSE(memdiag::block_events::any_is_on());
  give_back(Pool::session, block);
}

TEST_F(Sessions, AccumulatedAndPeakOfAStatement) {
  const Test_clock clock;
  memdiag::session_began();
  void *first = take(Pool::statement);
  void *second = take(Pool::session);
  give_back(Pool::statement, first);
  void *third = take(Pool::statement);
  give_back(Pool::session, second);
  give_back(Pool::statement, third);
  end_statement(digest_of(1));
  auto row = row_of(digest_of(1));
  ASSERT_TRUE(row.has_value());
  EXPECT_EQ(1u, row->statements);
  EXPECT_EQ(3 * block_size, static_cast<int64_t>(row->taken_bytes));
  EXPECT_EQ(2 * block_size, static_cast<int64_t>(row->peak_bytes));
  EXPECT_EQ(0u, row->overflowed);
  EXPECT_EQ(clock.now(), row->last_us);

  // A smaller one adds up and leaves the peak.
  clock.advance_ms(2);
  give_back(Pool::statement, take(Pool::statement));
  end_statement(digest_of(1));
  row = row_of(digest_of(1));
  EXPECT_EQ(2u, row->statements);
  EXPECT_EQ(4 * block_size, static_cast<int64_t>(row->taken_bytes));
  EXPECT_EQ(2 * block_size, static_cast<int64_t>(row->peak_bytes));
  EXPECT_EQ(clock.now(), row->last_us);
  EXPECT_FALSE(row_of(digest_of(2)).has_value());
}

TEST_F(Sessions, ConnectingIsNoStatement) {
  void *block = take(Pool::session);
  memdiag::session_began();
  end_statement(digest_of(1));
  EXPECT_EQ(0u, row_of(digest_of(1))->taken_bytes);
  EXPECT_EQ(block_size, nets_of(pthread_self())[of_session]);
  give_back(Pool::session, block);
}

TEST_F(Sessions, WhatIsFreedOfBeforeLessensThePeak) {
  void *kept = take(Pool::session);
  end_statement(digest_of(1));
  give_back(Pool::session, kept);
  give_back(Pool::session, take(Pool::session));
  end_statement(digest_of(2));
  EXPECT_EQ(block_size,
            static_cast<int64_t>(row_of(digest_of(2))->taken_bytes));
  EXPECT_EQ(0u, row_of(digest_of(2))->peak_bytes);
}

TEST_F(Sessions, APacketOfSeveralStatements) {
  memdiag::session_began();
  void *first = take(Pool::statement);
  Digest digest = digest_of(1);
  memdiag::part_ended(digest.data());
  EXPECT_EQ(Digest{}, digest);
  void *second = take(Pool::statement);
  give_back(Pool::statement, first);
  give_back(Pool::statement, second);
  end_statement(digest_of(2));
  for (const int number : {1, 2}) {
    EXPECT_EQ(1u, row_of(digest_of(number))->statements);
    EXPECT_EQ(block_size,
              static_cast<int64_t>(row_of(digest_of(number))->peak_bytes));
  }
}

TEST_F(Sessions, AStatementWithinAnotherIsAPartOfIt) {
  memdiag::session_began();
  A_session outer(digest_of(1).data());
  A_session inner(digest_of(2).data());
  {
    const memdiag::Statement statement(&outer);
    void *kept = take(Pool::statement);
    {
      const memdiag::Statement nested(&inner);
      give_back(Pool::statement, take(Pool::statement));
      memdiag::part_ended(&inner);
    }
    give_back(Pool::statement, kept);
  }
  EXPECT_FALSE(row_of(digest_of(2)));
  EXPECT_EQ(2 * block_size,
            static_cast<int64_t>(row_of(digest_of(1))->peak_bytes));
  EXPECT_EQ(0, inner.m_digest_state.m_digest_storage.m_hash[0])
      << "a command without a digest would have it";
  inner.set_digest(digest_of(2).data());
  const memdiag::Statement next(&inner);
  memdiag::part_ended(&inner);
  EXPECT_EQ(1u, row_of(digest_of(2))->statements);
}

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

TEST_F(Sessions, WithoutADigest) {
  // The first makes its digest 0; a command that has none leaves it so.
  Digest digest = digest_of(1);
  memdiag::statement_ended(false, digest.data());
  memdiag::statement_ended(false, digest.data());
  EXPECT_EQ(1u, row_of(digest_of(1))->statements);
  ASSERT_TRUE(row_of({}).has_value());
  EXPECT_EQ(1u, row_of({})->statements);
  EXPECT_EQ(0u, row_of({})->overflowed);
}

TEST(Digests, AreWrittenAsPerformanceSchemaDoes) {
  Digest digest{};
  EXPECT_FALSE(sessions::text_of(digest).has_value());
  digest[0] = 0x0a;
  digest[31] = 0xf1;
  EXPECT_EQ("0a" + std::string(60, '0') + "f1", sessions::text_of(digest));
}

TEST_F(Sessions, DigestsOverflow) {
  constexpr uint64_t more = 50;
  for (uint64_t i = 0; i < sessions::max_digests + more; ++i) {
    give_back(Pool::statement, take(Pool::statement));
    end_statement(digest_of(i));
  }
  EXPECT_EQ(sessions::max_digests + 1, sessions::digests().size());
  // Those that are in go on.
  end_statement(digest_of(sessions::max_digests - 1));
  EXPECT_EQ(2u, row_of(digest_of(sessions::max_digests - 1))->statements);
  EXPECT_FALSE(row_of(digest_of(sessions::max_digests)).has_value());
  end_statement({});
  const auto rest = row_of({});
  ASSERT_TRUE(rest.has_value());
  EXPECT_EQ(more + 1, rest->statements);
  EXPECT_EQ(more, rest->overflowed);
  EXPECT_EQ(more * block_size, rest->taken_bytes);
  sessions::track(true);
  EXPECT_TRUE(sessions::digests().empty());
}

/** A statement that had so much at its peak. */
void run_statement(const Digest &digest, int64_t peak_bytes) {
  sessions::note(Pool::statement, 1, peak_bytes);
  sessions::note(Pool::statement, 1, -peak_bytes);
  end_statement(digest);
}

TEST_F(Sessions, ALargeDigestFindsRoomInAFullTable) {
  constexpr int64_t large = int64_t{1} << 30;
  for (uint64_t i = 0; i < sessions::max_digests + 10; ++i)
    run_statement(digest_of(i), 1000);
  const Digest late = digest_of(5000);
  for (int i = 0; i < 20; ++i) run_statement(late, large);
  EXPECT_EQ(20u, sessions::past_of(late).statements);
  EXPECT_EQ(uint64_t{large}, sessions::past_of(late).peak_bytes);
  ASSERT_TRUE(row_of(late).has_value());
  EXPECT_EQ(sessions::max_digests + 1, sessions::digests().size());
  // One small digest gave way to it.
  EXPECT_EQ(11u, row_of({})->statements);
  EXPECT_EQ(11u, row_of({})->overflowed);
  // Small ones that come later do not drive it out.
  for (uint64_t i = 6000; i < 9000; ++i) run_statement(digest_of(i), 1000);
  EXPECT_EQ(20u, sessions::past_of(late).statements);
}

TEST_F(Sessions, TheSmallestOfLargeDigestsGivesWay) {
  const auto bytes_of = [](uint64_t i) {
    return static_cast<int64_t>((1 << 20) + i * 4096);
  };
  constexpr uint64_t count = 3 * sessions::max_digests;
  uint64_t statements = 0;
  for (uint64_t i = 0; i < count; ++i) {
    // Those of the first third are the largest.
    run_statement(digest_of(i), bytes_of(i < sessions::max_digests
                                             ? count + i
                                             : i - sessions::max_digests));
    ++statements;
  }
  // Each later one took the place of the one before.
  for (uint64_t i = 1; i < sessions::max_digests; ++i)
    EXPECT_EQ(1u, sessions::past_of(digest_of(i)).statements) << i;
  EXPECT_EQ(1u, sessions::past_of(digest_of(count - 1)).statements);
  EXPECT_EQ(0u, sessions::past_of(digest_of(0)).statements);
  EXPECT_EQ(0u, sessions::past_of(digest_of(count - 2)).statements);
  uint64_t counted = 0;
  for (const auto &row : sessions::digests()) counted += row.statements;
  EXPECT_EQ(statements, counted) << "none is lost";
}

TEST_F(Sessions, DigestsThatAskForTheSameEntry) {
  // Only bytes differ that are no part of the hash.
  for (unsigned char i = 0; i < 200; ++i) {
    Digest digest{1};
    digest[20] = i;
    end_statement(digest);
    end_statement(digest);
  }
  const auto rows = sessions::digests();
  EXPECT_EQ(200u, rows.size());
  for (const auto &row : rows) EXPECT_EQ(2u, row.statements);
}

TEST_F(Sessions, ReadWhileThreadsComeAndGo) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> makers;
  for (int m = 0; m < 2; ++m)
    makers.emplace_back([&stop, m] {
      for (uint64_t n = 0; !stop; ++n)
        std::thread([m, n] {
          for (int i = 0; i < 20; ++i) {
            void *block = take(Pool::session, 500);
            give_back(Pool::session, block, 500);
            end_statement(digest_of(n % 100));
          }
          if (n % 2 == 0) memdiag::session_ended();
          if (m == 0 && n % 16 == 0) sessions::track(true);
        }).join();
    });
  for (int i = 0; i < 300; ++i) {
    for (const sessions::Thread_nets &each : sessions::holdings().threads) {
      // Counting may have begun between a block's coming and its going.
      EXPECT_GE(each.nets[of_session], -512);
      EXPECT_LE(each.nets[of_session], 512);
    }
    for (const sessions::Digest_row &row : sessions::digests())
      EXPECT_LE(row.peak_bytes, 512u);
  }
  stop = true;
  for (std::thread &maker : makers) maker.join();
}

TEST_F(Sessions, MoreThreadsThanThereIsRoomForAtFirst) {
  Turns turns;
  constexpr size_t count = 300;
  std::vector<std::thread> threads;
  std::latch all_took(count);
  for (size_t i = 0; i < count; ++i)
    threads.emplace_back([&] {
      void *block = take(Pool::session);
      all_took.count_down();
      turns.wait_for(1);
      give_back(Pool::session, block);
    });
  all_took.wait();
  EXPECT_EQ(static_cast<int64_t>(count) * block_size,
            sum(sessions::holdings(), of_session));
  EXPECT_GE(sessions::holdings().threads.size(), count);
  turns.next();
  for (std::thread &thread : threads) thread.join();
  EXPECT_EQ(0, sum(sessions::holdings(), of_session));
}

TEST_F(Sessions, AForkedChildHasOneThread) {
  if (!malloc_after_fork) GTEST_SKIP();
  Turns turns;
  void *mine = take(Pool::session);
  std::thread other([&] {
    void *block = take(Pool::session);
    turns.next();
    turns.wait_for(2);
    give_back(Pool::session, block);
  });
  turns.wait_for(1);
  EXPECT_EQ(0, in_child([] {
              const Holdings held = sessions::holdings();
              if (held.threads.size() != 1) return 1;
              if (held.threads[0].nets[of_session] != block_size) return 2;
              if (held.gone[of_session] != block_size) return 3;
              end_statement(digest_of(1));
              if (!row_of(digest_of(1))) return 4;
              void *block = take(Pool::session);
              if (nets_of(pthread_self())[of_session] != 2 * block_size)
                return 5;
              give_back(Pool::session, block);
              return 0;
            }));
  turns.next();
  other.join();
  give_back(Pool::session, mine);
}

}  // namespace memdiag_test
