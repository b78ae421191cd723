/* The table of live samples: what is removed has gone, also where one address
has two samples for a moment. */

#include "mysys/memdiag/profiling/sample_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

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

}  // namespace
}  // namespace memdiag::profiling
