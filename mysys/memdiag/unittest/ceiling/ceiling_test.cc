/*
  The ceiling's levels, account, asks and rounds with figures and a clock that
  the tests set, and its sensor with events of the tests.
*/

#include "mysys/memdiag/ceiling/sensor.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <random>
#include <thread>
#include <vector>

#include "mysys/memdiag/base/clock.h"
#include "mysys/memdiag/ceiling/going_on.h"
#include "mysys/memdiag/ceiling/loose_blocks.h"
#include "mysys/memdiag/ceiling/taken.h"
#include "mysys/memdiag/ceiling/waiting.h"
#include "mysys/memdiag/jemalloc/mallctl.h"
#include "mysys/memdiag/pools/attention.h"
#include "mysys/memdiag/pools/pools.h"
#include "mysys/memdiag/unittest/asleep.h"
#include "mysys/memdiag/unittest/giver.h"

namespace memdiag::ceiling {
namespace {

using memdiag_test::is_asleep;

constexpr int64_t mb = 1 << 20;

std::atomic<int64_t> kernel_bytes{0};
std::atomic<bool> kernel_can_be_read{true};
std::atomic<uint64_t> now_us{1'000'000};
std::atomic<unsigned> calls{0};

bool read_kernel(int64_t *bytes) {
  errno = EAGAIN;
  *bytes = kernel_bytes;
  return kernel_can_be_read;
}

std::atomic<uint64_t> clock_reads{0};
uint64_t test_clock_us(clockid_t) {
  ++clock_reads;
  return now_us;
}

/** The calling thread has looked at the clock so long ago. */
constinit thread_local const std::atomic<uint64_t> *late_by_us = nullptr;
uint64_t late_clock_us(clockid_t clock) {
  return test_clock_us(clock) -
         (late_by_us == nullptr ? 0 : late_by_us->load());
}

constexpr Owner silent{};

/** A session whose client sends a long value: the next packet is one of its
parts, and so many values were dropped. */
std::atomic<bool> next_is_part{false};
std::atomic<uint64_t> values_dropped{0};
constexpr Owner sender_of_value{
    .text_comes = [] { return true; },
    .longest_wait_us = [] { return uint64_t{300'000}; },
    .keeps_value = [] { return next_is_part.load(); },
    .drops_of_values = [] { return values_dropped.load(); }};

TEST(Ceiling_levels, marks_of_a_small_limit_have_the_least_values) {
  const Marks marks = marks_of_limit(512 * mb, 10);
  EXPECT_EQ(480 * mb, marks.target_bytes);
  EXPECT_EQ(64 * mb, marks.plenty_bytes);
  EXPECT_EQ(16 * mb, marks.reserve_bytes);
}

TEST(Ceiling_levels, marks_grow_with_the_limit_and_with_statements) {
  const Marks marks = marks_of_limit(3200 * mb, 10);
  EXPECT_EQ(3100 * mb, marks.target_bytes);
  EXPECT_EQ(200 * mb, marks.plenty_bytes);
  EXPECT_EQ(100 * mb, marks.reserve_bytes);
  EXPECT_EQ(125 * mb, marks_of_limit(3200 * mb, 2000).reserve_bytes);
  EXPECT_EQ(3200 * mb, marks_of_target(3200 * mb, 10).target_bytes);
}

TEST(Ceiling_levels, no_limit_overflows) {
  const Marks marks = marks_of_limit(UINT64_MAX, UINT64_MAX);
  EXPECT_GT(marks.target_bytes, 0);
  EXPECT_EQ(Level::green, level_of(marks.target_bytes, marks));
}

TEST(Ceiling_levels, each_begins_at_its_mark) {
  const Marks marks{1000 * mb, 64 * mb, 16 * mb};
  EXPECT_EQ(Level::green, level_of(64 * mb, marks));
  EXPECT_EQ(Level::yellow, level_of(64 * mb - 1, marks));
  EXPECT_EQ(Level::yellow, level_of(16 * mb, marks));
  EXPECT_EQ(Level::red, level_of(16 * mb - 1, marks));
  EXPECT_EQ(Level::red, level_of(-mb, marks));
}

TEST(Ceiling_levels, the_giver_looks_before_4_gb_a_second_reach_the_reserve) {
  const Marks marks{1000 * mb, 64 * mb, 16 * mb};
  EXPECT_EQ(1'000u, next_look_us(0, marks));
  EXPECT_EQ(1'000u, next_look_us(16 * mb, marks));
  EXPECT_EQ(100u * 256, next_look_us(116 * mb, marks));
  EXPECT_EQ(250'000u, next_look_us(INT64_MAX / 2, marks));
}

/** The account of blocks whose users look whether they got them. */
constexpr pools::Account strings = 3;

/** Each thread that waits for the lane tells it. */
std::atomic<int> told_large{0};
constexpr Owner counts_large{.is_large = [] {
  ++told_large;
  return true;
}};

/** Waits for what another thread does, for some ten seconds at most.
@return it holds */
template <typename Holds>
bool until(Holds holds) {
  for (int i = 0; i < 1000 && !holds(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return holds();
}

constexpr uint64_t an_hour_us = 3'600'000'000;

/** A thread that has seen no end goes to sleep under the mutex. An end that
came between would not wake it. */
TEST(Ceiling_rounds, a_round_ends_under_the_mutex) {
  Rounds rounds;
  std::atomic<pid_t> id{0};
  std::atomic<bool> ended{false};
  rounds.hold();
  std::thread ending([&] {
    id = gettid();
    rounds.end_one();
    ended = true;
  });
  EXPECT_TRUE(until([&] { return ended || is_asleep(id); }));
  EXPECT_FALSE(ended);
  EXPECT_EQ(0u, rounds.ended());
  rounds.let_go();
  ending.join();
  EXPECT_EQ(1u, rounds.ended());
}

TEST(Ceiling_rounds, a_wait_ends_with_the_next_round_or_its_time) {
  Rounds rounds;
  rounds.wait(0, 1);
  rounds.end_one(false);
  rounds.wait(0, an_hour_us);
  EXPECT_EQ(1u, rounds.ended());
  std::atomic<pid_t> id{0};
  std::thread waiting([&] {
    id = gettid();
    rounds.wait(1, an_hour_us);
  });
  EXPECT_TRUE(until([&id] { return is_asleep(id); }));
  rounds.end_one();
  waiting.join();
  EXPECT_EQ(2u, rounds.ended());
}

/** The kernel is asked about 2,048 pages at a time. */
TEST(Ceiling_blocks, only_pages_of_the_block_are_untouched) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  constexpr size_t pages = 4100;
  const size_t size = (pages + 2) * page;
  void *const mapping = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(MAP_FAILED, mapping);
  (void)madvise(mapping, size, MADV_NOHUGEPAGE);
  char *const begin = static_cast<char *>(mapping) + page;
  const auto untouched_pages = [&](size_t offset, size_t bytes) {
    const Block block{reinterpret_cast<uintptr_t>(begin) + offset, bytes,
                      INT64_MAX};
    return static_cast<size_t>(untouched_bytes(block)) / page;
  };
  for (const size_t count : {size_t{1}, size_t{2047}, size_t{2048},
                             size_t{2049}, size_t{4096}, pages}) {
    EXPECT_EQ(count, untouched_pages(0, count * page));
    EXPECT_EQ(count, untouched_pages(0, count * page - 1));
    EXPECT_EQ(count, untouched_pages(page / 2, count * page - page / 2));
    EXPECT_EQ(count + 1, untouched_pages(page / 2, count * page));
  }
  for (size_t i = 0; i < pages; i += 4) begin[i * page] = 1;
  EXPECT_EQ(pages - pages / 4, untouched_pages(0, pages * page));
  const Block counted{reinterpret_cast<uintptr_t>(begin), pages * page, 5};
  EXPECT_EQ(5, untouched_bytes(counted)) << "no more than was counted";
  munmap(mapping, size);
  EXPECT_EQ(0, untouched_bytes(counted)) << "it was freed";
}

class Ceiling : public testing::Test {
 protected:
  Ceiling() {
    pools::may_be_refused[strings] = true;
    set_clock_for_test(test_clock_us);
    kernel_bytes = 800 * mb;
    kernel_can_be_read = true;
    account.set_marks({1000 * mb, 64 * mb, 16 * mb});
    account.set_reader(read_kernel);
    tokens.set_all(16 * mb);
    EXPECT_TRUE(account.read(now_us));
    // Texts took eight times their size before, as at a start of the server.
    for (int i = 0; i < 64; ++i) note_text(mb, 8 * mb);
  }
  ~Ceiling() override {
    let_threads_wait(false);
    begin(0);
    end();
    transaction_ended();
    exempt_thread(true);
    switch_off();
    EXPECT_EQ(0, account.promised_bytes());
    EXPECT_EQ(0, account.expected_bytes());
    EXPECT_EQ(0, account.asked_bytes());
    EXPECT_EQ(0, tokens.taken_bytes());
    set_clock_for_test(nullptr);
  }

  static void kernel_counts(int64_t bytes) {
    kernel_bytes = bytes;
    EXPECT_TRUE(account.read(now_us));
  }

  /** Of a thread whose growth is known. */
  static Taker *begin_statement(const Owner *owner = &silent) {
    EXPECT_EQ(0, switch_on(owner));
    let_threads_wait(true);
    on_event(true, 0, 0);
    return begin(0);
  }

  /** Between two statements, its client sends a value. */
  static void await_value() {
    next_is_part = false;
    begin_statement(&sender_of_value);
    end();
    let_threads_ask(true);
  }

  static void make_red() {
    kernel_counts(999 * mb);
    EXPECT_EQ(Level::red, account.level());
  }
  /** The calling thread's statement begins, and then there is no room. */
  static Taker *begin_statement_at_red(const Owner *owner = &silent) {
    Taker *const taker = begin_statement(owner);
    let_threads_ask(true);
    make_red();
    return taker;
  }
  /** The calling thread's statement has a large block of malloc(), and there is
  no plenty for another. */
  static void take_lane() {
    let_threads_ask(true);
    kernel_counts(940 * mb);
    EXPECT_EQ(Level::yellow, account.level());
    on_event(true, 2 * mb, 0);
  }
  /** So does that of another thread, once it has the lane. */
  static void begin_with_large_block(std::atomic<bool> *passed) {
    begin(0);
    on_event(true, 0, 0);
    on_event(true, 2 * mb, 0);
    *passed = true;
  }
  /** Another thread's statement gets a megabyte once it may. */
  static void begin_and_ask(std::atomic<bool> *passed) {
    on_event(true, 0, 0);
    begin(0);
    EXPECT_TRUE(on_ask(Pool::statement, mb));
    *passed = true;
  }
};

TEST_F(Ceiling, what_is_left_is_less_what_was_charged_and_promised) {
  EXPECT_EQ(200 * mb, account.left_bytes());
  account.charge(100 * mb);
  account.promise(50 * mb);
  EXPECT_EQ(50 * mb, account.left_bytes());
  EXPECT_EQ(Level::yellow, account.level());
  account.promise(-50 * mb);
}

/** It would make the level known again. */
TEST_F(Ceiling, a_reading_that_runs_is_over_before_the_level_is_unknown) {
  static constinit std::atomic<bool> reads{false};
  static constinit std::atomic<bool> may_end{false};
  reads = may_end = false;
  account.set_reader([](int64_t *bytes) {
    reads = true;
    while (!may_end) std::this_thread::yield();
    *bytes = 0;
    return true;
  });
  std::thread reading([] { EXPECT_TRUE(account.read(now_us)); });
  while (!reads) std::this_thread::yield();
  std::thread ending([] { account.set_reader(nullptr); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  may_end = true;
  reading.join();
  ending.join();
  EXPECT_EQ(Level::unknown, account.level());
  EXPECT_FALSE(account.read(now_us));
}

TEST_F(Ceiling, a_reading_replaces_what_was_charged) {
  account.charge(100 * mb);
  kernel_counts(850 * mb);
  EXPECT_EQ(0, account.charged_bytes());
  EXPECT_EQ(150 * mb, account.left_bytes());
}

TEST_F(Ceiling,
       an_unreadable_kernel_leaves_the_level_unknown_until_it_is_back) {
  kernel_can_be_read = false;
  account.charge(300 * mb);
  EXPECT_FALSE(account.read(now_us));
  EXPECT_EQ(Level::unknown, account.level());
  kernel_can_be_read = true;
  EXPECT_TRUE(account.read(now_us));
  EXPECT_EQ(Level::green, account.level());
}

TEST_F(Ceiling, the_kernel_is_read_after_4_mb_or_1_mb_when_memory_is_short) {
  account.charge(4 * mb);
  EXPECT_FALSE(account.is_due(now_us));
  account.charge(1);
  EXPECT_TRUE(account.is_due(now_us));
  kernel_counts(950 * mb);
  EXPECT_EQ(Level::yellow, account.level());
  account.charge(mb + 1);
  EXPECT_FALSE(account.is_due(now_us));
  EXPECT_TRUE(account.is_due(now_us + 1'000));
}

TEST_F(Ceiling, the_kernel_is_read_although_a_thread_frees_what_it_takes) {
  begin_statement();
  on_event(true, 5 * mb, 5 * mb);
  const uint64_t readings = account.readings();
  on_event(true, 10 * mb, 10 * mb);
  EXPECT_EQ(readings + 1, account.readings());
  kernel_counts(100 * mb);
  on_event(true, 90 * mb, 90 * mb);
  EXPECT_EQ(readings + 2, account.readings()) << "much is left";
}

TEST_F(Ceiling, an_ask_waits_while_the_level_is_red) {
  Asked asked{mb, now_us, 0, 0, now_us};
  EXPECT_EQ(Answer::room,
            answer(account, &tokens, &asked, false, Refusal::never, now_us, 0));
  account.charge(190 * mb);
  EXPECT_EQ(Answer::wait,
            answer(account, &tokens, &asked, false, Refusal::never, now_us, 0));
}

TEST_F(Ceiling, one_that_was_told_to_end_takes_tokens_while_there_are_any) {
  account.charge(300 * mb);
  Asked asked{10 * mb, now_us, 0, 0, now_us};
  EXPECT_EQ(Answer::tokens,
            answer(account, &tokens, &asked, true, Refusal::never, now_us, 0));
  EXPECT_EQ(Answer::wait,
            answer(account, &tokens, &asked, true, Refusal::never, now_us, 0));
  tokens.give_back(10 * mb);
}

TEST_F(Ceiling, a_wait_needs_time_and_rounds_to_end_without_room) {
  account.charge(300 * mb);
  Asked asked{mb, now_us, 0, 0, now_us};
  const uint64_t late_us = now_us + longest_ask_us;
  EXPECT_EQ(Answer::wait, answer(account, &tokens, &asked, false,
                                 Refusal::never, now_us, 1000));
  asked = {mb, now_us, 0, 0, now_us};
  EXPECT_EQ(Answer::wait, answer(account, &tokens, &asked, false,
                                 Refusal::never, late_us, 99));
  EXPECT_EQ(Answer::went_on, answer(account, &tokens, &asked, false,
                                    Refusal::never, late_us, 100));
}

TEST_F(Ceiling, a_wait_for_more_than_the_limit_has_is_longer) {
  account.charge(300 * mb);
  Asked asked{16 * mb + 1, now_us, 0, 0, now_us};
  const auto at = [&asked](uint64_t us) {
    return answer(account, &tokens, &asked, false, Refusal::never, now_us + us,
                  longest_ask_rounds);
  };
  EXPECT_EQ(Answer::wait, at(longest_large_ask_us - 1));
  EXPECT_EQ(Answer::went_on, at(longest_large_ask_us));
  account.charge(-90 * mb);
  EXPECT_EQ(Answer::went_on, at(longest_ask_us)) << "it is less than a reserve";
}

/** The kernel would end the server. */
TEST_F(Ceiling, a_block_beyond_the_limit_is_refused_after_its_wait) {
  account.charge(300 * mb);
  const auto after_wait = [](Refusal refusal, int64_t bytes) {
    Asked asked{bytes, now_us, 0, 0, now_us};
    return answer(account, &tokens, &asked, false, refusal,
                  now_us + longest_large_ask_us, longest_ask_rounds);
  };
  EXPECT_EQ(Answer::refuse, after_wait(Refusal::too_large, 16 * mb + 1));
  EXPECT_EQ(Answer::refuse, after_wait(Refusal::at_once, 16 * mb + 1));
  EXPECT_EQ(Answer::went_on, after_wait(Refusal::never, 16 * mb + 1));
  EXPECT_EQ(Answer::went_on, after_wait(Refusal::at_once, 16 * mb));
  account.charge(-90 * mb);
  EXPECT_EQ(Answer::went_on, after_wait(Refusal::at_once, 16 * mb + 1));
}

/** While a thread waits, what it waits for is not promised, so that others go
on. The giver has to know of it even so. */
TEST_F(Ceiling, what_waiting_threads_ask_for_is_known) {
  static constexpr Owner owner{.is_executing = [] { return true; }};
  begin_statement(&owner);
  let_threads_wait(true);
  std::atomic<bool> over{false};
  std::thread giver([&over] {
    while (account.asked_bytes() == 0) std::this_thread::yield();
    EXPECT_EQ(300 * mb, account.asked_bytes());
    while (account.level() != Level::green) std::this_thread::yield();
    while (!over) {
      now_us += longest_large_ask_us;
      rounds.end_one();
      std::this_thread::yield();
    }
  });
  EXPECT_FALSE(on_ask(Pool::session, 300 * mb, strings));
  over = true;
  giver.join();
  EXPECT_EQ(0, account.asked_bytes());
  EXPECT_EQ(Level::green, account.level());
}

TEST_F(Ceiling, each_wait_without_room_makes_the_next_one_half_as_long) {
  account.charge(300 * mb);
  const auto after = [](uint64_t us, uint64_t rounds, uint32_t went_on) {
    Asked asked{mb, now_us, 0, 0, now_us, went_on};
    return answer(account, &tokens, &asked, false, Refusal::never, now_us + us,
                  rounds);
  };
  EXPECT_EQ(Answer::wait, after(longest_ask_us / 2, 50, 0));
  EXPECT_EQ(Answer::wait, after(longest_ask_us / 2 - 1, 50, 1));
  EXPECT_EQ(Answer::wait, after(longest_ask_us / 2, 49, 1));
  EXPECT_EQ(Answer::went_on, after(longest_ask_us / 2, 50, 1));
  EXPECT_EQ(Answer::wait, after(10'000, 100, 40)) << "never is it no wait";
}

TEST_F(Ceiling, a_wait_ends_when_the_giver_stands_still) {
  account.charge(300 * mb);
  Asked asked{mb, now_us, 7, 7, now_us};
  EXPECT_EQ(Answer::wait,
            answer(account, &tokens, &asked, false, Refusal::never,
                   now_us + longest_ask_us - 1, 7));
  EXPECT_EQ(Answer::went_on,
            answer(account, &tokens, &asked, false, Refusal::never,
                   now_us + longest_ask_us, 7));
}

TEST_F(Ceiling, without_a_switch_events_change_nothing) {
  on_event(true, 500 * mb, 0);
  EXPECT_EQ(0, account.charged_bytes());
}

TEST(Ceiling_sensor, the_control_exists) {
  EXPECT_EQ(0, mallctl::resolve(Ctl::hook_thread_event));
}

TEST_F(Ceiling, threads_without_a_statement_are_charged_and_never_wait) {
  static constexpr Owner counts{.call_giver = [] { ++calls; }};
  ASSERT_EQ(0, switch_on(&counts));
  on_event(true, 1000 * mb, 0);
  // What it took before is not known.
  EXPECT_EQ(int64_t{interval_bytes}, account.charged_bytes());
  on_event(true, 1003 * mb, 0);
  EXPECT_EQ(3 * mb + int64_t{interval_bytes}, account.charged_bytes());
  kernel_bytes = 999 * mb;
  const unsigned before = calls;
  const uint64_t waits = counters.waits;
  on_event(true, 1010 * mb, 0);
  EXPECT_EQ(Level::red, account.level());
  EXPECT_GT(calls, before);
  EXPECT_EQ(waits, counters.waits);
}

TEST_F(Ceiling, an_event_keeps_errno) {
  ASSERT_EQ(0, switch_on(&silent));
  errno = EDOM;
  on_event(true, 10 * mb, 0);
  on_event(true, 20 * mb, 0);
  EXPECT_EQ(EDOM, errno);
}

TEST_F(Ceiling, the_last_growth_of_a_statement_is_promised_until_it_ends) {
  Taker *const taker = begin_statement();
  on_event(true, 16 * mb, 0);
  EXPECT_EQ(16 * mb, account.promised_bytes());
  // The kernel does not count it: it is not touched.
  EXPECT_TRUE(account.read(now_us));
  EXPECT_EQ(184 * mb, account.left_bytes());
  on_event(true, 17 * mb, 0);
  EXPECT_EQ(1 * mb, account.promised_bytes());
  EXPECT_EQ(17 * mb, taker->grown_bytes);
  end();
  EXPECT_EQ(0, account.promised_bytes());
}

TEST_F(Ceiling, an_ask_is_not_counted_again_by_its_event) {
  begin_statement();
  let_threads_ask(true);
  on_ask(Pool::statement, 16 * mb);
  EXPECT_EQ(16 * mb, account.promised_bytes());
  on_event(true, 16 * mb, 0);
  EXPECT_EQ(16 * mb, account.promised_bytes());
}

TEST_F(Ceiling, pools_of_innodb_never_wait) {
  begin_statement_at_red();
  const uint64_t waits = counters.waits;
  on_ask(Pool::innodb, 16 * mb);
  on_event(true, 16 * mb, 0);
  EXPECT_EQ(waits, counters.waits);
}

class Giver : public memdiag_test::Giver {
 public:
  Giver(uint64_t us, bool makes_room)
      : memdiag_test::Giver(&now_us, &clock_reads, us, [makes_room] {
          if (!makes_room || account.level() != Level::red) return;
          kernel_bytes = 500 * mb;
          (void)account.read(now_us);
        }) {}
};

TEST_F(Ceiling, a_statement_waits_in_an_ask_and_goes_on) {
  begin_statement_at_red();
  const uint64_t waits = counters.waits;
  const uint64_t went_on = counters.went_on;
  const uint64_t waited_us = counters.wait_us;
  const uint64_t began_us = now_us;
  const uint64_t before = rounds.ended();
  // The giver may be interrupted between the clock's step and the round's end:
  // for a waiting thread no round ended during that step and the one before.
  const Giver giver(longest_ask_us / 4, false);
  on_ask(Pool::statement, mb);
  EXPECT_EQ(waits + 1, counters.waits);
  EXPECT_EQ(went_on + 1, counters.went_on);
  EXPECT_LT(waited_us, counters.wait_us);
  EXPECT_GE(waited_us + (now_us - began_us), counters.wait_us);
  EXPECT_GE(rounds.ended() - before, longest_ask_rounds);
}

/** DDL asks again and again, and never ends before its end. */
TEST_F(Ceiling, a_statement_does_not_wait_as_long_each_time) {
  begin_statement_at_red();
  const Giver giver(20'000, false);
  const auto waited_us = [] {
    const uint64_t before_us = now_us;
    on_ask(Pool::statement, 100'000);
    return now_us - before_us;
  };
  EXPECT_GE(waited_us(), longest_ask_us);
  EXPECT_LT(waited_us(), longest_ask_us);
  end();
  begin(0);
  EXPECT_GE(waited_us(), longest_ask_us) << "another statement";
}

TEST_F(Ceiling, a_thread_that_may_be_in_a_pool_waits_at_its_next_ask) {
  begin_statement();
  make_red();
  let_threads_ask(true);
  const uint64_t waits = counters.waits;
  on_event(true, mb / 2, 0);
  EXPECT_EQ(waits, counters.waits);
  on_ask(Pool::innodb, 100);
  on_event(true, mb, 0);
  EXPECT_EQ(waits, counters.waits);
  const Giver giver(longest_ask_us, false);
  on_ask(Pool::statement, 100);
  EXPECT_EQ(waits + 1, counters.waits);
}

/** As when it has taken a step of the giver. */
TEST_F(Ceiling, what_a_busy_thread_took_is_no_large_block_of_malloc) {
  begin_statement();
  make_red();
  let_threads_ask(true);
  on_event(true, mb / 4, 0);
  {
    const No_wait no_wait;
    on_event(true, 2 * mb, 0);
  }
  const uint64_t waits = counters.waits;
  const Giver giver(longest_ask_us, false);
  on_ask(Pool::innodb, 100);
  on_event(true, 3 * mb, 0);
  EXPECT_EQ(waits, counters.waits) << "in a pool";
  on_ask(Pool::statement, 100);
  EXPECT_EQ(waits + 1, counters.waits);
}

/** InnoDB's heaps have their small blocks from malloc(), below latches. */
TEST_F(Ceiling, a_thread_that_malloc_serves_for_a_pool_waits_at_its_next_ask) {
  begin_statement();
  make_red();
  let_threads_ask(true);
  on_event(true, mb / 4, 0);
  const uint64_t waits = counters.waits;
  const Giver giver(longest_ask_us, false);
  pools::in_malloc_of_pool = true;
  on_event(true, mb / 2, 0);
  pools::in_malloc_of_pool = false;
  EXPECT_EQ(waits, counters.waits);
  on_ask(Pool::statement, 100);
  EXPECT_EQ(waits + 1, counters.waits);
}

TEST_F(Ceiling, malloc_serves_a_pool_until_it_returns) {
  if (!mallctl::serves_malloc()) GTEST_SKIP() << "a sanitizer serves malloc()";
  static bool serves;
  static constexpr Owner owner{.is_large = [] {
    serves = serves || pools::in_malloc_of_pool;
    return false;
  }};
  begin_statement(&owner);
  constexpr size_t small = 1024;
  std::array<void *, 4096> blocks;
  for (const bool ask : {false, true}) {
    serves = false;
    let_threads_ask(ask);
    for (void *&block : blocks) block = pools::allocate(Pool::general, small);
    EXPECT_EQ(ask, serves);
    void *const large = pools::allocate(Pool::general, 4 * mb);
    EXPECT_TRUE(serves) << "a large block is always one";
    pools::free(Pool::general, large, 4 * mb);
    EXPECT_FALSE(pools::in_malloc_of_pool);
    for (void *const block : blocks) pools::free(Pool::general, block, small);
  }
}

TEST_F(Ceiling, room_ends_a_wait) {
  begin_statement_at_red();
  const uint64_t went_on = counters.went_on;
  const Giver giver(1, true);
  on_ask(Pool::statement, mb);
  EXPECT_EQ(Level::green, account.level());
  EXPECT_EQ(went_on, counters.went_on);
}

TEST_F(Ceiling, what_is_expected_keeps_others_from_beginning) {
  ASSERT_EQ(0, switch_on(&silent));
  on_event(true, 0, 0);
  EXPECT_TRUE(account.read(now_us));
  begin(30 * mb);
  EXPECT_EQ(200 * mb, account.left_bytes());
  EXPECT_EQ(170 * mb, account.left_for_beginners_bytes());
  on_event(true, 10 * mb, 0);
  EXPECT_EQ(20 * mb, account.expected_bytes());
  // It freed some: that it took them says what it still needs.
  on_event(false, 10 * mb, 9 * mb);
  EXPECT_EQ(20 * mb, account.expected_bytes());
  EXPECT_EQ(10 * mb, end());
  EXPECT_EQ(0, account.expected_bytes());
}

TEST_F(Ceiling, a_statement_beyond_its_expectation_may_take_as_much_again) {
  begin_statement();
  on_event(true, 10 * mb, 0);
  EXPECT_EQ(10 * mb, account.expected_bytes());
  // Half of the plenty at most.
  on_event(true, 100 * mb, 0);
  EXPECT_EQ(32 * mb, account.expected_bytes());
}

TEST_F(Ceiling, a_large_block_is_promised_until_its_pages_are_touched) {
  begin_statement();
  constexpr size_t size = 16 * mb;
  auto *const block =
      static_cast<char *>(mmap(nullptr, size, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(MAP_FAILED, static_cast<void *>(block));
  EXPECT_TRUE(on_ask(Pool::statement, size));
  on_event(true, size, 0);
  on_allocated(block, size);
  EXPECT_EQ(static_cast<int64_t>(size), account.promised_bytes());
  // Another event does not settle it.
  now_us += 10'000;
  on_event(true, size + 1000, 0);
  EXPECT_EQ(static_cast<int64_t>(size) + 1000, account.promised_bytes());
  for (size_t i = 0; i < size / 4; i += 4096) block[i] = 1;
  now_us += 10'000;
  on_event(true, size + 1000, 1);
  EXPECT_EQ(static_cast<int64_t>(size / 4 * 3) + 1000,
            account.promised_bytes());
  // The thread frees another block of the same size.
  now_us += 10'000;
  on_event(true, size + 1000, size + 1);
  on_freed(block + size);
  EXPECT_EQ(static_cast<int64_t>(size / 4 * 3) + 1000,
            account.promised_bytes());
  on_freed(block);
  EXPECT_EQ(1000, account.promised_bytes());
  munmap(block, size);
}

TEST_F(Ceiling, a_statement_that_is_parsed_promises_what_follows) {
  static bool parsing;
  parsing = true;
  static constexpr Owner owner{.is_parsing = [] { return parsing; }};
  ASSERT_EQ(0, switch_on(&owner));
  on_event(true, 0, 0);
  EXPECT_TRUE(account.read(now_us));
  begin_late(true);
  // The growth, and a quarter of it.
  on_event(true, 40 * mb - interval_bytes, 0);
  EXPECT_EQ(50 * mb - interval_bytes, account.promised_bytes());
  parsing = false;
  on_event(true, 50 * mb - interval_bytes, 0);
  EXPECT_EQ(10 * mb, account.promised_bytes());
  on_event(true, 90 * mb - interval_bytes, 0);
  EXPECT_EQ(40 * mb, account.promised_bytes());
}

TEST_F(Ceiling, a_copy_of_a_text_is_refused_at_once_without_tokens) {
  static bool copies;
  static unsigned errors;
  copies = true;
  errors = 0;
  static constexpr Owner owner{.is_before_parser = [] { return copies; },
                               .refused = [](uint64_t) { ++errors; }};
  Taker *const taker = begin_statement_at_red(&owner);
  taker->told_to_end = true;
  EXPECT_TRUE(on_ask(Pool::statement, 12 * mb)) << "there are tokens";
  EXPECT_FALSE(on_ask(Pool::statement, 12 * mb));
  EXPECT_EQ(1u, errors);
  // Small blocks are not looked at, and the parser does not look at its own.
  const Giver giver(longest_ask_us, false);
  EXPECT_TRUE(on_ask(Pool::statement, 100 << 10));
  copies = false;
  EXPECT_TRUE(on_ask(Pool::statement, 12 * mb));
  EXPECT_EQ(1u, errors);
}

TEST_F(Ceiling, a_small_statement_that_grows_large_is_counted_from_its_begin) {
  static Taker *taker;
  taker = nullptr;
  static constexpr Owner owner{.is_large = [] {
    taker = begin_late(false);
    return true;
  }};
  ASSERT_EQ(0, switch_on(&owner));
  on_event(true, 5 * mb, 0);
  EXPECT_TRUE(account.read(now_us));
  EXPECT_TRUE(begin_small());
  on_event(true, 5 * mb + large_bytes / 2, 0);
  EXPECT_EQ(nullptr, taker);
  EXPECT_TRUE(begin_small()) << "the next one";
  on_event(true, 5 * mb + large_bytes, 0);
  EXPECT_EQ(nullptr, taker);
  on_event(true, 5 * mb + large_bytes * 5 / 2, 0);
  ASSERT_NE(nullptr, taker);
  EXPECT_EQ(large_bytes * 2, taker->grown_bytes);
  EXPECT_FALSE(begin_small()) << "it has begun";
  EXPECT_EQ(large_bytes * 2, end());
}

TEST_F(Ceiling, while_memory_is_short_no_statement_begins_as_a_small_one) {
  ASSERT_EQ(0, switch_on(&silent));
  EXPECT_TRUE(begin_small());
  let_threads_ask(true);
  EXPECT_FALSE(begin_small());
  let_threads_ask(false);
  EXPECT_TRUE(begin_small());
}

TEST_F(Ceiling, a_block_beyond_the_reserve_is_refused_to_one_that_is_to_end) {
  static unsigned errors;
  errors = 0;
  static constexpr Owner owner{.refused = [](uint64_t) { ++errors; }};
  Taker *const taker = begin_statement_at_red(&owner);
  taker->told_to_end = true;
  EXPECT_TRUE(on_ask(Pool::session, 8 * mb, strings));
  EXPECT_EQ(8 * mb, tokens.taken_bytes());
  EXPECT_EQ(0u, errors);
  EXPECT_FALSE(on_ask(Pool::session, 17 * mb, strings));
  EXPECT_EQ(1u, errors);
  // Upstream does not look whether a memory root of a statement got one.
  const Giver giver(longest_ask_us, false);
  EXPECT_TRUE(on_ask(Pool::statement, 17 * mb));
  // Pools of InnoDB are never refused anything.
  EXPECT_TRUE(on_ask(Pool::innodb, 17 * mb));
}

/** As that of a binary-log cache of a gigabyte: the statement would wait for
room that it never touches, and be told to end. */
TEST_F(Ceiling, a_buffer_that_may_be_smaller_is_not_waited_for) {
  static unsigned errors;
  errors = 0;
  static constexpr Owner owner{.refused = [](uint64_t) { ++errors; }};
  constexpr pools::Account buffers = 7;
  pools::may_be_smaller[buffers] = true;
  begin_statement(&owner);
  let_threads_wait(true);
  const uint64_t waits = counters.waits;
  EXPECT_TRUE(on_ask(Pool::session, 100 * mb, buffers)) << "it fits";
  EXPECT_EQ(100 * mb, account.promised_bytes());
  EXPECT_FALSE(on_ask(Pool::session, 190 * mb, buffers));
  EXPECT_EQ(0, account.promised_bytes());
  EXPECT_EQ(0u, errors);
  EXPECT_EQ(waits, counters.waits);
  const Giver giver(longest_large_ask_us, false);
  EXPECT_TRUE(on_ask(Pool::session, 190 * mb, buffers + 1));
  EXPECT_EQ(waits + 1, counters.waits);
  pools::may_be_smaller[buffers] = false;
}

/** A memory root's users do not look: without the block they would write to
address 0. */
TEST_F(Ceiling, a_block_that_is_not_looked_at_is_not_refused) {
  static constexpr Owner owner{.is_executing = [] { return true; }};
  Taker *const taker = begin_statement(&owner);
  let_threads_wait(true);
  kernel_counts(990 * mb);
  taker->told_to_end = true;
  // Half of the reserve beyond the target is left.
  EXPECT_TRUE(on_ask(Pool::session, 8 * mb, strings));
  kernel_counts(1010 * mb);
  EXPECT_FALSE(on_ask(Pool::session, 8 * mb, strings));
  EXPECT_TRUE(on_ask(Pool::session, 8 * mb, strings + 1));
}

/** A half row would stay in a table without transactions. */
TEST_F(Ceiling, a_block_is_not_refused_where_what_is_half_done_stays) {
  static bool writes;
  writes = true;
  static constexpr Owner owner{.is_executing = [] { return true; },
                               .writes_for_good = [] { return writes; }};
  Taker *const taker = begin_statement(&owner);
  let_threads_wait(true);
  kernel_counts(1010 * mb);
  taker->told_to_end = true;
  EXPECT_TRUE(on_ask(Pool::session, 8 * mb, strings));
  writes = false;
  EXPECT_FALSE(on_ask(Pool::session, 8 * mb, strings));
}

/** The variable of a session stays when its statement has ended. */
TEST_F(Ceiling, an_executed_statement_that_is_to_end_gets_no_block_that_stays) {
  static bool executes;
  executes = true;
  static constexpr Owner owner{.is_executing = [] { return executes; }};
  Taker *const taker = begin_statement_at_red(&owner);
  taker->told_to_end = true;
  kernel_counts(1020 * mb);
  EXPECT_FALSE(on_ask(Pool::session, mb, strings));
  EXPECT_EQ(0, tokens.taken_bytes());
  executes = false;
  EXPECT_TRUE(on_ask(Pool::session, mb, strings)) << "a packet";
  EXPECT_EQ(mb, tokens.taken_bytes());
}

/** InnoDB computes virtual columns while it rolls back, and would take a block
that it does not get for another value. */
TEST_F(Ceiling, a_rollback_is_refused_nothing_and_does_not_wait) {
  static bool rolls_back;
  rolls_back = true;
  static constexpr Owner owner{.is_executing = [] { return true; },
                               .must_succeed = [] { return rolls_back; }};
  Taker *const taker = begin_statement_at_red(&owner);
  taker->told_to_end = true;
  const uint64_t waits = counters.waits;
  EXPECT_TRUE(on_ask(Pool::session, mb, strings));
  EXPECT_TRUE(on_ask(Pool::session, 100 * mb, strings));
  EXPECT_EQ(waits, counters.waits);
  rolls_back = false;
  EXPECT_FALSE(on_ask(Pool::session, 100 * mb, strings));
}

/** The parser of JSON looks for no KILL. */
TEST_F(Ceiling, a_step_ends_once_its_statement_was_told_to_end) {
  static unsigned asked;
  asked = 0;
  static constexpr Owner owner{.breaks_off = [] { return ++asked != 0; }};
  Taker *const taker = begin_statement(&owner);
  EXPECT_FALSE(ends_now());
  taker->told_to_end = true;
  {
    const No_wait no_wait;
    EXPECT_FALSE(ends_now());
  }
  EXPECT_EQ(0u, asked);
  EXPECT_TRUE(ends_now());
  end();
  EXPECT_FALSE(ends_now());
  EXPECT_EQ(1u, asked);
}

TEST_F(Ceiling,
       what_a_commit_will_take_is_promised_until_its_transaction_ends) {
  begin_statement();
  exempt_thread(false);
  EXPECT_TRUE(commit_is_small(12 * mb));
  EXPECT_FALSE(commit_is_small(13 * mb));
  EXPECT_TRUE(room_for_commit(100 * mb));
  EXPECT_EQ(100 * mb, account.promised_bytes());
  // The next document of the transaction comes after this one.
  EXPECT_TRUE(room_for_commit(60 * mb));
  EXPECT_TRUE(room_for_commit(120 * mb));
  EXPECT_EQ(120 * mb, account.promised_bytes());
  end();
  EXPECT_EQ(120 * mb, account.promised_bytes());
  // COMMIT never waits. What it takes is promised no more.
  exempt_thread(true);
  EXPECT_TRUE(commit_is_small(500 * mb));
  on_event(true, 70 * mb, 0);
  EXPECT_EQ(50 * mb, account.promised_bytes());
  on_event(true, 70 * mb, 40 * mb);
  EXPECT_EQ(90 * mb, account.promised_bytes());
  on_event(true, 200 * mb, 40 * mb);
  EXPECT_EQ(0, account.promised_bytes());
  end();
  transaction_ended();
  EXPECT_TRUE(room_for_commit(500 * mb));
  EXPECT_EQ(0, account.promised_bytes());
}

/** Such as the value of a variable. */
TEST_F(Ceiling, what_a_session_keeps_is_not_taken_for_what_its_commit_takes) {
  begin_statement();
  EXPECT_TRUE(room_for_commit(100 * mb));
  end();
  begin(0);
  on_event(true, 70 * mb, 0);
  end();
  EXPECT_EQ(100 * mb, account.promised_bytes());
  // It is freed, and the commit comes.
  on_event(true, 70 * mb, 70 * mb);
  EXPECT_EQ(100 * mb, account.promised_bytes());
  on_event(true, 130 * mb, 70 * mb);
  EXPECT_EQ(40 * mb, account.promised_bytes());
  transaction_ended();
  EXPECT_EQ(0, account.promised_bytes());
}

/** A CALL or an event goes on when its transaction has ended. */
TEST_F(Ceiling, a_transaction_that_ends_in_a_statement_has_no_promise_more) {
  begin_statement();
  EXPECT_TRUE(room_for_commit(150 * mb));
  transaction_ended();
  EXPECT_EQ(0, account.promised_bytes());
  EXPECT_TRUE(room_for_commit(20 * mb));
  EXPECT_EQ(20 * mb, account.promised_bytes());
}

TEST_F(Ceiling, a_statement_that_is_undone_leaves_the_promise_before_it) {
  begin_statement();
  EXPECT_TRUE(room_for_commit(20 * mb));
  part_of_transaction_ended(false);
  EXPECT_TRUE(room_for_commit(100 * mb));
  part_of_transaction_ended(true);
  EXPECT_EQ(20 * mb, account.promised_bytes());
  transaction_ended();
  EXPECT_TRUE(room_for_commit(150 * mb));
  part_of_transaction_ended(true);
  EXPECT_EQ(0, account.promised_bytes());
  std::thread other([] {
    on_event(true, 0, 0);
    begin(0);
    EXPECT_TRUE(room_for_commit(150 * mb)) << "the turn is free";
    transaction_ended();
    end();
  });
  other.join();
}

/** Such as by COM_RESET_CONNECTION, or with a session of the X protocol. */
TEST_F(Ceiling, a_transaction_that_ends_otherwise_leaves_nothing_promised) {
  begin_statement();
  EXPECT_TRUE(room_for_commit(150 * mb));
  end();
  EXPECT_EQ(150 * mb, account.promised_bytes());
  EXPECT_FALSE(begin_small()) << "its end would not be seen";
  transaction_ended();
  EXPECT_EQ(0, account.promised_bytes());
  EXPECT_TRUE(begin_small());
  std::thread other([] {
    on_event(true, 0, 0);
    begin(0);
    EXPECT_TRUE(room_for_commit(150 * mb)) << "the turn is free";
    transaction_ended();
  });
  other.join();
  EXPECT_EQ(0, account.promised_bytes());
}

/** A plugin may run statements of its own session within it. */
TEST_F(Ceiling, a_promise_is_of_the_transaction_that_got_it_first) {
  static constexpr int transactions[] = {1, 2};
  static const int *transaction;
  transaction = &transactions[0];
  static constexpr Owner owner{
      .transaction = [] { return static_cast<const void *>(transaction); }};
  begin_statement(&owner);
  EXPECT_TRUE(room_for_commit(20 * mb));
  transaction = &transactions[1];
  EXPECT_TRUE(room_for_commit(40 * mb));
  EXPECT_EQ(&transactions[0], thread.commit_of);
  transaction_ended();
  EXPECT_TRUE(room_for_commit(20 * mb));
  EXPECT_EQ(&transactions[1], thread.commit_of);
}

TEST_F(Ceiling,
       a_statement_whose_commit_has_no_room_is_refused_after_its_wait) {
  static unsigned errors;
  errors = 0;
  static constexpr Owner owner{.refused = [](uint64_t) { ++errors; }};
  begin_statement(&owner);
  // It takes a step more when a wait has ended.
  const Giver giver(longest_ask_us / 4, false);
  const uint64_t began_us = now_us;
  EXPECT_FALSE(room_for_commit(300 * mb));
  EXPECT_GE(now_us - began_us, longest_large_ask_us);
  EXPECT_EQ(1u, errors);
  EXPECT_EQ(0, account.promised_bytes());
  // Its waits count together.
  const uint64_t second_us = now_us;
  EXPECT_FALSE(room_for_commit(300 * mb));
  EXPECT_LT(now_us - second_us, longest_ask_us);
  // A reserve behind the target, the next one goes on.
  end();
  begin(0);
  const uint64_t went_on = counters.went_on;
  const uint64_t again_us = now_us;
  EXPECT_TRUE(room_for_commit(210 * mb));
  EXPECT_GE(now_us - again_us, longest_ask_us);
  EXPECT_LT(now_us - again_us, longest_large_ask_us / 2);
  EXPECT_EQ(went_on + 1, counters.went_on);
}

TEST_F(Ceiling, one_that_is_to_end_does_not_wait_for_its_commit) {
  static unsigned errors;
  errors = 0;
  static constexpr Owner owner{.refused = [](uint64_t) { ++errors; }};
  begin_statement(&owner)->told_to_end = true;
  EXPECT_FALSE(room_for_commit(100 * mb));
  EXPECT_FALSE(room_for_commit(300 * mb));
  EXPECT_EQ(2u, errors);
}

TEST_F(Ceiling, one_commit_after_the_other_has_the_room) {
  static constexpr Owner owner{};
  begin_statement(&owner);
  EXPECT_TRUE(room_for_commit(150 * mb));
  std::atomic<bool> passed{false};
  std::thread other([&] {
    on_event(true, 0, 0);
    begin(0);
    passed = room_for_commit(120 * mb);
    transaction_ended();
    end();
  });
  const Giver giver(1, false);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_FALSE(passed);
  EXPECT_EQ(150 * mb, account.promised_bytes());
  transaction_ended();
  end();
  other.join();
  EXPECT_TRUE(passed);
}

/** It may wait for a row lock of the next one, which InnoDB cannot see. */
TEST_F(Ceiling, a_turn_to_commit_that_is_not_used_goes_to_the_next_one) {
  begin_statement();
  EXPECT_TRUE(room_for_commit(150 * mb));
  const uint64_t went_on = counters.went_on;
  uint64_t waited_us = 0;
  std::thread other([&waited_us] {
    on_event(true, 0, 0);
    begin(0);
    const uint64_t began_us = now_us;
    EXPECT_TRUE(room_for_commit(20 * mb));
    waited_us = now_us - began_us;
    EXPECT_EQ(170 * mb, account.promised_bytes());
    transaction_ended();
    end();
  });
  {
    const Giver giver(longest_ask_us / 4, false);
    other.join();
  }
  EXPECT_GE(waited_us, longest_ask_us / 2);
  EXPECT_LT(waited_us, longest_large_ask_us / 2);
  EXPECT_EQ(went_on, counters.went_on) << "it had room";
}

/** Earlier waits are no reason to wait less. */
TEST_F(Ceiling, with_the_turn_each_document_waits_for_room) {
  static std::atomic<unsigned> giver_calls;
  giver_calls = 0;
  static constexpr Owner owner{.call_giver = [] { ++giver_calls; }};
  begin_statement(&owner);
  EXPECT_TRUE(room_for_commit(150 * mb));
  std::array<uint64_t, 3> waited_us{};
  unsigned calls_of_first = 0;
  std::atomic<pid_t> id{0};
  std::thread other([&] {
    id = gettid();
    on_event(true, 0, 0);
    begin(0);
    thread.text_waited_us = longest_ask_us;
    const auto waited_for = [](int64_t bytes) {
      const uint64_t began_us = now_us;
      EXPECT_TRUE(room_for_commit(bytes));
      return now_us - began_us;
    };
    waited_us[0] = waited_for(60 * mb);
    calls_of_first = giver_calls;
    waited_us[1] = waited_for(61 * mb);
    thread.commit_waited_us = longest_large_ask_us;
    waited_us[2] = waited_for(62 * mb);
    transaction_ended();
    end();
  });
  EXPECT_TRUE(until([&id] { return is_asleep(id); }));
  {
    const Giver giver(longest_ask_us / 16, false);
    other.join();
  }
  EXPECT_GE(waited_us[0], longest_ask_us * 3 / 2)
      << "the turn of another comes first";
  EXPECT_LT(waited_us[0], longest_large_ask_us);
  EXPECT_GT(calls_of_first, 0u);
  EXPECT_GE(waited_us[1], longest_ask_us);
  EXPECT_LT(waited_us[1], 2 * longest_ask_us);
  EXPECT_LT(waited_us[2], longest_ask_us) << "it has waited as long as it may";
}

TEST_F(Ceiling, a_transaction_that_writes_more_keeps_its_turn_to_commit) {
  begin_statement();
  EXPECT_TRUE(room_for_commit(150 * mb));
  std::atomic<bool> passed{false};
  std::thread other([&passed] {
    on_event(true, 0, 0);
    begin(0);
    EXPECT_TRUE(room_for_commit(20 * mb));
    passed = true;
    transaction_ended();
    end();
  });
  for (int i = 0; i < 4; ++i) {
    now_us += longest_ask_us / 2;
    EXPECT_TRUE(room_for_commit(mb));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  EXPECT_FALSE(passed);
  transaction_ended();
  end();
  other.join();
  EXPECT_TRUE(passed);
}

/** Its COMMIT has yet to take what it was promised. */
TEST_F(Ceiling, a_transaction_whose_client_sleeps_keeps_its_room_alone) {
  begin_statement();
  EXPECT_TRUE(room_for_commit(150 * mb));
  end();
  std::thread other([] {
    on_event(true, 0, 0);
    begin(0);
    EXPECT_TRUE(room_for_commit(20 * mb));
    EXPECT_EQ(170 * mb, account.promised_bytes());
    transaction_ended();
    end();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(150 * mb, account.promised_bytes()) << "it runs";
  now_us += longest_ask_us;
  client_sleeps();
  other.join();
  EXPECT_EQ(150 * mb, account.promised_bytes());
  transaction_ended();
  end();
}

TEST_F(Ceiling, while_a_client_sleeps_its_transaction_takes_no_reserve) {
  begin_statement();
  const Giver giver(longest_ask_us, false);
  EXPECT_TRUE(room_for_commit(190 * mb));
  end();
  EXPECT_EQ(Level::red, account.level());
  kernel_counts(900 * mb);
  client_sleeps();
  EXPECT_EQ(158 * mb, account.promised_bytes()) << "two reserves at most";
  client_is_back();
  EXPECT_EQ(190 * mb, account.promised_bytes());
  kernel_counts(800 * mb);
  client_sleeps();
  EXPECT_EQ(184 * mb, account.promised_bytes());
  EXPECT_EQ(Level::yellow, account.level());
  std::thread other([] {
    on_event(true, 0, 0);
    begin(0);
    EXPECT_FALSE(room_for_commit(30 * mb)) << "the other client may come back";
    EXPECT_TRUE(room_for_commit(20 * mb));
    end();
    EXPECT_EQ(204 * mb, account.promised_bytes());
    client_sleeps();
    EXPECT_EQ(184 * mb, account.promised_bytes());
    client_is_back();
    transaction_ended();
    end();
  });
  other.join();
  on_event(true, 10 * mb, 0);
  EXPECT_EQ(174 * mb, account.promised_bytes());
  client_is_back();
  EXPECT_EQ(180 * mb, account.promised_bytes());
  EXPECT_EQ(0, lapsed_bytes);
  transaction_ended();
  end();
}

/** Each of them would wait for ever by chance. */
TEST(Ceiling_going_on, the_one_that_has_waited_for_longest_is_first) {
  constexpr uint64_t pause_us = Going_on::pause_us;
  Going_on going_on;
  uint64_t now_us = 100 * pause_us;
  std::vector<uint64_t> began_us;
  for (uint64_t i = 0; i < 10; ++i) began_us.push_back(now_us + i);
  EXPECT_TRUE(going_on.may_go_on(now_us, now_us));
  std::mt19937 numbers(1);
  for (int i = 0; i < 1000; ++i) {
    const uint64_t before_us = now_us;
    size_t gone = began_us.size();
    while (gone == began_us.size()) {
      now_us += pause_us / 5;
      // They look in any order.
      const size_t begin = numbers() % began_us.size();
      for (size_t j = 0; j < began_us.size() && gone == began_us.size(); ++j) {
        const size_t k = (begin + j) % began_us.size();
        if (going_on.may_go_on(began_us[k], now_us)) gone = k;
      }
    }
    EXPECT_EQ(0u, gone);
    EXPECT_EQ(pause_us, now_us - before_us);
    // It waits again.
    began_us.erase(began_us.begin());
    began_us.push_back(now_us);
  }
}

TEST(Ceiling_going_on, one_that_asks_no_more_delays_the_next_by_a_pause) {
  constexpr uint64_t pause_us = Going_on::pause_us;
  Going_on going_on;
  const uint64_t now_us = 100 * pause_us;
  EXPECT_TRUE(going_on.may_go_on(3, now_us));
  EXPECT_FALSE(going_on.may_go_on(1, now_us + 1));
  EXPECT_FALSE(going_on.may_go_on(2, now_us + 2 * pause_us - 1));
  EXPECT_FALSE(going_on.may_go_on(2, now_us - 1)) << "a look before";
  EXPECT_TRUE(going_on.may_go_on(2, now_us + 2 * pause_us));
}

/** A new session needs LOCK_global_system_variables, and each that ends needs
LOCK_thd_remove. */
TEST_F(Ceiling, a_thread_that_holds_a_lock_of_the_server_waits_behind_it) {
  static bool holds;
  holds = true;
  static constexpr Owner owner{.holds_lock = [] { return holds; }};
  begin_statement_at_red(&owner);
  const uint64_t waits = counters.waits;
  const Giver giver(longest_ask_us, false);
  on_event(true, mb, 0);
  on_event(true, 2 * mb, 0);
  EXPECT_TRUE(on_ask(Pool::statement, mb));
  on_event(true, 8 * mb, 0);
  EXPECT_EQ(waits, counters.waits);
  holds = false;
  EXPECT_TRUE(on_ask(Pool::statement, 100));
  EXPECT_EQ(waits + 1, counters.waits);
  holds = true;
  EXPECT_TRUE(on_ask(Pool::statement, 32 * mb)) << "could end the server";
  EXPECT_EQ(waits + 2, counters.waits);
}

/** SET of a user variable has LOCK_thd_data of its session, which KILL and
PROCESSLIST wait for, and what they hold stops new sessions. */
TEST_F(Ceiling, with_a_lock_of_the_server_a_large_value_is_refused_soon) {
  static bool holds;
  holds = true;
  static uint64_t said_us;
  static constexpr Owner owner{
      .keeps_value = [] { return true; },
      .holds_lock = [] { return holds; },
      .refused = [](uint64_t waited_us) { said_us = waited_us; }};
  begin_statement_at_red(&owner);
  const Giver giver(100'000, false);
  uint64_t began_us = now_us;
  EXPECT_FALSE(on_ask(Pool::session, 32 * mb, strings));
  EXPECT_LT(now_us - began_us, 1'000'000u);
  EXPECT_GE(said_us, 250'000u);
  EXPECT_LT(said_us, 1'000'000u);
  end();
  begin(0);
  holds = false;
  began_us = now_us;
  EXPECT_FALSE(on_ask(Pool::session, 32 * mb, strings));
  EXPECT_GE(now_us - began_us, longest_ask_us);
  EXPECT_GE(said_us, longest_ask_us);
}

TEST_F(Ceiling, the_packet_behind_a_statement_that_ended_is_not_refused) {
  static unsigned errors;
  errors = 0;
  static constexpr Owner owner{.refused = [](uint64_t) { ++errors; }};
  begin_statement(&owner)->told_to_end = true;
  end();
  let_threads_ask(true);
  make_red();
  const Giver giver(longest_ask_us, false);
  EXPECT_TRUE(on_ask(Pool::session, 17 * mb, strings));
  EXPECT_EQ(0u, errors);
}

TEST_F(Ceiling, triggers_that_are_parsed_wait) {
  static bool in_parser;
  in_parser = false;
  static constexpr Owner owner{.is_in_parser = [] { return in_parser; }};
  begin_statement_at_red(&owner);
  const uint64_t waits = counters.waits;
  const Giver giver(longest_ask_us, false);
  EXPECT_TRUE(on_ask(Pool::table_cache, mb / 2));
  EXPECT_EQ(waits, counters.waits);
  in_parser = true;
  EXPECT_TRUE(on_ask(Pool::table_cache, mb / 2));
  EXPECT_EQ(waits + 1, counters.waits);
}

TEST_F(Ceiling, one_that_raises_its_error_at_once_does_not_wait) {
  static bool raises;
  raises = false;
  static constexpr Owner owner{.ends_at_once = [] { return raises; }};
  Taker *const taker = begin_statement_at_red(&owner);
  taker->told_to_end = true;
  const uint64_t waits = counters.waits;
  {
    const Giver giver(longest_ask_us, false);
    EXPECT_TRUE(on_ask(Pool::statement, 17 * mb));
  }
  EXPECT_EQ(waits + 1, counters.waits);
  raises = true;
  EXPECT_TRUE(on_ask(Pool::statement, 17 * mb));
  EXPECT_EQ(waits + 1, counters.waits);
  // Within malloc() it raises nothing.
  EXPECT_TRUE(on_ask(Pool::innodb, 100));
  const Giver giver(longest_ask_us, false);
  on_event(true, 20 * mb, 0);
  on_event(true, 40 * mb, 0);
  EXPECT_EQ(waits + 3, counters.waits) << "for the lane, and for room";
}

TEST_F(Ceiling, a_session_waits_before_a_large_packet_unless_it_is_exempt) {
  begin_statement();
  end();
  let_threads_ask(true);
  make_red();
  const uint64_t waits = counters.waits;
  EXPECT_TRUE(on_ask(Pool::session, interval_bytes - 1, strings));
  EXPECT_EQ(waits, counters.waits);
  {
    const Giver giver(longest_ask_us, false);
    EXPECT_TRUE(on_ask(Pool::session, 12 * mb, strings));
  }
  EXPECT_EQ(waits + 2, counters.waits) << "as a beginner, and for its block";
  exempt_thread(true);
  EXPECT_TRUE(on_ask(Pool::session, 12 * mb, strings));
  EXPECT_EQ(waits + 2, counters.waits);
  exempt_thread(false);
  {
    const Giver giver(longest_ask_us, false);
    EXPECT_TRUE(on_ask(Pool::session, 12 * mb, strings));
  }
  EXPECT_EQ(waits + 3, counters.waits) << "the exempt statement has ended";
}

/** An event waits at the gate for its first table, and has begun before. */
TEST_F(Ceiling, a_statement_that_takes_a_step_or_holds_a_lock_does_not_wait) {
  begin_statement();
  on_event(true, interval_bytes, 0);
  let_threads_ask(true);
  make_red();
  on_event(true, 4 * small_bytes, 0);
  const uint64_t waits = counters.waits;
  const int64_t promised = account.promised_bytes();
  {
    const Giver giver(longest_ask_us, false);
    const No_wait step;
    {
      const No_wait inner;
    }
    on_event(true, 8 * small_bytes, 0);
    EXPECT_TRUE(on_ask(Pool::statement, mb));
  }
  EXPECT_EQ(waits, counters.waits);
  EXPECT_EQ(promised, account.promised_bytes());
  {
    const Giver giver(longest_ask_us, false);
    EXPECT_TRUE(on_ask(Pool::statement, mb));
  }
  EXPECT_EQ(waits + 1, counters.waits) << "the step is over";
}

/** Its client sends nothing for months: no end would take anything back. */
TEST_F(Ceiling, a_thread_that_sends_the_binary_log_neither_waits_nor_expects) {
  static constexpr Owner owner{.never_waits = [] { return true; },
                               .text_comes = [] { return true; }};
  begin_statement(&owner);
  end();
  EXPECT_TRUE(on_ask(Pool::session, 4 * mb, strings));
  on_allocated(&owner, 4 * mb);
  EXPECT_EQ(0, account.expected_bytes());
  EXPECT_EQ(0, account.promised_bytes());
  let_threads_wait(true);
  let_threads_ask(true);
  make_red();
  const uint64_t waits = counters.waits;
  {
    const Giver giver(longest_ask_us, false);
    EXPECT_TRUE(on_ask(Pool::session, 12 * mb, strings));
  }
  EXPECT_EQ(waits, counters.waits);
}

/** They are freed behind the last event of the former statement. */
TEST_F(Ceiling, a_former_statements_blocks_do_not_hide_a_growth) {
  begin_statement();
  on_event(true, 100 * mb, 0);
  end();
  Taker *const taker = begin(0);
  on_event(true, 101 * mb, 100 * mb);
  EXPECT_EQ(0, taker->grown_bytes);
  on_event(true, 104 * mb, 100 * mb);
  EXPECT_EQ(3 * mb, taker->grown_bytes);
}

TEST_F(Ceiling, a_small_statement_never_waits) {
  begin_statement_at_red();
  const uint64_t waits = counters.waits;
  for (int64_t bytes = 1; bytes < small_bytes; bytes += 1000) {
    on_event(true, static_cast<uint64_t>(bytes), 0);
    EXPECT_TRUE(on_ask(Pool::statement, 100));
  }
  EXPECT_EQ(waits, counters.waits);
}

TEST_F(Ceiling, behind_the_target_a_small_statement_waits) {
  begin_statement_at_red();
  on_event(true, 1, 0);
  const uint64_t waits = counters.waits;
  on_event(true, interval_bytes + 1, 0);
  EXPECT_EQ(waits, counters.waits);
  kernel_counts(1005 * mb);
  const Giver giver(longest_ask_us, false);
  on_event(true, 2 * interval_bytes + 1, 0);
  EXPECT_EQ(waits + 1, counters.waits);
}

/** An INSERT opens its table anew, while a block that others freed at once was
taken. What left less than the mark for a moment must not keep it until there is
more than the reserve. */
TEST_F(Ceiling, what_lets_a_small_statement_pass_ends_its_wait) {
  begin_statement_at_red();
  on_event(true, 1, 0);
  kernel_counts(1005 * mb);
  on_ask(Pool::table_cache, 100);
  on_event(true, interval_bytes + 1, 0);
  kernel_counts(1003 * mb);
  EXPECT_EQ(Level::red, account.level());
  const uint64_t waits = counters.waits;
  const Giver giver(20'000, false);
  EXPECT_TRUE(on_ask(Pool::statement, 100));
  EXPECT_EQ(waits, counters.waits);
}

TEST_F(Ceiling, a_small_statement_waits_for_a_moment_in_all) {
  begin_statement_at_red();
  on_event(true, 1, 0);
  kernel_counts(1005 * mb);
  const uint64_t went_on = counters.went_on;
  const Giver giver(20'000, false);
  const auto waited_us = [](uint64_t grown_bytes) {
    const uint64_t before_us = now_us;
    on_ask(Pool::table_cache, 100);
    on_event(true, grown_bytes, 0);
    EXPECT_TRUE(on_ask(Pool::statement, 100));
    return now_us - before_us;
  };
  const uint64_t first_us = waited_us(interval_bytes + 1);
  EXPECT_GE(first_us, longest_small_us);
  EXPECT_LT(first_us, 1'000'000u);
  EXPECT_LT(waited_us(2 * interval_bytes + 1), longest_small_us);
  EXPECT_LT(waited_us(3 * interval_bytes + 1), longest_small_us);
  EXPECT_EQ(went_on, counters.went_on);
  EXPECT_GE(waited_us(small_bytes + 1), longest_ask_us) << "it is large";
  end();
  begin(0);
  EXPECT_GE(waited_us(small_bytes + interval_bytes + 1), longest_small_us)
      << "another statement";
}

/** Such as one that prepares statements, and keeps them. */
TEST_F(Ceiling, at_red_a_session_that_grows_has_a_statement) {
  static unsigned told;
  told = 0;
  static constexpr Owner owner{.is_large = [] {
    ++told;
    (void)begin_late(true);
    return true;
  }};
  ASSERT_EQ(0, switch_on(&owner));
  on_event(true, 0, 0);
  exempt_thread(false);
  on_event(true, small_bytes, 0);
  EXPECT_EQ(0u, told);
  let_threads_ask(true);
  make_red();
  const Giver giver(longest_ask_us, false);
  on_event(true, 2 * small_bytes, 0);
  EXPECT_EQ(1u, told);
}

TEST_F(Ceiling, a_text_waits_for_what_those_before_it_are_to_take) {
  static constexpr Owner owner{.text_comes = [] { return true; }};
  begin_statement(&owner);
  end();
  EXPECT_TRUE(on_ask(Pool::session, 4 * mb, strings));
  const int64_t expected = account.expected_bytes();
  EXPECT_GE(expected, 8 * mb) << "some times as much";
  EXPECT_TRUE(on_ask(Pool::statement, 4 * mb));
  EXPECT_EQ(expected, account.expected_bytes()) << "the same text";
  std::atomic<bool> passed{false};
  let_threads_wait(true);
  std::thread other([&passed] {
    exempt_thread(false);
    on_event(true, 0, 0);
    EXPECT_TRUE(on_ask(Pool::session, 100 * mb, strings));
    passed = true;
    begin(0);
    (void)end();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(passed) << "it does not fit beside the others";
  (void)begin_late(true);
  on_event(true, 8 * mb, 0);
  EXPECT_EQ(8 * mb, end()) << "twice as much as its text";
  EXPECT_EQ(0, account.expected_bytes());
  rounds.end_one();
  other.join();
  EXPECT_TRUE(passed);
}

/** Its pages are touched, and the kernel counts them. */
TEST_F(Ceiling, the_buffer_of_a_packet_without_a_statement_is_not_promised) {
  static constexpr Owner owner{.text_comes = [] { return true; }};
  begin_statement(&owner);
  end();
  EXPECT_TRUE(on_ask(Pool::session, 4 * mb, strings));
  on_event(true, 4 * mb, 0);
  on_allocated(&owner, 4 * mb);
  EXPECT_EQ(4 * mb, account.promised_bytes());
  end();
  EXPECT_EQ(0, account.promised_bytes());
}

/** Such as COM_STMT_SEND_LONG_DATA. Another wait would take the lane. */
TEST_F(Ceiling, a_value_that_a_session_keeps_is_refused_after_the_wait) {
  static unsigned errors;
  errors = 0;
  static constexpr Owner owner{.keeps_value = [] { return true; },
                               .refused = [](uint64_t) { ++errors; }};
  begin_statement(&owner);
  end();
  let_threads_ask(true);
  EXPECT_TRUE(on_ask(Pool::session, mb, strings));
  EXPECT_EQ(0, account.expected_bytes()) << "it is no text of a statement";
  make_red();
  kernel_counts(1001 * mb);
  const uint64_t waits = counters.waits;
  const uint64_t went_on = counters.went_on;
  const Giver giver(longest_ask_us, false);
  EXPECT_FALSE(on_ask(Pool::session, interval_bytes, strings));
  EXPECT_EQ(1u, errors);
  EXPECT_EQ(waits + 1, counters.waits);
  EXPECT_EQ(went_on, counters.went_on);
}

TEST_F(Ceiling, a_value_that_comes_in_parts_is_refused_after_one_wait) {
  static uint64_t said_us;
  static constexpr Owner owner{
      .keeps_value = [] { return true; },
      .refused = [](uint64_t waited_us) { said_us = waited_us; }};
  begin_statement(&owner);
  end();
  let_threads_ask(true);
  kernel_counts(1001 * mb);
  {
    const Giver giver(longest_ask_us, false);
    EXPECT_FALSE(on_ask(Pool::session, interval_bytes, strings));
  }
  end();
  const uint64_t waits = counters.waits;
  said_us = 0;
  EXPECT_FALSE(on_ask(Pool::session, interval_bytes, strings))
      << "the next part";
  EXPECT_EQ(waits, counters.waits);
  EXPECT_GE(said_us, longest_ask_us) << "the wait of the one before";
  kernel_counts(500 * mb);
  EXPECT_TRUE(on_ask(Pool::session, interval_bytes, strings))
      << "there is room";
  begin(0);
  end();
  kernel_counts(1001 * mb);
  const Giver giver(longest_ask_us, false);
  EXPECT_FALSE(on_ask(Pool::session, interval_bytes, strings));
  EXPECT_EQ(waits + 1, counters.waits) << "of another statement";
  begin(0);
}

/** COM_STMT_RESET and COM_STMT_CLOSE run no statement. */
TEST_F(Ceiling, the_parts_of_a_value_that_was_dropped_do_not_count) {
  await_value();
  next_is_part = true;
  kernel_counts(1001 * mb);
  const Giver giver(longest_ask_us, false);
  EXPECT_FALSE(on_ask(Pool::session, interval_bytes, strings));
  end();
  ++values_dropped;
  uint64_t waits = counters.waits;
  EXPECT_FALSE(on_ask(Pool::session, interval_bytes, strings));
  EXPECT_EQ(waits + 1, counters.waits);
  end();
  next_is_part = false;
  EXPECT_TRUE(on_ask(Pool::session, interval_bytes, strings));
  end();
  EXPECT_GE(waited_for_text_us(), 300'000u);
  ++values_dropped;
  const uint64_t before_us = now_us;
  EXPECT_TRUE(on_ask(Pool::session, interval_bytes, strings));
  EXPECT_LT(before_us, now_us);
  begin(0);
}

TEST_F(Ceiling, packets_of_one_value_wait_together_as_long_as_one) {
  await_value();
  let_threads_wait(true);
  next_is_part = true;
  EXPECT_TRUE(on_ask(Pool::session, interval_bytes, strings))
      << "the value begins";
  end();
  next_is_part = false;
  kernel_counts(990 * mb);
  {
    const Giver giver(10'000, false);
    EXPECT_TRUE(on_ask(Pool::session, interval_bytes, strings));
  }
  EXPECT_GE(waited_for_text_us(), 300'000u);
  const uint64_t before_us = now_us;
  for (int i = 0; i < 10; ++i) {
    end();
    EXPECT_TRUE(on_ask(Pool::session, interval_bytes, strings));
  }
  EXPECT_EQ(before_us, now_us);
  EXPECT_GE(waited_for_text_us(), 300'000u) << "the gate refuses the statement";
  EXPECT_FALSE(begin_small());
  begin(0);
  end();
  EXPECT_EQ(0u, waited_for_text_us());
}

TEST_F(Ceiling, a_part_whose_packet_waited_in_vain_is_not_kept) {
  await_value();
  let_threads_wait(true);
  kernel_counts(1001 * mb);
  const Giver giver(longest_ask_us, false);
  EXPECT_TRUE(on_ask(Pool::session, interval_bytes, strings)) << "the packet";
  EXPECT_GE(waited_for_text_us(), 300'000u);
  next_is_part = true;
  // The giver steps the clock behind each look at it.
  const uint64_t waits = counters.waits;
  EXPECT_FALSE(on_ask(Pool::session, interval_bytes, strings));
  EXPECT_EQ(waits, counters.waits) << "it has waited";
  end();
  begin(0);
}

/** EXECUTE has told the error, and passed no gate. */
TEST_F(Ceiling, a_value_whose_refusal_was_told_waits_again) {
  await_value();
  kernel_counts(1001 * mb);
  const Giver giver(longest_ask_us, false);
  uint64_t waits = counters.waits;
  for (int i = 0; i < 3; ++i) {
    for (const bool each : {false, true}) {
      next_is_part = each;
      const uint64_t before_us = now_us;
      EXPECT_EQ(!each, on_ask(Pool::session, interval_bytes, strings));
      EXPECT_LT(before_us, now_us) << "the packet waits, and the part";
      end();
    }
    EXPECT_EQ(waits + 2, counters.waits);
    waits = counters.waits;
    EXPECT_TRUE(value_dropped());
  }
  begin(0);
}

TEST_F(Ceiling, what_a_value_waited_counts_for_no_other_statement) {
  await_value();
  let_threads_wait(true);
  const Giver giver(10'000, false);
  const auto send = [] {
    kernel_counts(500 * mb);
    for (const bool each : {true, false}) {
      next_is_part = each;
      EXPECT_TRUE(on_ask(Pool::session, interval_bytes, strings));
      end();
      kernel_counts(990 * mb);
    }
    EXPECT_GE(waited_for_text_us(), 300'000u);
  };
  send();
  see_value(true);
  EXPECT_GE(waited_for_text_us(), 300'000u);
  see_value(false);
  EXPECT_EQ(0u, waited_for_text_us()) << "it waits for itself alone";
  send();
  ++values_dropped;
  see_value(true);
  EXPECT_EQ(0u, waited_for_text_us());
  EXPECT_TRUE(on_ask(Pool::session, interval_bytes, strings));
  const uint64_t text_us = waited_for_text_us();
  EXPECT_GE(text_us, 300'000u);
  see_value(false);
  EXPECT_EQ(text_us, waited_for_text_us()) << "that of its own text";
  begin(0);
  end();
  send();
  // The packet of a text is read before it is known to be none of the parts.
  const uint64_t parts_us = waited_for_text_us();
  now_us += 7'000;
  EXPECT_TRUE(on_ask(Pool::session, interval_bytes, strings));
  const uint64_t both_us = waited_for_text_us();
  see_value(false);
  EXPECT_EQ(both_us - parts_us, waited_for_text_us()) << "its own alone";
  let_threads_wait(false);
  begin(0);
}

/** A session that sends a large packet, on a thread of its own. */
class Sender {
 public:
  Sender()
      : m_thread([this] {
          exempt_thread(false);
          on_event(true, 0, 0);
          m_looks_before = clock_reads.load();
          EXPECT_TRUE(on_ask(Pool::session, mb, strings));
          m_waited_us = waited_for_text_us();
          m_passed = true;
          begin(0);
          (void)end();
          EXPECT_EQ(0u, waited_for_text_us());
        }) {}
  ~Sender() { m_thread.join(); }
  Sender(const Sender &) = delete;
  Sender &operator=(const Sender &) = delete;

  /** @return it goes on within so many rounds */
  bool passes(int rounds_at_most) const {
    // It has looked at the clock when its wait began.
    while (!m_passed &&
           (m_looks_before == UINT64_MAX || clock_reads < m_looks_before + 3))
      std::this_thread::yield();
    for (int i = 0; i < rounds_at_most && !m_passed; ++i) {
      rounds.end_one();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return m_passed;
  }
  uint64_t waited_us() const { return m_waited_us; }

 private:
  std::atomic<bool> m_passed{false};
  std::atomic<uint64_t> m_looks_before{UINT64_MAX};
  std::atomic<uint64_t> m_waited_us{0};
  std::thread m_thread;
};

TEST_F(Ceiling, a_text_that_has_waited_needs_only_the_reserve) {
  static constexpr Owner owner{.text_comes = [] { return true; }};
  begin_statement(&owner);
  end();
  let_threads_wait(true);
  kernel_counts(950 * mb);
  EXPECT_EQ(Level::yellow, account.level());
  {
    const Sender sender;
    EXPECT_FALSE(sender.passes(20));
    now_us += 5'000'000;
    EXPECT_TRUE(sender.passes(10'000));
    EXPECT_EQ(5'000'000u, sender.waited_us());
    now_us += 50'000'000;
    rounds.end_one();
  }
}

TEST_F(Ceiling, a_text_that_waited_in_vain_is_given_up_once) {
  static unsigned times;
  times = 0;
  static constexpr Owner owner{.text_comes = [] { return true; },
                               .longest_wait_us = [] { return uint64_t{0}; },
                               .gives_up = [] { return ++times != 0; }};
  begin_statement(&owner);
  end();
  let_threads_wait(true);
  kernel_counts(980 * mb);
  now_us += 1'000'000;
  EXPECT_TRUE(on_ask(Pool::session, mb, strings));
  EXPECT_EQ(1u, times);
  EXPECT_TRUE(on_ask(Pool::statement, mb));
  EXPECT_EQ(1u, times);
  end();
  kernel_counts(500 * mb);
  EXPECT_TRUE(on_ask(Pool::session, mb, strings));
  EXPECT_EQ(1u, times) << "there is room";
  end();
}

TEST_F(Ceiling, a_text_waits_no_longer_than_its_statement_may) {
  static constexpr Owner owner{
      .text_comes = [] { return true; },
      .longest_wait_us = [] { return uint64_t{300'000}; }};
  begin_statement(&owner);
  end();
  let_threads_wait(true);
  kernel_counts(980 * mb);
  EXPECT_EQ(Level::yellow, account.level());
  {
    const Sender sender;
    EXPECT_FALSE(sender.passes(20));
    now_us += 300'000;
    EXPECT_TRUE(sender.passes(10'000));
    now_us += 50'000'000;
    rounds.end_one();
  }
}

TEST_F(Ceiling, a_text_of_a_session_that_others_wait_for_does_not_wait) {
  static bool goes_on;
  goes_on = true;
  static constexpr Owner owner{.text_comes = [] { return true; },
                               .goes_on = [] { return goes_on; }};
  begin_statement(&owner);
  end();
  let_threads_wait(true);
  kernel_counts(950 * mb);
  EXPECT_TRUE(on_ask(Pool::session, 4 * mb, strings));
  let_threads_wait(false);
  end();
}

namespace {
/** Calls `call` in another thread, and goes on with the clock until it ends.
@return how long that took */
template <typename Call>
uint64_t clock_of(Call call) {
  std::atomic<bool> ended{false};
  std::atomic<pid_t> id{0};
  std::thread other([&] {
    id = gettid();
    call();
    ended = true;
  });
  EXPECT_TRUE(until([&] { return ended || is_asleep(id); }))
      << "it looks again and again";
  const uint64_t began_us = now_us;
  while (!ended) {
    now_us += 100'000;
    rounds.end_one();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  other.join();
  return now_us - began_us;
}
}  // namespace

TEST_F(Ceiling, a_message_is_expected_to_take_what_texts_took) {
  static constexpr Owner owner{.has_account = [] { return true; }};
  ASSERT_EQ(0, switch_on(&owner));
  let_threads_wait(true);
  EXPECT_TRUE(message_comes(mb - 1, false));
  EXPECT_EQ(0, account.expected_bytes()) << "memory is not short";
  EXPECT_TRUE(message_comes(4 * mb, false));
  EXPECT_GT(account.expected_bytes(), 0) << "by what others took";
  EXPECT_EQ(0, account.promised_bytes());
  message_ended();
  EXPECT_EQ(0, account.expected_bytes());
}

TEST_F(Ceiling, a_message_that_waited_in_vain_is_not_read) {
  static constexpr Owner owner{
      .has_account = [] { return true; },
      .longest_wait_us = [] { return uint64_t{3'000'000}; }};
  ASSERT_EQ(0, switch_on(&owner));
  let_threads_wait(true);
  kernel_counts(980 * mb);
  const uint64_t refused = counters.refused;
  EXPECT_GE(clock_of([] {
              EXPECT_FALSE(message_comes(4 * mb, false));
              EXPECT_EQ(0, account.expected_bytes());
              message_ended();
            }),
            3'000'000u);
  EXPECT_EQ(refused + 1, counters.refused);
}

TEST_F(Ceiling, a_message_of_a_client_without_an_account_needs_room_for_all) {
  ASSERT_EQ(0, switch_on(&silent));
  let_threads_wait(true);
  EXPECT_TRUE(message_comes(4 * mb, true));
  EXPECT_EQ(128 * mb, account.expected_bytes());
  const uint64_t waited_us = counters.wait_us;
  const uint64_t took_us = clock_of([] {
    EXPECT_FALSE(message_comes(40 * mb, true)) << "half of the target is left";
    message_ended();
  });
  EXPECT_GE(took_us, 5'000'000u);
  EXPECT_LT(took_us, 20'000'000u);
  EXPECT_GE(counters.wait_us - waited_us, 5'000'000u);
  message_ended();
  EXPECT_EQ(0, account.expected_bytes());
}

TEST_F(Ceiling, the_rest_of_a_message_is_not_read_behind_the_target) {
  ASSERT_EQ(0, switch_on(&silent));
  let_threads_wait(true);
  EXPECT_GE(clock_of([] {
              on_event(true, 1 * mb, 0);
              EXPECT_TRUE(message_comes(1000, false));
              kernel_counts(1010 * mb);
              EXPECT_TRUE(message_goes_on()) << "it has taken nothing";
              on_event(true, 3 * mb, 0);
              EXPECT_FALSE(message_goes_on());
              message_ended();
            }),
            5'000'000u);
  EXPECT_EQ(0, account.promised_bytes());
}

TEST_F(Ceiling, a_value_is_promised_until_it_is_copied) {
  static constexpr Owner owner{.is_executing = [] { return true; }};
  Taker *const taker = begin_statement(&owner);
  on_event(true, 1 * mb, 0);
  const int64_t before = account.promised_bytes();
  EXPECT_TRUE(value_comes(10 * mb));
  EXPECT_EQ(before + 10 * mb, account.promised_bytes());
  on_event(true, 5 * mb, 0);
  EXPECT_EQ(4 * mb + 6 * mb, account.promised_bytes());
  let_threads_wait(true);
  let_threads_ask(true);
  kernel_counts(999 * mb);
  taker->told_to_end = true;
  EXPECT_FALSE(value_comes(10 * mb)) << "its statement is to end";
  end();
  EXPECT_EQ(0, account.promised_bytes());
}

TEST_F(Ceiling, a_statement_that_is_killed_waits_no_longer) {
  static std::atomic<bool> killed;
  killed = false;
  static constexpr Owner owner{.is_killed = [] { return killed.load(); }};
  begin_statement_at_red(&owner);
  std::atomic<bool> passed{false};
  std::thread waiting([&passed] {
    begin_and_ask(&passed);
    EXPECT_EQ(mb, tokens.taken_bytes());
    (void)end();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(passed);
  killed = true;
  waiting.join();
  EXPECT_TRUE(passed);
}

/** memdiag_memory_target is WATCH now, or the server shuts down. */
TEST_F(Ceiling, what_waits_goes_on_when_threads_may_wait_no_longer) {
  begin_statement();
  take_lane();
  make_red();
  std::atomic<bool> in_lane{false};
  std::thread for_lane([&in_lane] {
    begin_with_large_block(&in_lane);
    (void)end();
  });
  std::atomic<bool> asked{false};
  std::thread for_room([&asked] {
    begin_and_ask(&asked);
    (void)end();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(in_lane);
  EXPECT_FALSE(asked);
  let_threads_wait(false);
  for_lane.join();
  for_room.join();
}

/** One that cannot be refused a block, and is told to end. */
TEST_F(Ceiling, one_statement_after_the_other_goes_on_to_its_end) {
  Taker *const taker = begin_statement_at_red();
  taker->told_to_end = true;
  tokens.set_all(0);
  EXPECT_TRUE(on_ask(Pool::statement, mb)) << "it has the lane";
  std::atomic<bool> passed{false};
  std::thread other([&passed] {
    on_event(true, 0, 0);
    begin(0)->told_to_end = true;
    EXPECT_TRUE(on_ask(Pool::statement, mb));
    passed = true;
    (void)end();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(passed);
  EXPECT_TRUE(on_ask(Pool::statement, mb)) << "again";
  end();
  rounds.end_one();
  other.join();
  EXPECT_TRUE(passed);
}

/** The target was set far below what the server takes, and far below the limit.
If each that was killed waited, nothing would give back. */
TEST_F(Ceiling, one_that_is_to_end_goes_on_while_the_limit_is_far) {
  constexpr Marks marks{1000 * mb, 64 * mb, 16 * mb, 8 * mb, 200 * mb};
  account.set_marks(marks);
  Taker *const taker = begin_statement_at_red();
  tokens.set_all(0);
  kernel_counts(1150 * mb);
  taker->told_to_end = true;
  EXPECT_TRUE(on_ask(Pool::statement, mb));
  end();
  kernel_counts(1250 * mb);
  std::atomic<bool> passed{false};
  std::thread beyond([&passed] {
    on_event(true, 0, 0);
    begin(0)->told_to_end = true;
    EXPECT_TRUE(on_ask(Pool::statement, mb));
    passed = true;
    (void)end();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(passed);
  kernel_counts(500 * mb);
  rounds.end_one();
  beyond.join();
}

/** Such as a buffer of which little is used. If each of many that wait kept its
part from the others, none would come to its end. */
TEST_F(Ceiling, an_untouched_block_of_one_that_waits_is_not_kept_from_others) {
  void *const block = mmap(nullptr, 32 * mb, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(MAP_FAILED, block);
  begin_statement_at_red();
  std::atomic<bool> has_block{false};
  std::atomic<bool> passed{false};
  std::thread waiting([&] {
    begin(0);
    on_event(true, 0, 0);
    kernel_counts(940 * mb);
    EXPECT_TRUE(on_ask(Pool::statement, 32 * mb));
    on_allocated(block, 32 * mb);
    kernel_counts(970 * mb);
    has_block = true;
    EXPECT_TRUE(on_ask(Pool::statement, mb));
    passed = true;
    (void)end();
  });
  EXPECT_TRUE(until([&] { return has_block.load(); }));
  EXPECT_TRUE(until([] {
    return account.level() == Level::yellow &&
           account.left_for_beginners_bytes() < 0;
  }));
  EXPECT_TRUE(until([] { return account.asked_bytes() >= 33 * mb; }))
      << "the giver makes room for both";
  EXPECT_FALSE(passed);
  kernel_counts(500 * mb);
  rounds.end_one();
  waiting.join();
  munmap(block, 32 * mb);
}

/** Blocks of temporary tables double. If each that was told to end waited for
the next one, none would come to its end. */
TEST_F(Ceiling, one_that_is_to_end_is_refused_a_block_of_a_temporary_table) {
  Taker *const taker = begin_statement_at_red();
  kernel_counts(985 * mb);
  taker->told_to_end = true;
  EXPECT_FALSE(on_ask(Pool::temp_table, 64 * mb, strings));
  EXPECT_FALSE(error_is_raised()) << "no my_malloc() takes it back";
  EXPECT_TRUE(on_ask(Pool::temp_table, mb, strings)) << "a small part is left";
  end();
}

/** Without plenty, such blocks come one statement after the other. */
TEST_F(Ceiling, a_large_block_of_malloc_waits_for_the_lane) {
  begin_statement();
  take_lane();
  std::atomic<bool> passed{false};
  std::thread other([&passed] {
    begin_with_large_block(&passed);
    (void)end();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(passed);
  end();
  rounds.end_one();
  other.join();
  EXPECT_TRUE(passed);
}

/** The giver must not end a statement by what it was at an earlier wait. */
TEST_F(Ceiling, one_that_waits_for_the_lane_says_first_what_it_is) {
  static constinit std::atomic<int> asked{0};
  static constexpr Owner owner{.is_killed = [] {
    ++asked;
    return false;
  }};
  begin_statement(&owner);
  take_lane();
  asked = 0;
  std::atomic<bool> passed{false};
  std::atomic<const Taker *> of_other{nullptr};
  std::thread other([&passed, &of_other] {
    of_other = begin(0);
    begin_with_large_block(&passed);
    (void)end();
  });
  while (of_other == nullptr || !of_other.load()->waits)
    std::this_thread::yield();
  EXPECT_GT(asked, 0);
  end();
  rounds.end_one();
  other.join();
}

TEST_F(Ceiling, a_rollback_does_not_wait_for_the_lane) {
  static constinit thread_local bool rolls_back = false;
  static constexpr Owner owner{.must_succeed = [] { return rolls_back; }};
  begin_statement(&owner);
  take_lane();
  std::atomic<bool> passed{false};
  std::thread other([&passed] {
    rolls_back = true;
    begin_with_large_block(&passed);
    (void)end();
  });
  EXPECT_TRUE(until([&] { return passed.load(); }));
  end();
  rounds.end_one();
  other.join();
}

/** It sleeps, or its client does not read. */
TEST_F(Ceiling, one_that_takes_nothing_for_long_loses_the_lane) {
  static constexpr Owner owner{
      .nobody_waits = [] { return true; },
      .longest_wait_us = [] { return 4 * longest_ask_us; }};
  begin_statement(&owner);
  take_lane();
  now_us += longest_ask_us - 1;
  on_event(true, 2 * mb + 100'000, 0);
  std::atomic<bool> passed{false};
  std::thread other([&passed] {
    begin_with_large_block(&passed);
    on_event(true, 4 * mb, 0);
    (void)end();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  now_us += longest_ask_us - 1;
  rounds.end_one();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(passed) << "it has taken something";
  now_us += 1;
  rounds.end_one();
  other.join();
  EXPECT_TRUE(passed);
  end();
}

/** As when the other thread has lost the processor since. */
TEST_F(Ceiling, a_look_at_the_clock_before_its_holders_does_not_free_the_lane) {
  set_clock_for_test(late_clock_us);
  begin_statement();
  take_lane();
  std::atomic<bool> passed{false};
  std::thread other([&passed] {
    static constinit std::atomic<uint64_t> moment{1};
    late_by_us = &moment;
    begin_with_large_block(&passed);
    (void)end();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(passed);
  end();
  rounds.end_one();
  other.join();
  EXPECT_TRUE(passed);
}

/** Four more of them would leave less than the plenty. */
TEST_F(Ceiling, at_green_a_very_large_block_of_malloc_waits_for_the_lane) {
  begin_statement();
  let_threads_wait(true);
  kernel_counts(700 * mb);
  ASSERT_EQ(Level::green, account.level());
  on_event(true, 50 * mb, 0);
  std::atomic<int> blocks{0};
  std::thread other([&blocks] {
    begin(0);
    on_event(true, 0, 0);
    on_event(true, 10 * mb, 0);
    ++blocks;
    on_event(true, 60 * mb, 0);
    ++blocks;
    (void)end();
  });
  while (blocks == 0) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(1, blocks);
  end();
  rounds.end_one();
  other.join();
  EXPECT_EQ(2, blocks);
}

/** InnoDB has large blocks of a disabled pool from malloc(), below latches. */
TEST_F(Ceiling, malloc_for_a_pool_does_not_wait_for_the_lane) {
  begin_statement();
  let_threads_wait(true);
  kernel_counts(700 * mb);
  on_event(true, 50 * mb, 0);
  std::atomic<bool> has_block{false};
  std::thread other([&has_block] {
    begin(0);
    on_event(true, 0, 0);
    on_event(true, 10 * mb, 0);
    pools::in_malloc_of_pool = true;
    on_event(true, 60 * mb, 0);
    pools::in_malloc_of_pool = false;
    has_block = true;
    (void)end();
  });
  EXPECT_TRUE(until([&] { return has_block.load(); }));
  end();
  rounds.end_one();
  other.join();
}

/** The statement takes so much from malloc(). */
void take_small_blocks(int64_t bytes, std::atomic<int> *parts) {
  constexpr int64_t part = mb / 2;
  begin(0);
  on_event(true, 0, 0);
  for (int64_t taken = part; taken <= bytes; taken += part) {
    kernel_bytes += part;
    on_event(true, static_cast<uint64_t>(taken), 0);
    ++*parts;
  }
}

/** Such as the nodes of JSON documents. What the statement took, it may take
four times more. */
TEST_F(Ceiling, many_small_blocks_of_malloc_wait_for_the_lane) {
  constexpr int64_t much = 60 * mb;
  begin_statement();
  kernel_counts(780 * mb);
  std::atomic<int> own{0};
  take_small_blocks(70 * mb, &own);
  ASSERT_EQ(Level::green, account.level());
  std::atomic<int> parts{0};
  std::thread other([&parts] {
    take_small_blocks(much, &parts);
    (void)end();
  });
  while (parts < 2 * 30) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_LT(parts, 2 * much / mb);
  const int before = parts;
  rounds.end_one();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(before, parts);
  EXPECT_LT(0, memdiag::ceiling::thread.malloc_bytes);
  end();
  EXPECT_EQ(0, memdiag::ceiling::thread.malloc_bytes);
  rounds.end_one();
  other.join();
  EXPECT_EQ(2 * much / mb, parts);
  let_threads_ask(false);
}

/** A crowd whose statements took less than the reserve each, as 32 of
bench/workloads/killers.py, geometry, would all wait, and none could end. */
TEST_F(Ceiling, less_than_the_reserve_in_small_blocks_waits_for_the_lane) {
  begin_statement();
  kernel_counts(840 * mb);
  std::atomic<int> own{0};
  take_small_blocks(70 * mb, &own);
  ASSERT_EQ(Level::green, account.level());
  std::atomic<int> parts{0};
  std::thread other([&parts] {
    take_small_blocks(30 * mb, &parts);
    (void)end();
  });
  EXPECT_TRUE(until([&] { return parts >= 2 * 8; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_GT(2 * account.marks().reserve_bytes / mb, parts);
  end();
  rounds.end_one();
  other.join();
  EXPECT_EQ(2 * 30, parts);
  let_threads_ask(false);
}

/** Blocks of pools can be waited for where they are asked for. */
TEST_F(Ceiling, many_blocks_of_pools_do_not_wait_for_the_lane) {
  begin_statement();
  take_lane();
  std::thread other([] {
    begin(0);
    on_event(true, 0, 0);
    for (uint64_t taken = mb / 2; taken <= 60 * mb; taken += mb / 2) {
      EXPECT_TRUE(on_ask(Pool::innodb, 100));
      on_event(true, taken, 0);
    }
    (void)end();
  });
  other.join();
  end();
  let_threads_ask(false);
}

TEST_F(Ceiling, one_that_nobody_waits_for_waits_longer_for_the_lane) {
  static std::atomic<bool> nobody_waits;
  nobody_waits = true;
  static constexpr Owner owner{
      .nobody_waits = [] { return nobody_waits.load(); },
      .longest_wait_us = [] { return 2 * longest_ask_us; }};
  Taker *const taker = begin_statement(&owner);
  take_lane();
  EXPECT_FALSE(taker->waits);
  std::atomic<bool> passed{false};
  std::atomic<const Taker *> waiting{nullptr};
  std::thread other([&passed, &waiting] {
    waiting = begin(0);
    on_event(true, 0, 0);
    on_event(true, 2 * mb, 0);
    passed = true;
    EXPECT_FALSE(waiting.load()->waits_in_malloc);
    (void)end();
  });
  while (waiting == nullptr || !waiting.load()->waits_in_malloc)
    std::this_thread::yield();
  now_us += longest_ask_us;
  on_event(true, 2 * mb + 100'000, 0);  // or the lane would be free
  rounds.end_one();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(passed);
  nobody_waits = false;
  rounds.end_one();
  other.join();
  EXPECT_TRUE(passed);
}

/** Its end brings nothing before it has its block. */
TEST_F(Ceiling, one_that_was_told_to_end_does_not_go_on_for_that) {
  static std::atomic<bool> nobody_waits;
  nobody_waits = true;
  static constexpr Owner owner{
      .nobody_waits = [] { return nobody_waits.load(); },
      .longest_wait_us = [] { return 4 * longest_ask_us; }};
  begin_statement(&owner);
  take_lane();
  std::atomic<bool> passed{false};
  std::atomic<Taker *> waiting{nullptr};
  std::thread other([&passed, &waiting] {
    waiting = begin(0);
    on_event(true, 0, 0);
    on_event(true, 2 * mb, 0);
    passed = true;
    (void)end();
  });
  while (waiting == nullptr || !waiting.load()->waits_in_malloc)
    std::this_thread::yield();
  now_us += 3 * longest_ask_us;
  on_event(true, 2 * mb + 100'000, 0);  // or the lane would be free
  waiting.load()->told_to_end = true;
  nobody_waits = false;  // as it is killed
  rounds.end_one();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(passed);
  end();
  rounds.end_one();
  other.join();
  EXPECT_TRUE(passed);
}

TEST_F(Ceiling, a_crowd_leaves_the_lane_one_by_one) {
  told_large = 0;
  begin_statement(&counts_large);
  take_lane();
  const int others_wait = told_large + 4;
  const uint64_t waits = counters.waits;
  const uint64_t went_on = counters.went_on;
  std::atomic<int> passed{0};
  std::array<std::thread, 4> others;
  for (std::thread &other : others)
    other = std::thread([&passed] {
      begin(0);
      on_event(true, 0, 0);
      on_event(true, 2 * mb, 0);
      ++passed;
      while (passed > 0)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      (void)end();
    });
  EXPECT_TRUE(until([&] { return told_large == others_wait; }));
  const auto go = [&](uint64_t us, uint64_t taken, int pass) {
    now_us += us;
    on_event(true, taken, 0);  // or the lane would be free
    rounds.end_one();
    (void)until([&] { return passed >= pass; });
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_EQ(pass, passed);
  };
  go(longest_ask_us, 2 * mb + 100'000, 1);
  go(250'000, 2 * mb + 200'000, 2);
  go(longest_ask_us, 2 * mb + 300'000, 4);
  EXPECT_EQ(waits + 4, counters.waits);
  EXPECT_EQ(went_on + 4, counters.went_on);
  EXPECT_GE(counters.longest_wait_us, 2 * longest_ask_us);
  passed = 0;
  for (std::thread &other : others) other.join();
  end();
}

TEST_F(Ceiling, a_look_at_the_clock_before_the_last_ones_end_ends_no_wait) {
  told_large = 0;
  set_clock_for_test(late_clock_us);
  begin_statement(&counts_large);
  take_lane();
  const int others_wait = told_large + 2;
  std::array<std::atomic<uint64_t>, 2> late{};
  std::array<std::atomic<bool>, 2> passed{};
  std::array<std::thread, 2> others;
  for (size_t i = 0; i < others.size(); ++i)
    others[i] = std::thread([&late, &passed, i] {
      late_by_us = &late[i];
      begin_with_large_block(&passed[i]);
      (void)end();
    });
  EXPECT_TRUE(until([&] { return told_large == others_wait; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const auto look = [](uint64_t taken) {
    on_event(true, taken, 0);  // or the lane would be free
    rounds.end_one();
  };
  late[1] = longest_ask_us;
  now_us += longest_ask_us + 10;
  look(2 * mb + 100'000);
  EXPECT_TRUE(until([&] { return passed[0].load(); }));
  late[1] = 1;
  look(2 * mb + 200'000);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_FALSE(passed[1]);
  now_us += 250'001;
  look(2 * mb + 300'000);
  EXPECT_TRUE(until([&] { return passed[1].load(); }));
  let_threads_wait(false);
  for (std::thread &other : others) other.join();
  end();
}

TEST_F(Ceiling, the_owner_is_told_once_of_a_large_statement) {
  static unsigned told;
  static bool knows;
  told = 0;
  knows = false;
  static constexpr Owner owner{.is_large = [] {
    ++told;
    return knows;
  }};
  ASSERT_EQ(0, switch_on(&owner));
  on_event(true, 0, 0);
  on_event(true, mb / 2, 0);
  EXPECT_EQ(0u, told);
  on_event(true, 2 * mb, 0);
  EXPECT_EQ(1u, told);
  knows = true;
  on_event(true, 3 * mb, 0);
  on_event(true, 4 * mb, 0);
  EXPECT_EQ(2u, told);
  // The end makes it small again, and what is freed then is not the next one's.
  end();
  on_event(false, 4 * mb, 3 * mb);
  on_event(true, 9 * mb / 2, 3 * mb);
  EXPECT_EQ(2u, told);
  on_event(true, 11 * mb / 2, 3 * mb);
  EXPECT_EQ(3u, told);
  // The thread serves another session.
  on_event(true, 12 * mb / 2, 3 * mb);
  EXPECT_EQ(3u, told);
  session_begins();
  on_event(true, 16 * mb / 2, 3 * mb);
  EXPECT_EQ(4u, told);
}

/** Whatever a thread does between two ends of statements, it gives back all
that was counted for it. */
TEST_F(Ceiling, nothing_stays_counted_behind_any_sequence_of_calls) {
  static constinit thread_local std::mt19937 *random = nullptr;
  static constexpr auto one_of = [](uint32_t count) {
    return static_cast<uint32_t>((*random)() % count);
  };
  static constexpr auto maybe = [] { return one_of(2) != 0; };
  static constexpr Owner owner{
      .is_large = maybe,
      .is_parsing = maybe,
      .is_in_parser = maybe,
      .is_before_parser = maybe,
      .never_waits = [] { return one_of(8) == 0; },
      .replica_block =
          [](pools::Account) {
            return Replica_block{static_cast<uint8_t>(one_of(4))};
          },
      .text_comes = maybe,
      .goes_on = maybe,
      .has_account = maybe,
      .longest_wait_us = [] { return uint64_t{1000}; },
      .is_killed = [] { return one_of(8) == 0; },
      .keeps_value = [] { return one_of(4) == 0; },
      .drops_of_values = [] { return uint64_t{one_of(2)}; },
      .is_executing = maybe,
      .ends_at_once = maybe,
      .must_succeed = [] { return one_of(8) == 0; },
      .holds_lock = [] { return one_of(8) == 0; },
      .gives_up = maybe};
  EXPECT_EQ(0, switch_on(&owner));
  let_threads_wait(true);
  static constexpr Pool pools[] = {Pool::session, Pool::statement,
                                   Pool::temp_table, Pool::transaction};
  const auto act = [](uint32_t seed) {
    std::mt19937 numbers(seed);
    random = &numbers;
    uint64_t allocated = 0;
    uint64_t freed = 0;
    Taker *taker = nullptr;
    session_begins();
    exempt_thread(seed % 2 == 0);
    for (int i = 0; i < 5000; ++i) {
      const size_t size = size_t{one_of(48)} << (10 + one_of(11));
      switch (one_of(16)) {
        case 0:
          taker = begin(one_of(2) * int64_t{one_of(64)} * mb);
          break;
        case 1:
          if (begin_small()) taker = nullptr;
          break;
        case 2:
          taker = begin_late(maybe());
          break;
        case 3:
          if (on_ask(pools[one_of(4)], size) && size >= 1 << 20)
            on_allocated(&pools[one_of(4)], size);
          break;
        case 4:
          on_freed(&pools[one_of(4)]);
          break;
        case 5:
          allocated += size;
          on_event(true, allocated, freed);
          break;
        case 6:
          freed = allocated - std::min<uint64_t>(allocated - freed, size);
          on_event(false, allocated, freed);
          break;
        case 7:
          if (taker != nullptr && maybe()) taker->told_to_end = true;
          break;
        case 8:
          (void)message_comes(size, maybe());
          (void)message_goes_on();
          break;
        case 9:
          message_ended();
          break;
        case 10:
          (void)value_comes(size);
          break;
        case 11:
          (void)room_for_commit(static_cast<int64_t>(size));
          break;
        case 12:
          part_of_transaction_ended(maybe());
          break;
        case 13:
          transaction_ended();
          break;
        case 14:
          see_value(maybe());
          break;
        default:
          (void)end();
      }
    }
    begin(0);
    (void)end();
    transaction_ended();
    exempt_thread(true);
    random = nullptr;
  };
  std::atomic<bool> stop{false};
  std::thread giver([&stop] {
    for (uint32_t i = 0; !stop; ++i) {
      kernel_bytes = (i / 8 % 4 == 0 ? 999 : 500 + i % 450) * mb;
      now_us += 200'000;
      (void)account.read(now_us);
      let_threads_ask(account.level() > Level::green);
      see_loose_blocks();
      rounds.end_one();
      if (i % 64 == 63) {
        switch_off();
        account.set_reader(read_kernel);
        (void)switch_on(&owner);
        let_threads_wait(true);
      }
      std::this_thread::yield();
    }
  });
  std::array<std::thread, 4> threads;
  for (uint32_t seed = 0; seed < threads.size(); ++seed)
    threads[seed] = std::thread(act, seed);
  for (std::thread &thread : threads) thread.join();
  stop = true;
  giver.join();
  let_threads_wait(false);
  now_us += Loose_blocks::longest_us;
  see_loose_blocks();
  EXPECT_EQ(0, account.promised_bytes());
  EXPECT_EQ(0, account.expected_bytes());
  EXPECT_EQ(0, tokens.taken_bytes());
}

TEST_F(Ceiling, the_owner_is_told_of_a_block_that_a_pool_was_asked_for) {
  static unsigned told;
  told = 0;
  static constexpr Owner owner{.is_large = [] { return ++told != 0; }};
  begin_statement(&owner);
  EXPECT_TRUE(on_ask(Pool::statement, 2 * mb));
  on_event(true, 2 * mb, 0);
  EXPECT_EQ(1u, told);
}

TEST_F(Ceiling, threads_ask_as_soon_as_one_sees_that_memory_is_short) {
  begin_statement();
  let_threads_wait(false);
  make_red();
  on_event(true, mb, 0);
  EXPECT_FALSE(is_set(pools::attention(), pools::Attention::ceiling));
  let_threads_wait(true);
  on_event(true, 2 * mb, 0);
  EXPECT_TRUE(is_set(pools::attention(), pools::Attention::ceiling));
}

TEST_F(Ceiling, a_new_connection_waits_a_second_at_most) {
  ASSERT_EQ(0, switch_on(&silent));
  before_connection();
  make_red();
  let_threads_ask(true);
  const uint64_t before_us = now_us;
  const Giver giver(100'000, false);
  before_connection();
  EXPECT_GE(now_us - before_us, 1'000'000u);
}

TEST_F(Ceiling, attention_is_set_only_while_threads_ask) {
  ASSERT_EQ(0, switch_on(&silent));
  EXPECT_FALSE(is_set(pools::attention(), pools::Attention::ceiling));
  let_threads_ask(true);
  EXPECT_TRUE(is_set(pools::attention(), pools::Attention::ceiling));
  switch_off();
  EXPECT_FALSE(is_set(pools::attention(), pools::Attention::ceiling));
}

TEST_F(Ceiling, malloc_calls_the_sensor_before_a_block_is_written) {
  if (!mallctl::serves_malloc()) GTEST_SKIP() << "a sanitizer serves malloc()";
  ASSERT_EQ(0, switch_on(&silent));
  const int64_t before = account.charged_bytes();
  void *const block = placed::general_allocate(32 * mb, false);
  const int64_t after = account.charged_bytes();
  placed::general_free(block);
  EXPECT_NE(before, after);
}

}  // namespace
}  // namespace memdiag::ceiling
