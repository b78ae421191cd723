/* Pools before main(), over fork() and at exit. */

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "mysys/memdiag/accounting/digests.h"
#include "mysys/memdiag/accounting/scopes.h"
#include "mysys/memdiag/accounting/thread_bytes.h"
#include "mysys/memdiag/base/clock.h"
#include "mysys/memdiag/ceiling/taker.h"
#include "mysys/memdiag/pages/regions.h"
#include "mysys/memdiag/pools/arenas.h"
#include "mysys/memdiag/pools/uncached.h"
#include "mysys/memdiag/profiling/profiler.h"
#include "mysys/memdiag/purging/policies.h"
#include "mysys/memdiag/purging/purge_log.h"
#include "mysys/memdiag/routes/routes.h"
#include "mysys/memdiag/unittest/asleep.h"
#include "mysys/memdiag/unittest/test.h"

namespace memdiag_test {

// ------------------------------------------------------- before main, at exit

/** Uses a pool from the first constructor to the last exit handler, in a
process that has the variable set; ends that process with 42 if all went well.
*/
constexpr const char *whole_life_variable = "MEMDIAG_TEST_WHOLE_LIFE";

void require(bool condition, int code) {
  if (!condition) _exit(code);
}

Block block_of_constructor;
Block block_of_handler;

void at_exit_last() {
  require(block_of_constructor.intact(), 2);
  block_of_constructor.free();
  require(block_of_handler.intact(), 3);
  block_of_handler.free();
  require(pools::counters(pool).live_bytes == 0, 4);
  require(purging::purge(pool).error == 0, 5);
  require(allocated_in_pool() == 0, 6);
  _exit(42);
}

void at_exit_first() {
  block_of_handler = Block::make(5000, 2);
  require(lies_in_pool(block_of_handler.memory), 7);
  require(purging::purge_all().error == 0, 8);
}

[[gnu::constructor(101)]] void before_everything() {
  if (getenv(whole_life_variable) == nullptr) return;
  block_of_constructor = Block::make(3000, 1);
  require(lies_in_pool(block_of_constructor.memory), 9);
  require(pools::counters(pool).live_bytes != 0, 10);
  require(purging::purge(pool).error == 0, 11);
  atexit(at_exit_last);  // the first registered is the last to run
}

/** Constructed before main(), destroyed after it. */
struct Whole_life {
  Block block{};
  Whole_life() {
    if (getenv(whole_life_variable) == nullptr) return;
    block = Block::make(100000, 3);
    require(lies_in_pool(block.memory), 12);
    atexit(at_exit_first);
  }
  ~Whole_life() {
    if (block.memory == nullptr) return;
    require(block.intact(), 13);
    block.free();
  }
};
Whole_life whole_life;

TEST(WholeLife, FromStaticConstructorsToExitHandlers) {
  if (getenv(whole_life_variable) != nullptr) return;  // then on to exit()
  setenv(whole_life_variable, "1", 1);
  EXPECT_EQ(42, run_in_fresh_process());
  unsetenv(whole_life_variable);
}

// ----------------------------------------------------------------------- fork

/** A child uses a pool. @return 0, or the number of the step that failed */
int use_in_child(const Block &of_parent) {
  const uint64_t before = pools::counters(pool).live_bytes;
  std::vector<Block> blocks;
  for (size_t size : sizes)
    for (int i = 0; i < 5; ++i) blocks.push_back(Block::make(size, 6));
  for (const Block &block : blocks) {
    if (!lies_in_pool(block.memory)) return 20;
    if (!block.intact()) return 21;
    block.free();
  }
  if (pools::counters(pool).live_bytes != before) return 22;
  if (purging::purge(pool).error != 0) return 23;
  if (dirty_pages(pool) != 0) return 24;
  if (purging::purge_all().error != 0) return 25;
  if (!of_parent.intact()) return 26;
  of_parent.free();
  return 0;
}

TEST(Fork, ChildUsesThePoolAndTheParentGoesOn) {
  const Block block = Block::make(20000, 7);
  const uint64_t live = pools::counters(pool).live_bytes;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(0, in_child([&] { return use_in_child(block); }));
    EXPECT_TRUE(block.intact());
    EXPECT_EQ(live, pools::counters(pool).live_bytes);
    EXPECT_EQ(live, allocated_in_pool());
    Block::make(1 << 20, 1).free();
    EXPECT_EQ(0, purging::purge(pool).error);
  }
  block.free();
}

/** The holder is not in the child. */
TEST(Fork, NoArenaIsHeldInTheChild) {
  const pools::Arena_guard guard(pool, 0);
  ASSERT_TRUE(guard.is_mine());
  memdiag::set_pause_for_test([](unsigned) { std::abort(); });
  EXPECT_EQ(0, in_child([] {
              return pools::Arena_guard(pool, 0).is_mine() ? 0 : 1;
            }));
  memdiag::set_pause_for_test(nullptr);
}

FRESH_TEST(Fork, ChildUsesThePoolFirst) {
  EXPECT_EQ(0, in_child([] {
              const Block block = Block::make(100, 1);
              return use_in_child(block);
            }));
  EXPECT_TRUE(arenas_of_pool().empty());
  Block::make(100, 1).free();
  EXPECT_EQ(1u, arenas_of_pool().size());
}

// --daemonize: the child is the server. It has no background thread until one
// is asked for again.
TEST(Fork, BackgroundThreadOfAChild) {
  if (thread_sanitized) GTEST_SKIP() << "no new threads in a forked child";
  ASSERT_TRUE(mallctl::read<Ctl::background_thread>().value());
  EXPECT_EQ(
      0, in_child([] {
        if (mallctl::read<Ctl::background_thread>().value_or(true)) return 1;
        if (mallctl::write<Ctl::background_thread>(true) != 0) return 2;
        if (!mallctl::read<Ctl::background_thread>().value_or(false)) return 3;
        if (mallctl::refresh() != 0) return 4;
        if (mallctl::read<Ctl::stats_background_threads>().value_or(0) == 0)
          return 5;
        return 0;
      }));
  EXPECT_TRUE(mallctl::read<Ctl::background_thread>().value());
}

/** fork() holds these mutexes, and no other thread may have one of them then.
The child would find it locked for ever. */
TEST(Fork, WhatItHoldsIsHeld) {
  struct Held {
    const char *name;
    void (*hold)();
    void (*let_go)();
    /** Takes the mutex. */
    void (*use)();
  };
  constexpr Held all[] = {
      {"arenas", [] { pools::hold_arenas(); },
       [] { pools::let_go_of_arenas(); },
       [] { (void)pools::make_arena(pool, 0); }},
      {"threads", [] { memdiag::sessions::hold_threads(); },
       [] { memdiag::sessions::let_go_of_threads(false); },
       [] { (void)memdiag::sessions::holdings(); }},
      {"digests", [] { memdiag::sessions::hold_digests(); },
       [] { memdiag::sessions::let_go_of_digests(); },
       [] { (void)memdiag::sessions::digests(); }},
      {"scopes", [] { memdiag::scopes::hold(); },
       [] { memdiag::scopes::let_go(); },
       [] { (void)memdiag::scopes::survivors(); }},
      {"regions", [] { memdiag::regions::hold(); },
       [] { memdiag::regions::let_go(false); },
       [] { memdiag::regions::remove(&block_of_handler); }},
      {"routes", [] { memdiag::routes::hold(); },
       [] { memdiag::routes::let_go(); }, [] { (void)memdiag::routes::all(); }},
      {"policies", [] { memdiag::policies::hold(); },
       [] { memdiag::policies::let_go(); },
       [] { (void)memdiag::policies::set(memdiag::Policy::dirty_limit, ""); }},
      {"purges", [] { purging::hold_purges(); },
       [] { purging::let_go_of_purges(); }, [] { (void)purging::purge(pool); }},
      {"purge log", [] { memdiag::purge_log::hold(); },
       [] { memdiag::purge_log::let_go(); },
       [] { (void)memdiag::purge_log::all(); }},
      {"profiler", [] { memdiag::profiling::hold(); },
       [] { memdiag::profiling::let_go(false); },
       [] { memdiag::profiling::switch_off(); }},
      {"rounds", [] { memdiag::ceiling::rounds.hold(); },
       [] { memdiag::ceiling::rounds.let_go(); },
       [] { memdiag::ceiling::rounds.end_one(); }}};
  for (const Held &each : all) {
    std::atomic<bool> may_use{false};
    std::atomic<bool> used{false};
    std::atomic<pid_t> id{0};
    std::thread user([&] {
      id = gettid();
      while (!may_use) sched_yield();
      each.use();
      used = true;
    });
    while (id == 0) sched_yield();
    each.hold();
    may_use = true;
    while (!used && !is_asleep(id)) sched_yield();
    const bool was_used = used;
    each.let_go();
    user.join();
    EXPECT_FALSE(was_used) << each.name;
    EXPECT_TRUE(used) << each.name;
  }
}

/** Threads that do something over and over while this one forks. They rest
while the child runs, which has a processor then also on a busy machine. */
template <typename Work>
class Workers {
 public:
  Workers(int count, Work work) {
    for (int t = 0; t < count; ++t)
      m_threads.emplace_back([this, work] {
        while (!m_stop) {
          m_rest.wait(true);
          work();
        }
      });
  }
  ~Workers() {
    m_stop = true;
    for (std::thread &thread : m_threads) thread.join();
  }

  template <typename Body>
  int in_child(Body body) {
    const int code = memdiag_test::in_child(body, [this] { m_rest = true; });
    m_rest = false;
    m_rest.notify_all();
    return code;
  }

 private:
  std::atomic<bool> m_stop{false};
  std::atomic<bool> m_rest{false};
  std::vector<std::thread> m_threads;
};

TEST(Fork, WhileOthersAllocate) {
  const uint64_t live = pools::counters(pool).live_bytes;
  const Block block = Block::make(20000, 7);
  {
    Workers workers(4, [] {
      for (size_t size : {64, 5000, 40000, 1 << 20})
        Block::make(size, 1).free();
    });
    for (int i = 0; i < 30; ++i)
      EXPECT_EQ(0, workers.in_child([&] {
        for (size_t size : sizes) {
          const Block mine = Block::make(size, 6);
          if (!lies_in_pool(mine.memory) || !mine.intact()) return 1;
          mine.free();
        }
        if (!block.intact()) return 2;
        block.free();
        return purging::purge(pool).error;
      }));
  }
  block.free();
  EXPECT_EQ(live, pools::counters(pool).live_bytes);
  EXPECT_EQ(live, allocated_in_pool());
}

// jemalloc's statistics go through lists of caches. A cache that was made
// before fork() is flushed in the child, where its neighbours in a list may
// have been of threads that are gone.
TEST(Fork, CachesOfThreadsThatAreGone) {
  const auto use_caches = [](int rounds) {
    for (int i = 0; i < rounds; ++i)
      for (size_t p = first_pool; p < memdiag::pool_count; ++p)
        pools::free(static_cast<Pool>(p),
                    pools::allocate(static_cast<Pool>(p), 100), 100);
  };
  Workers workers(8, [&] { use_caches(1); });
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(0, workers.in_child([&] {
      for (int round = 0; round < 3; ++round) {
        use_caches(100);
        for (size_t p = first_pool; p < memdiag::pool_count; ++p)
          if (purging::purge(static_cast<Pool>(p)).error != 0) return 1;
      }
      return mallctl::refresh();
    }));
}

TEST(Fork, WhileOthersPurge) {
  Workers workers(3, [] {
    Block::make(1 << 20, 1).free();
    (void)purging::purge(pool);
    (void)purging::purge(Pool::general);
  });
  for (int i = 0; i < 40; ++i) {
    EXPECT_EQ(0, workers.in_child([] {
      Block::make(1 << 20, 1).free();
      // A purge that was under way in the parent must not block this
      // one.
      if (purging::purge(pool).error != 0) return 1;
      return dirty_pages(pool) == 0 ? 0 : 2;
    }));
    if (HasFailure()) break;
  }
}

TEST(Fork, WhileOthersFallBack) {
  if (!malloc_after_fork) GTEST_SKIP() << "the child falls back to malloc()";
  Workers workers(2, [] {
    pools::fail_allocations_for_test({.count = 3});
    Block::make(5000, 1).free();
  });
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(0, workers.in_child([] {
      pools::fail_allocations_for_test({.count = 0});
      for (size_t size : sizes) {
        const Block block = Block::make(size, 2);
        if (!lies_in_pool(block.memory)) return 1;
        block.free();
      }
      pools::fail_allocations_for_test({.count = 1});
      const Block fallback = Block::make(600, 3);
      if (lies_in_pool(fallback.memory)) return 2;
      fallback.free();
      return 0;
    }));
  pools::fail_allocations_for_test({.count = 0});
}

}  // namespace memdiag_test
