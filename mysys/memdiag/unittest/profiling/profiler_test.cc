/* The heap profiler: every block that is sampled is known for as long as it
lives, with its stack, pool and route, and estimates are not biased. */

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <latch>
#include <map>
#include <optional>
#include <set>
#include <thread>

#include "mysys/memdiag/pages/regions.h"
#include "mysys/memdiag/profiling/code_ranges.h"
#include "mysys/memdiag/profiling/profiler.h"
#include "mysys/memdiag/profiling/unwind.h"
#include "mysys/memdiag/unittest/no_huge_pages.h"
#include "mysys/memdiag/unittest/test.h"
#include "mysys/memdiag/upstream/scope_hooks.h"

/** Calls function(argument) with any value in the register of the frame
pointer, as a library without frame pointers does. */
extern "C" void memdiag_call_with_frame(uintptr_t frame,
                                        void (*function)(void *),
                                        void *argument);
#if defined(__x86_64__)
asm(R"(
  .text
  .type memdiag_call_with_frame, @function
memdiag_call_with_frame:
  push %rbp
  mov %rdi, %rbp
  mov %rdx, %rdi
  call *%rsi
  pop %rbp
  ret
  .size memdiag_call_with_frame, . - memdiag_call_with_frame
)");
#elif defined(__aarch64__)
asm(R"(
  .text
  .type memdiag_call_with_frame, %function
memdiag_call_with_frame:
  stp x29, x30, [sp, #-16]!
  mov x29, x0
  mov x0, x2
  blr x1
  ldp x29, x30, [sp], #16
  ret
  .size memdiag_call_with_frame, . - memdiag_call_with_frame
)");
#endif

namespace memdiag_test {

namespace profiling = memdiag::profiling;
namespace regions = memdiag::regions;

constexpr uint64_t memory_bytes = 16 << 20;

/** The profiler with that rate for as long as this lives. */
class Profiler {
 public:
  explicit Profiler(uint64_t sample_bytes, uint64_t memory = memory_bytes) {
    const auto switched = profiling::switch_on({sample_bytes, memory});
    EXPECT_EQ(0, switched.error) << switched.step;
  }
  ~Profiler() { profiling::switch_off(); }
};

/** A new thread asks for the rate that is in force: a thread that was there
before finishes the interval that it has begun. */
template <typename Body>
void in_new_thread(Body body) {
  std::thread([&body] {
    regions::add_stack_of_thread();
    body();
  }).join();
}

struct Found {
  uint64_t samples{0};
  uint64_t bytes{0};
  double estimated_bytes{0};
};

std::map<Pool, Found> by_pool() {
  std::map<Pool, Found> found;
  const profiling::View view;
  EXPECT_TRUE(view);
  std::map<uint32_t, Pool> pools;
  view.sites().for_each([&pools](const profiling::Site &site) {
    pools[site.number] = site.pool;
  });
  view.samples().for_each([&](const profiling::Sample &sample) {
    // Blocks of malloc() come while this reads, also this test's own.
    const auto pool_of_site = pools.find(sample.site);
    if (pool_of_site == pools.end()) return;
    Found &of = found[pool_of_site->second];
    ++of.samples;
    of.bytes += sample.bytes;
    of.estimated_bytes +=
        static_cast<double>(sample.bytes) *
        profiling::objects_of_sample(sample.bytes, view.status().sample_bytes);
  });
  return found;
}

TEST(Profiler, EachBlockOfEachPoolIsASampleWhereEachIsSampled) {
  const Profiler profiler(1);
  for (size_t i = first_pool; i < memdiag::pool_count; ++i) {
    const auto each = static_cast<Pool>(i);
    SCOPED_TRACE(memdiag::pool_specs[i].name);
    const uint64_t before = pools::counters(each).live_bytes;
    std::vector<std::pair<void *, size_t>> blocks;
    in_new_thread([&] {
      // Enough of each size that the shard's cache serves most of them, and
      // they come back from it.
      for (int round = 0; round < 3; ++round) {
        for (const size_t size : sizes)
          for (int n = 0; n < (size > 100000 ? 1 : 100); ++n)
            blocks.emplace_back(pools::allocate(each, size, n % 2 == 0), size);
        // Every third lives on.
        std::vector<std::pair<void *, size_t>> left;
        for (size_t b = 0; b < blocks.size(); ++b)
          if (b % 3 == 0)
            left.push_back(blocks[b]);
          else
            pools::free(each, blocks[b].first, blocks[b].second);
        blocks = left;
      }
    });
    EXPECT_EQ(pools::counters(each).live_bytes - before, by_pool()[each].bytes);
    EXPECT_EQ(blocks.size(), by_pool()[each].samples);
    // Any thread may free them.
    in_new_thread([&] {
      for (const auto &[block, size] : blocks) pools::free(each, block, size);
    });
    EXPECT_EQ(0u, by_pool()[each].samples);
  }
  const profiling::View view;
  EXPECT_EQ(0u, view.status().dropped_samples);
  EXPECT_EQ(0u, view.status().dropped_stacks);
}

TEST(Profiler, ABlockIsFreedWithoutItsSizeToo) {
  const Profiler profiler(1);
  in_new_thread([] {
    for (const size_t size : sizes) {
      void *const block = pools::allocate(pool, size);
      EXPECT_EQ(1u, by_pool()[pool].samples);
      pools::free(pool, block, 0);
      EXPECT_EQ(0u, by_pool()[pool].samples);
    }
  });
}

TEST(Profiler, ASampledBlockHasTheSizeAndTheZerosThatWereAskedFor) {
  const Profiler profiler(1);
  in_new_thread([] {
    for (const size_t size : sizes) {
      auto *const block =
          static_cast<unsigned char *>(pools::allocate(pool, size, true));
      EXPECT_TRUE(std::all_of(block, block + size,
                              [](unsigned char byte) { return byte == 0; }));
      EXPECT_EQ(memdiag::placed::usable(size), memdiag::placed::size_of(block));
      EXPECT_TRUE(lies_in_pool(block));
      memset(block, 1, size);
      pools::free(pool, block, size);
    }
  });
}

TEST(Profiler, ASampleHasItsRoute) {
  const Profiler profiler(1);
  in_new_thread([] {
    void *const a = pools::allocate(pool, 100, false, 7);
    void *const b = pools::allocate(pool, 100, false, 8);
    std::set<int> accounts;
    {
      const profiling::View view;
      view.sites().for_each([&accounts](const profiling::Site &site) {
        if (site.pool == pool) accounts.insert(site.account);
      });
    }
    EXPECT_EQ((std::set<int>{7, 8}), accounts);
    pools::free(pool, a, 100, 7);
    pools::free(pool, b, 100, 8);
  });
}

[[gnu::noinline]] void *one_way(size_t size) {
  void *const block = pools::allocate(pool, size);
  asm volatile("" ::: "memory");
  return block;
}
[[gnu::noinline]] void *another_way(size_t size) {
  void *const block = one_way(size);
  asm volatile("" ::: "memory");
  return block;
}

bool is_within(uintptr_t address, void *(*function)(size_t)) {
  const auto begin = reinterpret_cast<uintptr_t>(function);
  return address > begin && address < begin + 400;
}

TEST(Profiler, EachWayToAnAllocationIsOneSiteWithItsStack) {
  const Profiler profiler(1);
  std::vector<void *> blocks;
  in_new_thread([&blocks] {
    for (int i = 0; i < 10; ++i) {
      blocks.push_back(one_way(1000));
      blocks.push_back(another_way(1000));
    }
  });
  {
    const profiling::View view;
    std::map<uint32_t, int> samples_of;
    view.samples().for_each([&](const profiling::Sample &sample) {
      if (sample.bytes == memdiag::placed::usable(1000))
        ++samples_of[sample.site];
    });
    int direct = 0;
    int indirect = 0;
    view.sites().for_each([&](const profiling::Site &site) {
      if (site.pool != pool || samples_of[site.number] == 0) return;
      const auto at = std::find_if(
          site.frames.begin(), site.frames.end(),
          [](uintptr_t address) { return is_within(address, one_way); });
      ASSERT_NE(site.frames.end(), at);
      EXPECT_GT(site.frames.end() - at, 2);
      EXPECT_EQ(10, samples_of[site.number]);
      EXPECT_EQ(10 * memdiag::placed::usable(1000), site.allocated_bytes);
      EXPECT_DOUBLE_EQ(10, site.allocated_objects);
      (is_within(at[1], another_way) ? indirect : direct) += 1;
    });
    EXPECT_EQ(1, direct);
    EXPECT_EQ(1, indirect);
  }
  for (void *block : blocks) pools::free(pool, block, 1000);
}

/** The mean over many threads is what was allocated. */
TEST(Profiler, EstimatesAreNotBiased) {
  constexpr uint64_t rate = 64 << 10;
  const Profiler profiler(rate);
  for (const size_t size : {size_t{200}, size_t{8192}, size_t{64} << 10}) {
    std::vector<void *> blocks;
    const size_t count = (96 << 20) / size;
    in_new_thread([&] {
      for (size_t i = 0; i < count; ++i)
        blocks.push_back(pools::allocate(pool, size));
    });
    const double bytes =
        static_cast<double>(count * memdiag::placed::usable(size));
    const Found found = by_pool()[pool];
    // Some 1,500 samples: 2.6% is one standard error, and this asks for four.
    EXPECT_NEAR(1, found.estimated_bytes / bytes, 0.11) << size;
    EXPECT_GT(found.samples, 800u);
    for (void *block : blocks) pools::free(pool, block, size);
    EXPECT_EQ(0u, by_pool()[pool].samples);
  }
}

uintptr_t address_of(void *block) { return reinterpret_cast<uintptr_t>(block); }

/** The number of samples of a block of that size. Another size may be a later
block at the same address: this test's own are sampled, too. */
size_t samples_of(uintptr_t block, size_t size) {
  size_t found = 0;
  const profiling::View view;
  view.samples().for_each([&](const profiling::Sample &sample) {
    if (sample.block == block && sample.bytes == memdiag::placed::usable(size))
      ++found;
  });
  return found;
}

TEST(Profiler, MallocIsSampledToo) {
  if (!mallctl::serves_malloc()) GTEST_SKIP() << "another malloc()";
  const Profiler profiler(1);
  in_new_thread([] {
    void *block = malloc(5000);
    const uintptr_t first = address_of(block);
    EXPECT_EQ(1u, samples_of(first, 5000));
    block = realloc(block, 100000);
    const uintptr_t second = address_of(block);
    EXPECT_EQ(0u, samples_of(first, 5000));
    EXPECT_EQ(1u, samples_of(second, 100000));
    free(block);
    EXPECT_EQ(0u, samples_of(second, 100000));
  });
}

/** jemalloc's own counts of these pools lack small samples, so the blocks
themselves are the measure. */
TEST(Profiler, EachBlockOfMallocsPoolsIsASampleWhereEachIsSampled) {
  if (!mallctl::serves_malloc()) GTEST_SKIP() << "another malloc()";
  const Profiler profiler(1);
  for (const Pool each :
       {Pool::general, Pool::connection, Pool::group_replication}) {
    SCOPED_TRACE(memdiag::spec_of(each).name);
    in_new_thread([each] {
      if (each != Pool::general) pools::bind_thread(each);
      std::map<uintptr_t, size_t> blocks;
      for (const size_t size : sizes)
        for (int n = 0; n < 3; ++n)
          blocks[address_of(malloc(size))] = memdiag::placed::usable(size);
      size_t found = 0;
      size_t of_pool = 0;
      {
        const profiling::View view;
        std::map<uint32_t, Pool> pool_of;
        view.sites().for_each([&pool_of](const profiling::Site &site) {
          pool_of[site.number] = site.pool;
        });
        view.samples().for_each([&](const profiling::Sample &sample) {
          const auto block = blocks.find(sample.block);
          if (block == blocks.end()) return;
          ++found;
          EXPECT_EQ(block->second, sample.bytes);
          if (pool_of[sample.site] == each) ++of_pool;
        });
      }
      EXPECT_EQ(blocks.size(), found);
      // Its cache may have had some before the thread was bound.
      EXPECT_GE(of_pool, found * 9 / 10);
      for (const auto &[address, bytes] : blocks)
        free(reinterpret_cast<void *>(address));
    });
  }
}

TEST(Profiler, ALargeBlockThatShrinksInPlaceIsOneSample) {
  if (!mallctl::serves_malloc()) GTEST_SKIP() << "another malloc()";
  const Profiler profiler(1);
  in_new_thread([] {
    void *block = malloc(1 << 20);
    size_t last = 1 << 20;
    for (size_t size = last; size > 32 << 10; size -= 64 << 10) {
      block = realloc(block, size);
      EXPECT_EQ(1u, samples_of(address_of(block), size));
      last = size;
    }
    const uintptr_t address = address_of(block);
    free(block);
    EXPECT_EQ(0u, samples_of(address, last));
  });
}

constinit thread_local profiling::Context context_of_thread{};

TEST(Profiler, ADigestThatIsKnownLaterIsGivenToTheStatementsSamples) {
  profiling::set_context_reader([](profiling::Context *context) noexcept {
    *context = context_of_thread;
  });
  const Profiler profiler(1);
  in_new_thread([] {
    constexpr size_t size = 54321;
    const auto digests = [] {
      std::map<int, int> found;
      const profiling::View view;
      view.samples().for_each([&found](const profiling::Sample &sample) {
        // Only the test's blocks have this size.
        if (sample.session == 5 &&
            sample.bytes == memdiag::placed::usable(size))
          ++found[sample.digest[0]];
      });
      return found;
    };
    context_of_thread.session = 5;
    std::vector<void *> blocks;
    const auto allocate = [&blocks] {
      blocks.push_back(pools::allocate(pool, size));
    };
    allocate();
    allocate();
    EXPECT_EQ(2, digests()[0]);
    // The statement has been parsed.
    context_of_thread.digest[0] = 9;
    allocate();
    EXPECT_EQ(3, digests()[9]);
    profiling::statement_ended(context_of_thread.digest.data());
    // The next one ends before it is known.
    context_of_thread.digest[0] = 0;
    allocate();
    EXPECT_EQ(1, digests()[0]);
    pools::free(pool, blocks.back(), size);
    blocks.pop_back();
    allocate();
    profiling::Digest last{};
    last[0] = 8;
    profiling::statement_ended(last.data());
    EXPECT_EQ(1, digests()[8]);
    EXPECT_EQ(3, digests()[9]);
    EXPECT_EQ(0, digests()[0]);
    context_of_thread = {};
    for (void *block : blocks) pools::free(pool, block, size);
  });
  profiling::set_context_reader(nullptr);
}

TEST(Profiler, WhatConnectingTakesIsNotTheFirstStatements) {
  profiling::set_context_reader([](profiling::Context *context) noexcept {
    *context = context_of_thread;
  });
  const Profiler profiler(1);
  in_new_thread([] {
    constexpr size_t connecting = 65432;
    constexpr size_t parsing = 54321;
    context_of_thread.session = 6;
    void *const of_session = pools::allocate(pool, connecting);
    memdiag::session_began();
    void *const of_statement = pools::allocate(pool, parsing);
    profiling::Digest digest{};
    digest[0] = 7;
    memdiag::statement_ended(false, digest.data());
    context_of_thread = {};
    std::map<uint64_t, int> digests;
    {
      const profiling::View view;
      view.samples().for_each([&digests](const profiling::Sample &sample) {
        if (sample.session == 6) digests[sample.bytes] = sample.digest[0];
      });
    }
    EXPECT_EQ(0, digests.at(memdiag::placed::usable(connecting)));
    EXPECT_EQ(7, digests.at(memdiag::placed::usable(parsing)));
    pools::free(pool, of_session, connecting);
    pools::free(pool, of_statement, parsing);
  });
  profiling::set_context_reader(nullptr);
}

TEST(Profiler, WhatFindsNoRoomIsCounted) {
  const Profiler profiler(1, profiling::least_memory_bytes);
  std::vector<void *> blocks;
  in_new_thread([&blocks] {
    for (int i = 0; i < 30000; ++i) blocks.push_back(pools::allocate(pool, 16));
  });
  {
    const profiling::View view;
    EXPECT_GT(view.status().dropped_samples, 0u);
    // Blocks of malloc() find no room either.
    EXPECT_LE(blocks.size(),
              by_pool()[pool].samples + view.status().dropped_samples);
    EXPECT_GT(blocks.size(), by_pool()[pool].samples);
  }
  for (void *block : blocks) pools::free(pool, block, 16);
  EXPECT_EQ(0u, by_pool()[pool].samples);
}

TEST(Profiler, ItsMemoryIsARegionAndGoes) {
  const auto profile = static_cast<size_t>(memdiag::Region_kind::profile);
  EXPECT_EQ(0u, regions::totals()[profile].count);
  {
    const Profiler profiler(1 << 19);
    EXPECT_EQ(memory_bytes, regions::totals()[profile].mapped_bytes);
    // Again, with other settings: one profile at a time.
    EXPECT_EQ(0, profiling::switch_on({1, memory_bytes / 2}).error);
    EXPECT_EQ(memory_bytes / 2, regions::totals()[profile].mapped_bytes);
  }
  EXPECT_EQ(0u, regions::totals()[profile].count);
  EXPECT_FALSE(profiling::is_on());
  EXPECT_FALSE(profiling::View());
}

/** Samples lie scattered, so huge pages would come to all of it at once. */
TEST(Profiler, ItsMemoryGetsNoHugePages) {
  const Profiler profiler(1 << 19);
  const auto all = regions::list(regions::Stacks::without);
  const auto found =
      std::find_if(all.begin(), all.end(), [](const regions::Region &region) {
        return region.kind == memdiag::Region_kind::profile;
      });
  ASSERT_NE(all.end(), found);
  const auto *const memory = reinterpret_cast<const char *>(found->range.begin);
  EXPECT_TRUE(has_no_huge_pages(memory));
  EXPECT_TRUE(has_no_huge_pages(memory + memory_bytes - 1));
}

uint64_t kept() {
  return regions::totals()[static_cast<size_t>(memdiag::Region_kind::profile)]
      .count;
}

TEST(Profiler, WhatAReaderKeptForTooLongGoesWithIt) {
  EXPECT_EQ(0u, kept());
  {
    const Profiler profiler(1 << 19);
    std::optional<profiling::View> first(std::in_place);
    EXPECT_EQ(0, profiling::switch_on({1 << 19, memory_bytes}).error);
    EXPECT_EQ(2u, kept());
    std::optional<profiling::View> second(std::in_place);
    profiling::switch_off();
    EXPECT_EQ(2u, kept());
    EXPECT_TRUE(*first);
    EXPECT_EQ(uint64_t{1} << 19, first->status().sample_bytes);
    first.reset();
    EXPECT_EQ(2u, kept()) << "a user of either may be left";
    EXPECT_EQ(memory_bytes, second->status().memory_bytes);
    second.reset();
    EXPECT_EQ(0u, kept());
    EXPECT_EQ(0, profiling::switch_on({1 << 19, memory_bytes}).error);
    EXPECT_EQ(1u, kept());
  }
  EXPECT_EQ(0u, kept());
}

TEST(Profiler, WhatTheLastReaderCouldNotUnmapGoesWithTheNextSwitch) {
  const Profiler profiler(1 << 19);
  std::optional<profiling::View> view(std::in_place);
  profiling::switch_off();
  profiling::hold();
  std::thread([&view] { view.reset(); }).join();
  profiling::let_go(false);
  EXPECT_EQ(1u, kept());
  profiling::switch_off();
  EXPECT_EQ(0u, kept());
}

TEST(Profiler, SettingsThatAreWrongLeaveItOff) {
  EXPECT_EQ(EINVAL, profiling::switch_on({0, memory_bytes}).error);
  EXPECT_EQ(EINVAL, profiling::switch_on({1000, memory_bytes}).error);
  EXPECT_EQ(EINVAL,
            profiling::switch_on({uint64_t{1} << 31, memory_bytes}).error);
  EXPECT_EQ(EINVAL, profiling::switch_on({4096, 4096}).error);
  EXPECT_EQ(EINVAL, profiling::switch_on({4096, uint64_t{1} << 40}).error);
  EXPECT_FALSE(profiling::is_on());
}

TEST(Profiler, NoMemoryForItIsAnErrorAndItStaysOff) {
  if (sanitized) GTEST_SKIP() << "the sanitizer maps more than any limit";
  EXPECT_EQ(0, in_child([] {
              const rlimit limit{1 << 20, 1 << 20};
              setrlimit(RLIMIT_AS, &limit);
              const auto switched = profiling::switch_on({4096, 64 << 20});
              return switched.error == ENOMEM && !profiling::is_on() ? 0 : 1;
            }));
}

/** The thread that switches waits for a hook, or for a View. */
std::atomic<int> hook_is_awaited{0};
std::atomic<int> view_is_awaited{0};

/** In a hook, or with a View: the thread that waits for one gets a turn, and
meets this one before it has ended. */
void has_begun(std::atomic<int> *is_awaited) noexcept {
  if (is_awaited->load(std::memory_order_relaxed) == 0) return;
  if (is_awaited->exchange(0, std::memory_order_relaxed) == 0) return;
  is_awaited->notify_one();
  std::this_thread::yield();
}

TEST(Profiler, SwitchingWaitsForReadersAndBreaksNothing) {
  std::atomic<bool> stop{false};
  profiling::set_context_reader(
      [](profiling::Context *) noexcept { has_begun(&hook_is_awaited); });
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&stop, t] {
      regions::add_stack_of_thread();
      for (unsigned i = 0; !stop.load(); ++i) {
        const size_t size = sizes[i % 8];
        const auto each = static_cast<Pool>(
            first_pool + (i + t) % (memdiag::pool_count - first_pool));
        void *const block = pools::allocate(each, size, false, 3);
        memset(block, t, size);
        pools::free(each, block, size, 3);
        // One that was interrupted in its hook goes on.
        if (i % 16 == 0) std::this_thread::yield();
      }
    });
  std::thread reader([&stop] {
    while (!stop.load()) {
      // A switch waits for a moment without Views.
      std::this_thread::yield();
      const profiling::View view;
      if (!view) continue;
      has_begun(&view_is_awaited);
      view.samples().for_each([&view](const profiling::Sample &sample) {
        EXPECT_NE(0u, sample.bytes);
        EXPECT_GT(sample.block, 4096u);
      });
    }
  });
  // On a busy machine a thread may not be run for a second, and each round
  // waits for turns at a processor.
  unsigned waited_in_vain = 0;
  const uint64_t until_us = now_us(CLOCK_MONOTONIC) + 30'000'000;
  for (int round = 0;
       round < (sanitized ? 100 : 1000) && now_us(CLOCK_MONOTONIC) < until_us;
       ++round) {
    EXPECT_EQ(0, profiling::switch_on({round % 2 == 0 ? 1u : 256u,
                                       profiling::least_memory_bytes})
                     .error);
    std::atomic<int> &is_awaited =
        round % 4 < 2 ? hook_is_awaited : view_is_awaited;
    is_awaited = 1;
    is_awaited.wait(1);
    const uint64_t began_us = now_us(CLOCK_MONOTONIC);
    profiling::switch_off();
    waited_in_vain += now_us(CLOCK_MONOTONIC) - began_us > 1000000;
  }
  stop = true;
  for (std::thread &thread : threads) thread.join();
  reader.join();
  profiling::set_context_reader(nullptr);
  const auto profile = static_cast<size_t>(memdiag::Region_kind::profile);
  EXPECT_LE(regions::totals()[profile].count, waited_in_vain);
}

/** jemalloc keeps what it knows of an ended thread until the thread's last
sample is freed. */
TEST(Profiler, SwitchingLeavesWhatOfEndedThreadsIsFreedMeanwhile) {
  constexpr int waiting_threads = 100;
  std::atomic<bool> stop{false};
  std::latch all_have_a_block(waiting_threads);
  std::vector<std::thread> threads;
  const Profiler profiler(1);
  // The more threads jemalloc knows, the longer it goes through them.
  for (int t = 0; t < waiting_threads; ++t)
    threads.emplace_back([&] {
      void *const block = pools::allocate(pool, 500);
      all_have_a_block.count_down();
      stop.wait(false);
      pools::free(pool, block, 500);
    });
  all_have_a_block.wait();
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      while (!stop) {
        void *block = nullptr;
        std::thread([&block] { block = pools::allocate(pool, 600); }).join();
        pools::free(pool, block, 600);
      }
    });
  for (int round = 0; round < (thread_sanitized ? 200 : 3000); ++round)
    EXPECT_EQ(0,
              profiling::switch_on({1, profiling::least_memory_bytes}).error);
  stop = true;
  stop.notify_all();
  for (std::thread &thread : threads) thread.join();
}

TEST(Profiler, AForkedChildGoesOn) {
  const Profiler profiler(1);
  regions::add_stack_of_thread();
  EXPECT_EQ(0, in_child([] {
              // This thread finishes its first interval.
              pools::free(pool, pools::allocate(pool, 8 << 20), 8 << 20);
              void *const block = pools::allocate(pool, 100);
              uint64_t samples = 0;
              {
                const profiling::View view;
                if (!view) return 2;
                view.samples().for_each(
                    [&samples](const profiling::Sample &) { ++samples; });
              }
              pools::free(pool, block, 100);
              profiling::switch_off();
              return samples == 0 || profiling::is_on() ? 1 : 0;
            }));
}

TEST(Profiler, AThreadWhoseStackIsNotKnownHasSamplesWithoutFrames) {
  const Profiler profiler(1);
  void *block = nullptr;
  std::thread([&block] {
    block = pools::allocate(pool, 333, false, 6);
  }).join();
  bool found = false;
  {
    const profiling::View view;
    view.sites().for_each([&found](const profiling::Site &site) {
      if (site.account == 6) found = site.frames.empty();
    });
  }
  EXPECT_TRUE(found);
  pools::free(pool, block, 333, 6);
}

/** The frames that a walk finds below a frame pointer. */
size_t frames_below(uintptr_t frame) {
  size_t found = 0;
  memdiag_call_with_frame(
      frame,
      [](void *count) {
        uintptr_t frames[profiling::max_frames];
        *static_cast<size_t *>(count) = profiling::walk_stack(frames);
      },
      &found);
  return found;
}

TEST(Profiler, AnyFramePointerOfALibraryEndsTheWalk) {
  profiling::note_code();
  in_new_thread([] {
    const memdiag::Address_range stack = regions::stack_of_this_thread();
    const size_t least = frames_below(0);
    EXPECT_GE(least, 1u);
    // -16 and -8 wrap when a frame's size is added to them.
    for (const intptr_t value : {-1, -7, -8, -15, -16, -17, -24, -32, 5, 8, 16})
      EXPECT_EQ(least, frames_below(static_cast<uintptr_t>(value))) << value;
    for (const uintptr_t address :
         {uintptr_t{1} << 63, stack.begin, stack.begin - 8, stack.end - 8,
          stack.end, stack.end + 8})
      EXPECT_EQ(least, frames_below(address));
    // The last words of the stack may be read, whatever is there.
    (void)frames_below(stack.end - 16);
  });
  std::thread([] {
    for (const intptr_t value : {-8, -16, 0, 8})
      EXPECT_EQ(0u, frames_below(static_cast<uintptr_t>(value)));
  }).join();
}

TEST(Profiler, ARangeHasWhatLiesInIt) {
  const memdiag::Address_range range{4096, 8192};
  EXPECT_TRUE(range.has(4096, 4096));
  EXPECT_TRUE(range.has(8191, 1));
  EXPECT_FALSE(range.has(4095, 1));
  EXPECT_FALSE(range.has(8192, 0));
  EXPECT_FALSE(range.has(8184, 16));
  EXPECT_FALSE(range.has(UINTPTR_MAX - 7, 16));
  EXPECT_FALSE(range.has(4096, SIZE_MAX));
  EXPECT_FALSE((memdiag::Address_range{0, 0}.has(0, 16)));
  EXPECT_FALSE((memdiag::Address_range{0, 0}.has(UINTPTR_MAX - 15, 16)));
}

}  // namespace memdiag_test
