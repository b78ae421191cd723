/* The table of live samples: what is removed has gone, also where one address
has two samples for a moment. The table of their sites: what it has room for. */

#include "mysys/memdiag/profiling/sample_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "mysys/memdiag/profiling/site_table.h"

namespace memdiag::profiling {
namespace {

/** One window: each address may lie anywhere in the table. */
constexpr size_t places = 64;
constexpr uintptr_t address = 0x7f0000001000;

class Table {
 public:
  Table()
      : m_memory(Sample_table::bytes_of(places) / sizeof(uint64_t)),
        m_table(m_memory.data(), places) {}
  Sample_table *operator->() { return &m_table; }

  std::vector<Sample> samples() const {
    std::vector<Sample> found;
    m_table.for_each([&found](const Sample &each) { found.push_back(each); });
    return found;
  }

 private:
  std::vector<uint64_t> m_memory;
  Sample_table m_table;
};

Sample sample_of(uintptr_t block, uint64_t bytes) {
  Sample sample{};
  sample.block = block;
  sample.bytes = bytes;
  sample.site = static_cast<uint32_t>(bytes);
  return sample;
}

TEST(Sample_table, AReaderDoesNotSeeItsOwnBlocks) {
  Table table;
  for (uintptr_t i = 0; i < 3; ++i)
    ASSERT_TRUE(table->add(sample_of(address + 4096 * i, 100)));
  int visited = 0;
  table->for_each([&](const Sample &sample) {
    ++visited;
    EXPECT_TRUE(table->add(sample_of(sample.block + (1 << 20), 200)));
  });
  EXPECT_EQ(3, visited);
  EXPECT_EQ(6u, table.samples().size());
}

TEST(Sample_table, OfTwoSamplesOfAnAddressTheOlderGoesFirst) {
  Table table;
  for (const uint64_t bytes : {100, 200, 300})
    ASSERT_TRUE(table->add(sample_of(address, bytes)));
  EXPECT_EQ(3u, table.samples().size());
  // The first place is free again: the newest sample lies before the others.
  EXPECT_EQ(100u, table->remove(address)->bytes);
  ASSERT_TRUE(table->add(sample_of(address, 400)));
  for (const uint64_t bytes : {200, 300, 400}) {
    const auto removed = table->remove(address);
    ASSERT_TRUE(removed);
    EXPECT_EQ(bytes, removed->bytes);
    EXPECT_EQ(bytes, removed->site);
  }
  EXPECT_FALSE(table->remove(address));
  EXPECT_TRUE(table.samples().empty());
}

TEST(Sample_table, AFullWindowDropsTheSample) {
  Table table;
  for (uintptr_t i = 0; i < places; ++i)
    ASSERT_TRUE(table->add(sample_of(address + i * 4096, 100)));
  EXPECT_FALSE(table->add(sample_of(address + places * 4096, 100)));
  EXPECT_EQ(places, table.samples().size());
  EXPECT_TRUE(table->remove(address));
  EXPECT_TRUE(table->add(sample_of(address + places * 4096, 100)));
}

TEST(Sample_table, ADigestThatComesTooLateIsNotGivenToTheNextSample) {
  Table table;
  const auto handle = table->add(sample_of(address, 100));
  ASSERT_TRUE(handle);
  Digest digest{};
  digest[0] = 1;
  table->set_digest(*handle, digest);
  EXPECT_EQ(digest, table.samples().at(0).digest);
  EXPECT_TRUE(table->remove(address));
  ASSERT_TRUE(table->add(sample_of(address, 200)));
  table->set_digest(*handle, digest);
  EXPECT_EQ(Digest{}, table.samples().at(0).digest);
}

/** A realloc() that moves frees the old block before jemalloc reports its end.
Another thread may get the address, and a sample, meanwhile. */
TEST(Sample_table, TwoThreadsWithTheSameAddressLeaveNothing) {
#if defined(__SANITIZE_ADDRESS__)
  constexpr int rounds = 500;  // it finds nothing in how threads meet
#else
  constexpr int rounds = 5000;
#endif
  // On a busy machine each round waits for two turns at a processor.
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::seconds(20);
  Table table;
  constexpr int no_more = -1;
  std::atomic<int> begun{0};
  std::atomic<int> ended{0};
  const auto is_reached = [](const std::atomic<int> &number, int wanted) {
    int now;
    while ((now = number.load()) != wanted && now != no_more)
      std::this_thread::yield();
    return now == wanted;
  };
  std::thread other([&] {
    for (int round = 1; is_reached(begun, round); ++round) {
      EXPECT_TRUE(table->add(sample_of(address, 200)));
      EXPECT_TRUE(table->remove(address));
      ended = round;
    }
  });
  size_t left = 0;
  for (int round = 1; round <= rounds && Clock::now() < until; ++round) {
    EXPECT_TRUE(table->add(sample_of(address, 100)));
    begun = round;
    // The two meet at another step in each round.
    for (int i = 0; i < round % 100; ++i) asm volatile("" ::: "memory");
    EXPECT_TRUE(table->remove(address));
    EXPECT_TRUE(is_reached(ended, round));
    left += table.samples().size();
  }
  begun = no_more;
  other.join();
  EXPECT_EQ(0u, left);
}

/** Adds sites until there is no room.
@param depth  of their stacks
@return how many there were */
uint32_t fill(Site_table *table, size_t depth) {
  std::vector<uintptr_t> frames(depth);
  for (uint32_t number = 1;; ++number) {
    std::fill(frames.begin(), frames.end(), number);
    const Stack stack{frames, 0, number};
    const uint32_t added = table->add(Pool::session, 5, stack, 100, 1.5);
    if (added == number) continue;
    EXPECT_EQ(0u, added);
    return number - 1;
  }
}

/** Stacks of the mean depth use up the room for sites and that for frames. */
TEST(Site_table, StaysInItsMemory) {
  constexpr size_t frames = 40;
  size_t last_sites = 0;
  for (size_t bytes = 0; bytes < 100'000; bytes += 8) {
    const size_t sites = Site_table::sites_in(bytes);
    ASSERT_LE(last_sites, sites);
    // One size for each number of sites, the smallest.
    if (sites == std::exchange(last_sites, sites)) continue;
    constexpr uint64_t mark = 0x1234567890abcdef;
    std::vector<uint64_t> memory(bytes / 8 + 500, mark);
    std::fill_n(memory.begin(), bytes / 8, 0);
    Site_table table(memory.data(), bytes);
    const uint32_t added = fill(&table, frames);
    ASSERT_EQ(sites, added);
    ASSERT_EQ(0, std::count_if(memory.begin() + static_cast<int>(bytes / 8),
                               memory.end(),
                               [](uint64_t one) { return one != mark; }))
        << sites << " sites in " << bytes << " bytes";
    uint32_t number = 0;
    table.for_each([&](const Site &site) {
      ++number;
      ASSERT_EQ(number, site.number);
      ASSERT_EQ(number, site.look);
      ASSERT_EQ(frames, site.frames.size());
      ASSERT_EQ(number, site.frames.front());
      ASSERT_EQ(number, site.frames.back());
      ASSERT_EQ(150u, site.allocated_bytes);
      ASSERT_EQ(1.5, site.allocated_objects);
    });
    ASSERT_EQ(sites, number);
  }
  EXPECT_LT(200u, last_sites);
}

TEST(Site_table, AFullOneFindsItsSitesAndTakesNoOther) {
  constexpr size_t bytes = 10'000;
  for (const size_t depth : {size_t{10}, size_t{40}, size_t{90}}) {
    std::vector<uint64_t> memory(bytes / sizeof(uint64_t));
    Site_table table(memory.data(), bytes);
    const uint32_t count = fill(&table, depth);
    const size_t room = Site_table::sites_in(bytes);
    EXPECT_EQ(std::min(room, room * 40 / depth), count);
    for (uint32_t number = 1; number <= count + 1; ++number) {
      const std::vector<uintptr_t> frames(depth, number);
      const uint32_t known = number <= count ? number : 0;
      EXPECT_EQ(known, table.add(Pool::session, 5, {frames, 0, 0}, 100, 1));
      // These are other sites.
      EXPECT_EQ(0u, table.add(Pool::session, 6, {frames, 0, 0}, 100, 1));
      EXPECT_EQ(0u, table.add(Pool::statement, 5, {frames, 0, 0}, 100, 1));
      EXPECT_EQ(0u, table.add(Pool::session, 5, {frames, 1, 0}, 100, 1));
    }
    double objects = 0;
    table.for_each(
        [&](const Site &site) { objects += site.allocated_objects; });
    EXPECT_EQ(count * 2.5, objects) << "the others were not counted";
  }
}

}  // namespace
}  // namespace memdiag::profiling
