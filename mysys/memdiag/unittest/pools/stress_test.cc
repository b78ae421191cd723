/* Everything at once, for MEMDIAG_SOAK_SECONDS (2; 1 under the address
sanitizer). Worth most under that of threads; for a long run call the program
itself, ctest ends it after 600 s.
*/

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <iterator>
#include <mutex>
#include <random>
#include <thread>

#include "mysys/memdiag/purging/policies.h"
#include "mysys/memdiag/purging/purger.h"
#include "mysys/memdiag/routes/routes.h"
#include "mysys/memdiag/unittest/test.h"

namespace memdiag_test {

using memdiag::Packed_tag;
using memdiag::Policy;
namespace policies = memdiag::policies;
namespace routes = memdiag::routes;

/** The source of the workers' blocks: a place, or the key of an instrument.
Its tag changes while they work. */
struct Source {
  memdiag::Place place;
  uint32_t key;

  Packed_tag tag() const {
    return key != 0 ? memdiag::tag_of_key(key, memdiag::large_block + 1)
                    : routes::tag_of_place(place);
  }
};

/** One of each pool at least. */
std::vector<Source> make_sources() {
  std::vector<Source> sources;
  for (size_t i = 1; i < memdiag::place_count; ++i)
    sources.push_back({static_cast<memdiag::Place>(i), 0});
  for (const auto &[category, name] :
       std::initializer_list<std::pair<const char *, const char *>>{
           {"sql", "THD::main_mem_root"},
           {"sql", "NET::buff"},
           {"memory", "HP_PTRS"},
           {"sql", "binlog_cache_mngr"},
           {"innodb", "buf_buf_pool"}})
    sources.push_back({{}, memdiag_note_instrument(category, name, 0)});
  return sources;
}

struct Tagged_block {
  unsigned char *memory;
  size_t size;
  unsigned char mark;
  Packed_tag tag;

  bool intact() const {
    // Each byte is as the one before: fast under a sanitizer too.
    return memory[0] == mark && memcmp(memory, memory + 1, size - 1) == 0;
  }
  void free() const { routes::free(tag, memory, size); }
};

/** Blocks that one thread made and another will free. */
struct Exchange {
  std::mutex mutex;
  std::vector<Tagged_block> blocks;

  void put(const Tagged_block &block) {
    const std::lock_guard<std::mutex> guard(mutex);
    blocks.push_back(block);
  }
  bool take(Tagged_block *block) {
    const std::lock_guard<std::mutex> guard(mutex);
    if (blocks.empty()) return false;
    *block = blocks.back();
    blocks.pop_back();
    return true;
  }
};

struct Soak {
  std::vector<Source> sources{make_sources()};
  Exchange exchange;
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> made{0};
  std::atomic<uint64_t> refused{0};

  /** Allocate and free until the end, `rounds` times at least. */
  void work(unsigned seed, int rounds);
  /** Waits until so many more blocks were made, or for the end. A pace by the
  workers' progress is the same under each sanitizer. */
  void wait_for_blocks(uint64_t count);
  void end();

 private:
  void count_block();

  std::mutex m_mutex;
  std::condition_variable m_changed;
};

void Soak::count_block() {
  if (++made % 64 != 0) return;
  const std::lock_guard<std::mutex> guard(m_mutex);
  m_changed.notify_all();
}

void Soak::wait_for_blocks(uint64_t count) {
  const uint64_t enough = made + count;
  std::unique_lock<std::mutex> lock(m_mutex);
  m_changed.wait(lock, [&] { return stop || made >= enough; });
}

void Soak::end() {
  stop = true;
  const std::lock_guard<std::mutex> guard(m_mutex);
  m_changed.notify_all();
}

void Soak::work(unsigned seed, int rounds) {
  std::minstd_rand random(seed);
  std::vector<Tagged_block> mine;
  for (int i = 0; i < rounds || (rounds > 100 && !stop); ++i) {
    const Packed_tag tag = sources[random() % sources.size()].tag();
    const size_t size = 1 + random() % (random() % 50 == 0 ? 2000000 : 20000);
    const bool zero = random() % 4 == 0;
    const auto mark = static_cast<unsigned char>(random());
    Tagged_block block{
        static_cast<unsigned char *>(routes::allocate(tag, size, zero)), size,
        0, tag};
    if (block.memory == nullptr) {
      ++refused;
      continue;
    }
    count_block();
    if (zero) {
      ASSERT_TRUE(block.intact());
    }
    block.mark = mark;
    memset(block.memory, mark, size);
    if (random() % 3 == 0)
      exchange.put(block);
    else
      mine.push_back(block);
    Tagged_block given;
    if (random() % 3 == 0 && exchange.take(&given)) mine.push_back(given);
    while (mine.size() > random() % 40) {
      const size_t victim = random() % mine.size();
      ASSERT_TRUE(mine[victim].intact());
      mine[victim].free();
      mine[victim] = mine.back();
      mine.pop_back();
    }
  }
  for (const Tagged_block &block : mine) {
    ASSERT_TRUE(block.intact());
    block.free();
  }
}

/** In a child: every pool gives and takes. Without malloc(): a sanitizer's may
have been in use by another thread when fork() came. */
int use_every_pool() {
  pools::fail_allocations_for_test({.count = 0});
  for (size_t i = first_pool; i < memdiag::pool_count; ++i) {
    const Pool each = static_cast<Pool>(i);
    for (size_t size : {100, 5000, 100000}) {
      void *block = pools::allocate(each, size);
      const auto arena = mallctl::arena_of(block);
      if (!arena || pools::owner_of_arena(arena.value()) != each) return 1;
      memset(block, 1, size);
      pools::free(each, block, size);
    }
    if (purging::purge(each).error != 0) return 2;
  }
  return 0;
}

uint64_t allocated_in(Pool each) {
  EXPECT_EQ(0, purging::purge(each).error);
  EXPECT_EQ(0, mallctl::refresh());
  return sum_over<Ctl::stats_arena_small_allocated>(each) +
         sum_over<Ctl::stats_arena_large_allocated>(each);
}

TEST(Stress, EverythingAtOnce) {
  const char *const seconds = getenv("MEMDIAG_SOAK_SECONDS");
  const uint64_t duration_us =
      1000000 * (seconds != nullptr  ? strtoul(seconds, nullptr, 10)
                 : address_sanitized ? 1
                                     : 2);
  Soak soak;
  struct Before {
    uint64_t live_bytes, allocated, fallbacks;
  };
  std::vector<Before> before;
  for (size_t i = first_pool; i < memdiag::pool_count; ++i) {
    const Pool each = static_cast<Pool>(i);
    ASSERT_TRUE(std::any_of(
        soak.sources.begin(), soak.sources.end(),
        [each](const Source &x) { return memdiag::pool_of(x.tag()) == each; }))
        << memdiag::pool_specs[i].name;
    pools::free(each, pools::allocate(each, 100), 100);
    const auto counters = pools::counters(each);
    before.push_back(
        {counters.live_bytes, allocated_in(each), counters.fallbacks});
  }
  ASSERT_EQ(0, memdiag::purger::start());

  std::vector<std::thread> workers;
  for (unsigned t = 0; t < 4; ++t)
    workers.emplace_back([&soak, t] { soak.work(t, 1000); });
  std::vector<std::thread> others;
  const auto beside = [&](auto body) {
    others.emplace_back([&soak, body] {
      std::minstd_rand random(7);
      while (!soak.stop) body(random);
    });
  };
  const auto any_pool = [](auto &random) {
    return static_cast<Pool>(random() % memdiag::pool_count);
  };
  beside([&](auto &random) {
    EXPECT_EQ(0, purging::purge(any_pool(random)).error);
  });
  beside([&](auto &) {
    EXPECT_EQ(0, purging::purge_all().error);
    soak.wait_for_blocks(1000);
  });
  beside([&](auto &random) {
    const Pool each = any_pool(random);
    const auto first = pools::counters(each);
    const auto second = pools::counters(each);
    EXPECT_GE(first.peak_bytes, first.live_bytes);
    EXPECT_GE(second.peak_bytes, first.peak_bytes);
    EXPECT_GE(second.fallbacks, first.fallbacks);
    (void)pools::activity(each);
    (void)routes::all();
  });
  beside([&](auto &random) {
    const Pool each = any_pool(random);
    (void)purging::dirty_bytes(each);
    pools::for_each_arena(each, [each](unsigned arena) {
      EXPECT_EQ(each, pools::owner_of_arena(arena));
      char name[mallctl::arena_name_size];
      EXPECT_EQ(0, mallctl::arena_name(arena, name));
    });
  });
  beside([&](auto &random) {
    pools::Failures failures{.count = 2};
    failures.skip = random() % 3;
    if (random() % 2 == 0) failures.pool = any_pool(random);
    failures.hard = random() % 4 == 0;
    pools::fail_allocations_for_test(failures);
    soak.wait_for_blocks(100);
  });
  beside([&](auto &random) {  // threads come and go
    std::thread([&] { soak.work(random(), 20); }).join();
  });
  beside([&](auto &) {
    EXPECT_EQ(0, in_child(use_every_pool));
    soak.wait_for_blocks(5000);
  });
  beside([&](auto &random) {  // blocks outlive what their route was
    constexpr const char *disabled[] = {nullptr, "session,fts_query", "all"};
    constexpr const char *other[] = {nullptr, "mem_heap/=session",
                                     "memory/sql/=ddl,mem_heap/row=binlog"};
    routes::options = {other[random() % 3], disabled[random() % 3]};
    EXPECT_EQ("", routes::apply_options());
    soak.wait_for_blocks(200);
  });
  beside([&](auto &random) {
    EXPECT_EQ("", policies::set(Policy::quiet_ms,
                                random() % 2 ? "all=100" : "all=0"));
    EXPECT_EQ("",
              policies::set(Policy::dirty_limit, random() % 2 ? "all=1M" : ""));
    EXPECT_EQ(
        "", policies::set(Policy::dirty_decay_ms, random() % 2 ? "all=0" : ""));
    EXPECT_EQ("", policies::set(Policy::muzzy_decay_ms,
                                random() % 2 ? "all=10" : ""));
    soak.wait_for_blocks(2000);
  });

  for (const uint64_t start = now_us(CLOCK_MONOTONIC);
       (now_us(CLOCK_MONOTONIC) - start < duration_us ||
        // A busy machine needs longer until an allocation is refused.
        (soak.refused.load() == 0 &&
         now_us(CLOCK_MONOTONIC) - start <
             std::max<uint64_t>(40000000, 20 * duration_us))) &&
       !HasFailure();)
    sleep_ms(10);  // the run is asked for in seconds
  soak.end();
  for (std::thread &thread : workers) thread.join();
  for (std::thread &thread : others) thread.join();
  memdiag::purger::stop();
  pools::fail_allocations_for_test({.count = 0});
  routes::options = {nullptr, nullptr};
  EXPECT_EQ("", routes::apply_options());
  for (size_t i = 0; i < memdiag::policy_count; ++i)
    EXPECT_EQ("", policies::set(static_cast<Policy>(i), ""));

  for (const Tagged_block &block : soak.exchange.blocks) {
    EXPECT_TRUE(block.intact());
    block.free();
  }
  uint64_t fallbacks = 0;
  for (size_t i = first_pool; i < memdiag::pool_count; ++i) {
    const Pool each = static_cast<Pool>(i);
    const Before &then = before[i - first_pool];
    EXPECT_EQ(then.live_bytes, pools::counters(each).live_bytes)
        << memdiag::pool_specs[i].name;
    EXPECT_EQ(then.allocated, allocated_in(each))
        << memdiag::pool_specs[i].name;
    EXPECT_EQ(0u, dirty_pages(each)) << memdiag::pool_specs[i].name;
    fallbacks += pools::counters(each).fallbacks - then.fallbacks;
  }
  for (const routes::Row &route : routes::all())
    EXPECT_EQ(0u, route.live_blocks.value_or(0)) << route.name;
  EXPECT_GT(fallbacks, 0u);
  EXPECT_GT(soak.refused.load(), 0u);
  printf("%lu blocks, %lu by malloc() in need, %lu refused\n", soak.made.load(),
         fallbacks, soak.refused.load());
}

}  // namespace memdiag_test
