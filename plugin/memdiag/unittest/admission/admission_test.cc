/*
  The gate of admission with figures and a clock that the tests set; its log;
  and the digests that make a statement ask.
*/

#include "plugin/memdiag/admission/admission_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <list>
#include <map>

#include "mysys/memdiag/accounting/statement_gate.h"
#include "mysys/memdiag/accounting/thread_bytes.h"
#include "mysys/memdiag/accounting/tracking.h"
#include "mysys/memdiag/unittest/a_session.h"
#include "mysys/memdiag/upstream/scope_hooks.h"
#include "plugin/memdiag/admission/admission_gate.h"

namespace memdiag::admission {
namespace {

constexpr uint64_t mb = 1 << 20;
constexpr uint64_t ms = 1'000;
constexpr uint64_t second = 1'000 * ms;

/** The number of times that each was woken. */
std::map<const Statement *, unsigned> wakes;

class Admission_gate : public testing::Test {
 protected:
  /** One whose digest took so much, a hundred times. */
  struct Known : Statement {
    explicit Known(uint64_t megabytes) {
      past = {100, megabytes * mb};
      held_bytes = &held;
      asked_us = 100 * second;
      wait_us = 10 * second;
    }
    std::atomic<int64_t> held{0};
  };
  struct Unknown : Known {
    Unknown() : Known(0) { past = {}; }
  };

  Admission_gate() { wakes.clear(); }

  /** The limit is 1000 MB. */
  void refresh(uint64_t room_megabytes, uint64_t unused_megabytes = 0) {
    gate.refresh(
        {1000 * mb, room_megabytes * mb, unused_megabytes * mb, reserve_bytes},
        now_us);
  }
  bool ask(Statement *statement) { return gate.ask(statement, now_us); }
  /** It runs and holds all that it needs. So much room is left. */
  void hold(Known *running, uint64_t room_megabytes) {
    refresh(1000);
    EXPECT_TRUE(ask(running));
    running->held = static_cast<int64_t>(running->need_bytes);
    // The second refresh counts the bytes that the statement held at the first.
    refresh(room_megabytes);
    refresh(room_megabytes);
  }
  Step step(const Statement &statement) {
    return gate.next(statement, now_us).step;
  }

  uint64_t now_us = 100 * second;
  uint64_t reserve_bytes = 0;
  Gate gate{[](Statement *statement) { ++wakes[statement]; }};
};

TEST_F(Admission_gate, WhatFitsRuns) {
  EXPECT_TRUE(gate.is_stale(now_us));
  refresh(300);
  EXPECT_FALSE(gate.is_stale(now_us));
  Known fits(300);
  EXPECT_TRUE(ask(&fits));
  gate.leave(&fits);
  refresh(299);
  EXPECT_FALSE(ask(&fits));
  EXPECT_EQ(Step::wait, step(fits));
}

TEST_F(Admission_gate, WhatIsNotKnownRuns) {
  gate.refresh({1000 * mb, std::nullopt, std::nullopt, 0}, now_us);
  Known large(2000);
  EXPECT_TRUE(ask(&large));
}

TEST_F(Admission_gate, TheReserveIsForOthers) {
  Known large(300);
  reserve_bytes = 100 * mb;
  refresh(400);
  EXPECT_TRUE(ask(&large));
  gate.leave(&large);
  for (const uint64_t bytes : {101 * mb, UINT64_MAX}) {
    reserve_bytes = bytes;
    refresh(400);
    EXPECT_FALSE(ask(&large));
    gate.withdraw(&large);
  }
}

TEST_F(Admission_gate, WhatStatementsHoldIsNotReservedTwice) {
  refresh(500);
  Known one(300);
  Known other(300);
  EXPECT_TRUE(ask(&one));
  EXPECT_EQ(300 * mb, gate.reserved_bytes());
  EXPECT_FALSE(ask(&other));
  // The kernel counts its first 200 MB at the next refresh.
  one.held = 200 * mb;
  now_us += 100 * ms;
  refresh(300);
  EXPECT_EQ(300 * mb, gate.reserved_bytes())
      << "its pages may not have been written";
  EXPECT_EQ(Step::wait, step(other));
  now_us += 100 * ms;
  refresh(300);
  EXPECT_EQ(100 * mb, gate.reserved_bytes());
  EXPECT_EQ(Step::wait, step(other));
  // It has given half back to the pool, and its pages to the kernel.
  one.held = 100 * mb;
  now_us += 100 * ms;
  refresh(500);
  EXPECT_EQ(500 * mb, gate.reserved_bytes()) << "the other runs, too";
  EXPECT_EQ(Step::run, step(other));
}

TEST_F(Admission_gate, OneThatOutgrowsItsPastMayTakeAsMuchAgain) {
  refresh(1000);
  Known one(50);
  EXPECT_TRUE(ask(&one));
  one.held = 200 * mb;
  refresh(800);
  EXPECT_EQ(400 * mb, gate.reserved_bytes());
  refresh(800);
  EXPECT_EQ(200 * mb, gate.reserved_bytes());
  one.held = -3;  // it frees what came before
  refresh(1000);
  EXPECT_EQ(400 * mb, gate.reserved_bytes());
}

TEST_F(Admission_gate, WhatHasEndedIsUsedUntilTheNextRefresh) {
  refresh(400);
  Known one(300);
  Known other(300);
  EXPECT_TRUE(ask(&one));
  gate.leave(&one);
  EXPECT_EQ(300 * mb, gate.reserved_bytes());
  EXPECT_FALSE(ask(&other));
  EXPECT_EQ(Step::wait, step(other)) << "the figures are younger than 10 ms";
  now_us += 10 * ms;
  EXPECT_EQ(Step::refresh, step(other));
  refresh(400);
  EXPECT_EQ(Step::run, step(other));
}

TEST_F(Admission_gate, AnUnknownOneTakesAPartOfWhatIsLeft) {
  refresh(40);
  std::list<Unknown> many(40);
  std::list<uint64_t> needs;
  for (Unknown &each : many)
    if (ask(&each)) needs.push_back(each.need_bytes);
  EXPECT_EQ(10 * mb, needs.front());
  EXPECT_EQ(1 * mb, needs.back());
  EXPECT_LE(gate.reserved_bytes(), 41 * mb) << "one more than fit";
  EXPECT_GT(gate.reserved_bytes(), 39 * mb);
  EXPECT_LT(needs.size(), many.size());

  refresh(1000);
  EXPECT_EQ(Step::run, step(many.back()));
  EXPECT_EQ(16 * mb, many.back().need_bytes);
}

TEST_F(Admission_gate, TheGuessFadesWithWhatIsKnown) {
  refresh(1000);
  Known few(0);
  few.past = {1, 3 * mb};
  EXPECT_TRUE(gate.fits(&few));
  EXPECT_EQ(8 * mb, few.need_bytes);
  EXPECT_FALSE(few.unknown);
  few.past = {7, 3 * mb};
  EXPECT_TRUE(gate.fits(&few));
  EXPECT_EQ(3 * mb, few.need_bytes);
  few.past = {1, 1000};
  EXPECT_TRUE(gate.fits(&few));
  EXPECT_TRUE(few.unknown);
  few.past = {sessions::known_statements, 1000};
  EXPECT_TRUE(gate.fits(&few));
  EXPECT_EQ(1000u, few.need_bytes);
}

TEST_F(Admission_gate, AFullServerRunsOneUnknownStatementAtEachRefresh) {
  refresh(0);
  Unknown one;
  Unknown other;
  Known known(1);
  EXPECT_FALSE(ask(&known));
  EXPECT_TRUE(ask(&one));
  EXPECT_FALSE(ask(&other));
  now_us += 100 * ms;
  refresh(0);
  EXPECT_EQ(Step::run, step(other));
  EXPECT_NE(Step::run, step(known));
}

TEST_F(Admission_gate, UnusedPagesArePurgedBeforeTheWait) {
  Known large(300);
  refresh(100, 250);
  EXPECT_FALSE(ask(&large));
  Next next = gate.next(large, now_us);
  EXPECT_EQ(Step::purge, next.step);
  EXPECT_EQ(200 * mb, next.bytes);
  gate.outdate();
  EXPECT_EQ(Step::refresh, step(large));
  refresh(100, 250);
  EXPECT_EQ(Step::wait, step(large)) << "it was of no use a moment ago";
  now_us += 100 * ms;
  refresh(100, 250);
  EXPECT_EQ(Step::purge, step(large));
  gate.outdate();
  refresh(100, 199);
  now_us += 100 * ms;
  refresh(100, 199);
  EXPECT_EQ(Step::wait, step(large)) << "too few: only once in a second";
  now_us += 900 * ms;
  refresh(100, 199);
  EXPECT_EQ(Step::purge, step(large));
  gate.outdate();
  now_us += 2 * second;
  refresh(100, 0);
  EXPECT_EQ(Step::wait, step(large));
}

TEST_F(Admission_gate, ThoseWhoWaitHaveUnusedPagesRead) {
  gate.refresh({1000 * mb, 100 * mb, std::nullopt, 0}, now_us);
  Known large(300);
  EXPECT_FALSE(ask(&large));
  EXPECT_EQ(Step::refresh, step(large));
}

TEST_F(Admission_gate, TheWaitIsBounded) {
  refresh(10);
  Known large(300);
  EXPECT_FALSE(ask(&large));
  EXPECT_FALSE(gate.is_pressed(now_us));
  now_us += second;
  EXPECT_TRUE(gate.is_pressed(now_us));
  now_us += 9 * second - 1;
  refresh(10);
  EXPECT_EQ(Step::wait, step(large));
  EXPECT_EQ(now_us + 1, gate.next(large, now_us).until_us);
  ++now_us;
  EXPECT_EQ(Step::refuse, step(large));
  refresh(300);
  EXPECT_EQ(Step::run, step(large)) << "there is room at last";
  gate.leave(&large);
  large.wait_us = 0;
  refresh(10);
  EXPECT_FALSE(ask(&large));
  EXPECT_EQ(Step::refuse, step(large));
  gate.withdraw(&large);
  EXPECT_FALSE(gate.is_pressed(now_us + second));
}

TEST_F(Admission_gate, OthersOvertakeForHalfOfTheWait) {
  Known running(250);
  hold(&running, 100);
  Known large(300);
  Known small(50);
  Known next(50);
  EXPECT_FALSE(ask(&large));
  EXPECT_TRUE(ask(&small));
  gate.leave(&small);
  now_us += 5 * second;
  refresh(100);
  small.asked_us = next.asked_us = now_us;
  EXPECT_FALSE(ask(&small));
  EXPECT_FALSE(ask(&next));
  refresh(100);
  EXPECT_NE(Step::run, step(small));
  gate.withdraw(&large);
  refresh(100);
  EXPECT_EQ(Step::run, step(small));
  EXPECT_EQ(Step::run, step(next));
}

TEST_F(Admission_gate, OneThatNeedsLittleIsNeverHeldUp) {
  Known running(250);
  hold(&running, 500);
  Known large(700);
  Known medium(32);
  EXPECT_FALSE(ask(&large));
  now_us += 6 * second;
  refresh(500);
  medium.asked_us = now_us;
  EXPECT_FALSE(ask(&medium)) << "more than a sixteenth of the room";
  Known small(31);
  Unknown unknown;
  small.asked_us = unknown.asked_us = now_us;
  EXPECT_TRUE(ask(&small));
  gate.leave(&small);
  refresh(500);
  EXPECT_TRUE(ask(&unknown)) << "the guess is 16 MB";
  gate.leave(&unknown);
  EXPECT_NE(Step::run, step(medium));
}

TEST_F(Admission_gate, UnknownOnesRunBehindOneThatHoldsOthersUp) {
  Known running(700);
  hold(&running, 0);
  Known large(700);
  Unknown first;
  Unknown second_one;
  Known small(1);
  EXPECT_FALSE(ask(&large));
  EXPECT_TRUE(ask(&first));
  EXPECT_FALSE(ask(&second_one)) << "one at each refresh";
  EXPECT_FALSE(ask(&small));
  now_us += 6 * second;
  refresh(0);
  EXPECT_EQ(Step::run, step(second_one));
  EXPECT_NE(Step::run, step(small));
  EXPECT_NE(Step::run, step(large));
}

TEST_F(Admission_gate, OneThatHasNoChanceHoldsNobodyUp) {
  refresh(100, 50);
  Known large(300);
  EXPECT_FALSE(ask(&large));
  now_us += 9 * second;
  refresh(100, 50);
  Known small(50);
  small.asked_us = now_us;
  EXPECT_TRUE(ask(&small));
  gate.leave(&small);
  Known next(80);
  Known last(20);
  next.asked_us = last.asked_us = now_us;
  refresh(70, 50);
  EXPECT_FALSE(ask(&next));
  EXPECT_TRUE(ask(&last));
}

TEST_F(Admission_gate, OneRefreshesForAThousandWhoWait) {
  refresh(10);
  std::list<Known> many;
  for (unsigned i = 0; i < 1000; ++i) {
    many.emplace_back(100);
    EXPECT_FALSE(ask(&many.back()));
  }
  unsigned refreshes = 0;
  // All of them ask again each millisecond, for a second.
  for (const uint64_t end_us = now_us + second; now_us < end_us; now_us += ms)
    for (const Known &each : many) {
      const Next next = gate.next(each, now_us);
      if (next.step == Step::refresh) {
        ++refreshes;
        refresh(10);
      } else {
        ASSERT_EQ(Step::wait, next.step);
        EXPECT_EQ(&each == &many.front()
                      ? now_us / (100 * ms) * 100 * ms + 100 * ms
                      : 110 * second,
                  next.until_us)
            << "only the first wakes by itself";
      }
    }
  EXPECT_EQ(9u, refreshes);
  EXPECT_TRUE(wakes.empty());

  // The first one's place is taken by the next.
  gate.withdraw(&many.front());
  many.pop_front();
  EXPECT_EQ(1u, wakes.size());
  EXPECT_EQ(1u, wakes[&many.front()]);
  refresh(200);
  unsigned run = 0;
  for (const Known &each : many) run += step(each) == Step::run;
  EXPECT_EQ(2u, run);
  // A hundred ends tell the leader once.
  wakes.clear();
  gate.leave(&many.front());
  many.pop_front();
  gate.leave(&many.front());
  many.pop_front();
  EXPECT_EQ(1u, wakes[&many.front()]);
  wakes.clear();
  gate.wake_all();
  EXPECT_EQ(many.size(), wakes.size());
}

TEST_F(Admission_gate, WatchingNeverWaits) {
  refresh(10);
  Known large(300);
  EXPECT_FALSE(gate.fits(&large));
  gate.enter(&large);
  EXPECT_EQ(300 * mb, gate.reserved_bytes());
  EXPECT_EQ(Step::run, step(large));
  gate.leave(&large);
}

TEST(Admission, TheLogKeepsTheLastAndALineEachTenSeconds) {
  Log log;
  Decided decided{};
  decided.figures = {1000 * mb, 100 * mb, 5 * mb, 30 * mb};
  decided.reserved_bytes = 20 * mb;
  decided.expected_bytes = 300 * mb;
  decided.decision = Decision::refused;
  decided.waited_us = 10 * second;
  EXPECT_EQ(0u, log.add(decided, second));
  for (uint64_t i = 1; i < Log::max_rows; ++i) {
    decided.processlist_id = i;
    EXPECT_FALSE(log.add(decided, 11 * second - 1));
  }
  EXPECT_EQ(Log::max_rows, log.rows().size());
  EXPECT_EQ(0u, log.rows().front().processlist_id);
  EXPECT_EQ(Log::max_rows - 1, log.add(decided, 11 * second));
  EXPECT_EQ(Log::max_rows, log.rows().size());
  EXPECT_EQ(1u, log.rows().front().processlist_id);
  EXPECT_STREQ("refused", log.rows().back().decision);
  EXPECT_EQ(0u, log.add(decided, 21 * second)) << "the others are counted";

  EXPECT_NE(std::string::npos,
            line(decided, 7)
                .find("52428800 were left below the limit of "
                      "1048576000; 7 more decisions"))
      << line(decided, 7);
  EXPECT_NE(std::string::npos,
            refusal(decided).find("expected to take 314572800 bytes, and "
                                  "52428800 were left"))
      << refusal(decided);
  decided.reserved_bytes = UINT64_MAX;
  EXPECT_NE(std::string::npos, refusal(decided).find("and 0 were left"));
  decided.figures.room_bytes.reset();
  EXPECT_NE(std::string::npos, refusal(decided).find("and unknown were left"));
}

void digest_of(unsigned char first, unsigned char *digest) {
  for (size_t i = 0; i < 32; ++i) digest[i] = i == 0 ? first : 1;
}

/** A statement of the calling thread that takes so much and frees it. */
void run_statement(unsigned char first, size_t bytes) {
  unsigned char digest[32];
  digest_of(first, digest);
  sessions::note(Pool::statement, {}, static_cast<int64_t>(bytes));
  sessions::note(Pool::statement, {}, -static_cast<int64_t>(bytes));
  sessions::statement_ended(digest);
}

unsigned asked = 0;
unsigned ended = 0;
bool refuse_next = false;
extern const statement_gate::Gate counting_gate;
bool count_question(void *, const sessions::Digest &) {
  ++asked;
  if (!refuse_next) statement_gate::note_let_through(&counting_gate);
  return refuse_next;
}
void count_end() { ++ended; }
const statement_gate::Gate counting_gate{count_question, count_end};

TEST(Admission, KnownSmallStatementsAreNotAsked) {
  sessions::track(true);
  unsigned char small[32];
  unsigned char large[32];
  digest_of(1, small);
  digest_of(2, large);
  for (unsigned i = 0; i < sessions::known_statements; ++i) {
    EXPECT_TRUE(sessions::may_be_large(small)) << "too few of it have ended";
    run_statement(1, sessions::large_statement_bytes / 2);
    run_statement(2, i == 3 ? 2 * sessions::large_statement_bytes : 0);
  }
  EXPECT_FALSE(sessions::may_be_large(small));
  EXPECT_TRUE(sessions::may_be_large(large));
  unsigned char neighbour[32];
  digest_of(1, neighbour);
  neighbour[7] ^= 1;
  EXPECT_TRUE(sessions::may_be_large(neighbour)) << "it shares the mark";
  run_statement(2, 0);
  EXPECT_TRUE(sessions::may_be_large(large)) << "one was large";
  sessions::Digest digest;
  std::copy_n(large, 32, digest.begin());
  EXPECT_EQ(2 * sessions::large_statement_bytes,
            sessions::past_of(digest).peak_bytes);
  EXPECT_EQ(9u, sessions::past_of(digest).statements);
  EXPECT_FALSE(sessions::past_of(digest).is_small());
  std::copy_n(small, 32, digest.begin());
  EXPECT_TRUE(sessions::past_of(digest).is_small())
      << "another digest has its mark";
  digest[31] = 9;
  EXPECT_EQ(0u, sessions::past_of(digest).statements);
  EXPECT_EQ(0u, sessions::past_of({}).statements);
  sessions::note(Pool::statement, {}, 5000);
  EXPECT_EQ(5000, sessions::held_by_statement());
  sessions::note(Pool::statement, {}, -5000);
  EXPECT_EQ(0, sessions::held_by_statement());

  EXPECT_FALSE(is_refused(nullptr, large)) << "there is no gate";
  EXPECT_EQ(0u, asked);
  statement_gate::set(&counting_gate);
  EXPECT_FALSE(is_refused(nullptr, small));
  EXPECT_EQ(0u, asked);
  EXPECT_FALSE(is_refused(nullptr, large));
  EXPECT_EQ(1u, asked);
  EXPECT_FALSE(is_refused(nullptr, large)) << "it is within the other";
  EXPECT_EQ(1u, asked);
  statement_gate::statement_ended();
  statement_gate::statement_ended();
  EXPECT_EQ(1u, ended);
  refuse_next = true;
  EXPECT_TRUE(is_refused(nullptr, large));
  statement_gate::statement_ended();
  EXPECT_EQ(1u, ended) << "it never ran";
  unsigned char refused[32];
  for (unsigned i = 0; i <= sessions::known_statements; ++i) {
    digest_of(3, refused);
    EXPECT_TRUE(is_refused(nullptr, refused)) << "after " << i << " refusals";
    memdiag::part_ended(refused);
  }
  digest_of(3, refused);
  std::copy_n(refused, 32, digest.begin());
  EXPECT_EQ(0u, sessions::past_of(digest).statements) << "none of them ran";
  memdiag_test::A_session outer(large);
  memdiag_test::A_session inner(large);
  {
    const memdiag::Statement statement(&outer);
    const memdiag::Statement nested(&inner);
    EXPECT_FALSE(memdiag::is_refused(&inner)) << "its outer one has passed";
  }
  outer.set_digest(large);
  {
    const memdiag::Statement statement(&outer);
    EXPECT_TRUE(memdiag::is_refused(&outer));
  }
  refuse_next = false;
  EXPECT_FALSE(is_refused(nullptr, refused));
  memdiag::part_ended(refused);
  EXPECT_EQ(1u, sessions::past_of(digest).statements);
  statement_gate::set(nullptr);
  EXPECT_FALSE(is_refused(nullptr, large));
  sessions::track(true);
  EXPECT_TRUE(sessions::may_be_large(small)) << "counting began anew";
  sessions::track(false);
  statement_gate::set(&counting_gate);
  EXPECT_FALSE(is_refused(nullptr, large)) << "nothing is counted";
  statement_gate::set(nullptr);
}

}  // namespace
}  // namespace memdiag::admission
