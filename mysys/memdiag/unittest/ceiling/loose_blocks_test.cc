/*
  What is promised to threads that run no statement, and how the reader of a
  replica's events waits: with figures and a clock that the tests set.
*/

#include "mysys/memdiag/ceiling/loose_blocks.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "mysys/memdiag/base/clock.h"
#include "mysys/memdiag/ceiling/sensor.h"
#include "mysys/memdiag/ceiling/waiting.h"
#include "mysys/memdiag/pools/attention.h"
#include "mysys/memdiag/unittest/giver.h"

namespace memdiag::ceiling {
namespace {

constexpr int64_t mb = 1 << 20;
constexpr size_t size = 16 * mb;

std::atomic<int64_t> kernel_bytes{0};
std::atomic<uint64_t> now_us{1'000'000};
std::atomic<uint64_t> looks{0};
std::atomic<Replica_block> kind{Replica_block::other};
std::atomic<bool> killed{false};
std::atomic<bool> has_lock{false};
/** How often a reader gave its lock up. */
std::atomic<unsigned> left_lock{0};
std::atomic<bool> waited_with_lock{false};
/** Called once, behind a look at the clock. */
std::atomic<void (*)()> behind_look{nullptr};

uint64_t test_clock_us(clockid_t) {
  ++looks;
  const uint64_t now = now_us += 1000;
  if (const auto call = behind_look.exchange(nullptr); call != nullptr) call();
  return now;
}

constexpr Owner owner{
    .replica_block = [](pools::Account) { return kind.load(); },
    .leaves_lock =
        [] {
          if (!has_lock.exchange(false)) return false;
          ++left_lock;
          return true;
        },
    .takes_lock = [] { has_lock = true; },
    .is_killed =
        [] {
          if (has_lock) waited_with_lock = true;
          return killed.load();
        }};

/** Makes no room. */
class Giver : public memdiag_test::Giver {
 public:
  Giver() : memdiag_test::Giver(&now_us, &looks, 100'000, [] {}) {}
};

class Loose : public testing::Test {
 protected:
  Loose() {
    set_clock_for_test(test_clock_us);
    kind = Replica_block::other;
    killed = false;
    account.set_marks({1000 * mb, 64 * mb, 16 * mb});
    account.set_reader([](int64_t *bytes) {
      *bytes = kernel_bytes;
      return true;
    });
    leave(500 * mb);
    EXPECT_EQ(0, switch_on(&owner));
    let_threads_wait(true);
    exempt_thread(true);
    on_event(true, 0, 0);
  }
  ~Loose() override {
    let_threads_wait(false);
    switch_off();
    EXPECT_EQ(0, account.promised_bytes());
    set_clock_for_test(nullptr);
  }

  /** So much is left above the reserve. */
  static void leave(int64_t bytes) {
    kernel_bytes = 984 * mb - bytes;
    EXPECT_TRUE(account.read(now_us));
  }
  static void allocate(const void *block,
                       Replica_block as = Replica_block::other) {
    kind = as;
    EXPECT_TRUE(on_ask(Pool::binlog, size, 0));
    on_allocated(block, size);
  }
  /** The time that it takes to get a block for an event. */
  uint64_t waited_us() {
    const uint64_t before_us = now_us;
    allocate(m_blocks, Replica_block::event);
    on_freed(m_blocks);
    return now_us - before_us;
  }
  static int64_t promised_mb() { return account.promised_bytes() / mb; }

  char m_blocks[4];
};

TEST_F(Loose, a_block_is_promised_until_it_is_touched) {
  auto *const block =
      static_cast<char *>(mmap(nullptr, size, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  allocate(block);
  see_loose_blocks();
  EXPECT_EQ(16, promised_mb());
  const int64_t charged = account.charged_bytes();
  for (size_t i = 0; i < size / 4; i += 4096) block[i] = 1;
  see_loose_blocks();
  EXPECT_EQ(12, promised_mb());
  EXPECT_EQ(charged + 4 * mb, account.charged_bytes());
  now_us += Loose_blocks::longest_us;
  see_loose_blocks();
  EXPECT_EQ(0, promised_mb()) << "some pages are never touched";
  munmap(block, size);
}

TEST_F(Loose, another_thread_may_free_it) {
  allocate(m_blocks);
  EXPECT_EQ(16, promised_mb());
  std::thread([this] { on_freed(m_blocks); }).join();
  EXPECT_EQ(0, promised_mb());
}

TEST_F(Loose, a_block_that_comes_behind_the_look_at_the_clock_is_kept) {
  allocate(m_blocks);
  behind_look = [] { allocate(&killed, Replica_block::event); };
  see_loose_blocks();
  // And as much of the block as is mapped there, and untouched.
  EXPECT_LE(3 * 16, promised_mb());
}

TEST_F(Loose, blocks_without_a_place_are_charged) {
  const int64_t charged = account.charged_bytes();
  static char many[Loose_blocks::most_blocks + 1];
  for (const char &block : many) allocate(&block);
  EXPECT_EQ(16 * int64_t{Loose_blocks::most_blocks}, promised_mb());
  EXPECT_EQ(charged + 16 * mb, account.charged_bytes());
}

TEST_F(Loose, an_event_is_promised_what_workers_take) {
  char *const bytes = m_blocks;
  char *const rows = m_blocks + 1;
  allocate(bytes, Replica_block::event);
  EXPECT_EQ(4 * 16, promised_mb());
  allocate(rows, Replica_block::rows);
  EXPECT_EQ(4 * 16, promised_mb()) << "they were expected";
  on_freed(bytes);
  EXPECT_EQ(3 * 16, promised_mb());
  allocate(m_blocks + 2, Replica_block::applied);
  EXPECT_EQ(3 * 16, promised_mb()) << "a worker's values were expected";
  allocate(m_blocks + 3, Replica_block::applied);
  on_freed(m_blocks + 2);
  on_freed(m_blocks + 3);
  EXPECT_EQ(16, promised_mb());
  on_freed(rows);
  EXPECT_EQ(0, promised_mb());
}

/** A worker frees or takes again what it has for the event before. */
TEST_F(Loose, an_event_is_promised_less_while_another_one_is_applied) {
  allocate(m_blocks, Replica_block::applied);
  const int64_t before = promised_mb();
  allocate(m_blocks + 1, Replica_block::event);
  EXPECT_EQ(3 * 16, promised_mb() - before);
  allocate(m_blocks + 2, Replica_block::event);
  EXPECT_EQ((3 + 4) * 16, promised_mb() - before) << "the first has their room";
  on_freed(m_blocks + 1);
  on_freed(m_blocks + 2);
  allocate(m_blocks + 2, Replica_block::applied);
  allocate(m_blocks + 3, Replica_block::applied);
  now_us += Loose_blocks::longest_us;
  see_loose_blocks();
  EXPECT_EQ(0, promised_mb());
  allocate(m_blocks + 1, Replica_block::event);
  EXPECT_EQ(2 * 16, promised_mb()) << "it is read, and packed";
}

/** A worker's buffer for the binary log lives as long as the worker. */
TEST_F(Loose, a_buffer_of_a_settings_size_is_no_part_of_an_event) {
  constexpr pools::Account buffers = 7;
  pools::may_be_smaller[buffers] = true;
  kind = Replica_block::applied;
  EXPECT_TRUE(on_ask(Pool::binlog, size, buffers));
  account.set_reader([](int64_t *) { return false; });
  const int64_t charged = account.charged_bytes();
  on_event(true, size, 0);
  EXPECT_EQ(charged + 16 * mb, account.charged_bytes()) << "it is taken";
  on_allocated(m_blocks, size);
  EXPECT_EQ(0, promised_mb());
  allocate(m_blocks + 1, Replica_block::event);
  EXPECT_EQ(4 * 16, promised_mb());
  on_freed(m_blocks + 1);
  pools::may_be_smaller[buffers] = false;
}

TEST_F(Loose, the_promise_to_an_event_ends_with_it) {
  allocate(m_blocks, Replica_block::event);
  std::thread([this] { on_freed(m_blocks); }).join();
  EXPECT_EQ(0, promised_mb());
  // A worker may wait for a lock for long.
  allocate(m_blocks, Replica_block::event);
  now_us += Loose_blocks::longest_us;
  see_loose_blocks();
  EXPECT_EQ(0, promised_mb());
}

TEST_F(Loose, the_rows_of_an_event_that_is_gone_are_those_of_a_worker) {
  allocate(m_blocks, Replica_block::rows);
  EXPECT_EQ(16, promised_mb());
}

TEST_F(Loose, a_thread_waits_to_read_an_event_until_there_is_room) {
  leave(4 * size - mb);
  const uint64_t waits = counters.waits;
  const uint64_t went_on = counters.went_on;
  std::atomic<bool> passed{false};
  std::thread reader([this, &passed] {
    exempt_thread(true);
    on_event(true, 0, 0);
    allocate(m_blocks, Replica_block::event);
    passed = true;
  });
  while (account.promised_bytes() == 0) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(passed);
  leave(4 * size + 4 * mb);
  rounds.end_one();
  reader.join();
  EXPECT_EQ(waits + 1, counters.waits);
  EXPECT_EQ(went_on, counters.went_on);
}

TEST_F(Loose, it_waits_without_its_lock) {
  left_lock = 0;
  has_lock = true;
  allocate(m_blocks, Replica_block::event);
  on_freed(m_blocks);
  EXPECT_EQ(0u, left_lock) << "there is room";
  EXPECT_TRUE(has_lock);
  leave(3 * size);
  const Giver giver;
  EXPECT_GE(waited_us(), longest_ask_us);
  EXPECT_EQ(1u, left_lock);
  EXPECT_TRUE(has_lock);
  EXPECT_FALSE(waited_with_lock);
  has_lock = false;
  leave(500 * mb);
  EXPECT_GT(longest_ask_us, waited_us()) << "the next wait is long again";
}

TEST_F(Loose, it_does_not_wait_for_ever_nor_as_long_each_time) {
  leave(3 * size);
  const Giver giver;
  const uint64_t went_on = counters.went_on;
  EXPECT_GE(waited_us(), longest_ask_us);
  EXPECT_EQ(went_on + 1, counters.went_on);
  EXPECT_LT(waited_us(), longest_ask_us);
  EXPECT_EQ(went_on + 2, counters.went_on);
  allocate(m_blocks + 1, Replica_block::event);
  leave(7 * size);
  EXPECT_GE(waited_us(), longest_ask_us) << "an event is applied";
  leave(500 * mb);
  (void)waited_us();
  on_freed(m_blocks + 1);
  leave(3 * size);
  killed = true;
  EXPECT_LT(waited_us(), longest_ask_us) << "STOP REPLICA ends the wait";
  EXPECT_EQ(went_on + 4, counters.went_on);
}

TEST_F(Loose, it_waits_longer_behind_an_event_for_what_would_end_the_server) {
  leave(4 * size + mb);
  allocate(m_blocks + 1, Replica_block::event);
  const Giver giver;
  EXPECT_GE(waited_us(), longest_large_ask_us);
}

/** The giver may wait for a mutex of the reader. */
TEST_F(Loose, it_does_not_wait_for_a_giver_that_stands_still) {
  leave(4 * size + mb);
  allocate(m_blocks + 1, Replica_block::event);
  std::atomic<bool> stop{false};
  // It does not run away from a reader that loses the processor. After ten
  // seconds it does: one that waits too long has an end even so.
  const uint64_t enough_us = now_us + longest_ask_us + 1'000'000;
  std::thread clock([&stop, enough_us] {
    for (int i = 0; !stop; ++i) {
      if (now_us < enough_us || i > 100'000) now_us += 10'000;
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  });
  const uint64_t waited = waited_us();
  EXPECT_GE(waited, longest_ask_us);
  EXPECT_LT(waited, longest_large_ask_us);
  stop = true;
  clock.join();
}

TEST_F(Loose, workers_and_a_ceiling_that_only_watches_do_not_wait) {
  leave(0);
  const uint64_t waits = counters.waits;
  allocate(m_blocks);
  allocate(m_blocks + 1, Replica_block::rows);
  let_threads_wait(false);
  allocate(m_blocks + 2, Replica_block::event);
  EXPECT_EQ(waits, counters.waits);
}

}  // namespace
}  // namespace memdiag::ceiling
