/* Memory of pools by thread. */

#include "mysys/memdiag/accounting/thread_bytes.h"

#include <limits.h>

#include <atomic>
#include <latch>
#include <thread>
#include <vector>

#include "mysys/memdiag/accounting/block_events.h"
#include "mysys/memdiag/accounting/scopes.h"
#include "mysys/memdiag/jemalloc/mallctl.h"
#include "mysys/memdiag/unittest/accounting/counted.h"

namespace memdiag_test {

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

/** A thread that was linked again in the last round would stay linked, and its
memory would be read when another thread has it. */
TEST_F(Sessions, WhatIsFreedInTheLastRoundOfDestructorsIsCounted) {
  if (!memdiag::mallctl::serves_malloc())
    GTEST_SKIP() << "the sanitizer has ended the thread in that round";
  give_back(Pool::session, take(Pool::session));
  const size_t threads = sessions::holdings().threads.size();
  static pthread_key_t key;
  static int rounds;
  rounds = 0;
  ASSERT_EQ(0, pthread_key_create(&key, [](void *block) {
              if (++rounds < PTHREAD_DESTRUCTOR_ITERATIONS)
                (void)pthread_setspecific(key, block);
              else
                give_back(Pool::session, block);
            }));
  std::thread([] {
    ASSERT_EQ(0, pthread_setspecific(key, take(Pool::session)));
  }).join();
  EXPECT_EQ(PTHREAD_DESTRUCTOR_ITERATIONS, rounds);
  const Holdings held = sessions::holdings();
  EXPECT_EQ(threads, held.threads.size());
  EXPECT_EQ(0, held.gone[of_session]);
  pthread_key_delete(key);
}

TEST_F(Sessions, AThreadThatTookNothingEndsAStatementOfNoBytes) {
  std::thread([] {
    for (uint64_t number = 0; number < 3; ++number) {
      EXPECT_FALSE(sessions::statement_bytes());
      const sessions::Statement_bytes ended = sessions::end_statement();
      EXPECT_EQ(number, ended.number);
      EXPECT_EQ(0u, ended.taken);
      EXPECT_EQ(0, ended.growth);
      EXPECT_EQ(0, ended.peak);
    }
  }).join();
}

TEST_F(Sessions, TheSumIsWhatLives) {
  const pools::Live before = live_of(account);
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
  const auto live = static_cast<int64_t>(live_of(account).bytes - before.bytes);
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
