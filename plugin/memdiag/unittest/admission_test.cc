/*
  The gate for large statements, with figures and a clock that the tests set;
  its log; and the digests that make a statement large.
*/

#include "plugin/memdiag/advice/admission.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "mysys/memdiag/accounting/statement_gate.h"
#include "mysys/memdiag/routes/scope_hooks.h"

namespace memdiag::admission {
namespace {

constexpr uint64_t mb = 1 << 20;
constexpr uint64_t second = 1'000'000;

/** A limit of 1000 MB. */
Figures room(uint64_t megabytes, uint64_t unused_megabytes = 0) {
  return {1000 * mb, megabytes * mb, unused_megabytes * mb, 0};
}

/** A request of 300 MB at 100 s that waits ten seconds. */
constexpr Request request{300 * mb, 100 * second, 10 * second};

TEST(Admission, WhatFitsRuns) {
  Gate gate;
  EXPECT_EQ(Step::run, gate.step(request, room(301), 100 * second));
  EXPECT_EQ(Step::run, gate.step(request, room(300), 100 * second));
  EXPECT_EQ(Step::wait, gate.step(request, room(299), 100 * second));
}

TEST(Admission, WhatIsNotKnownRuns) {
  Gate gate;
  EXPECT_EQ(Step::run,
            gate.step(request, {1000 * mb, std::nullopt, 0, 0}, 100 * second));
}

TEST(Admission, TheReserveIsForOthers) {
  Gate gate;
  Figures figures = room(400);
  figures.reserve_bytes = 100 * mb;
  EXPECT_EQ(Step::run, gate.step(request, figures, 100 * second));
  figures.reserve_bytes = 101 * mb;
  EXPECT_EQ(Step::wait, gate.step(request, figures, 100 * second));
  figures.reserve_bytes = UINT64_MAX;
  EXPECT_EQ(Step::wait, gate.step(request, figures, 100 * second));
}

TEST(Admission, UnusedPagesArePurgedFirstOncePerSecond) {
  Gate gate;
  EXPECT_EQ(Step::wait, gate.step(request, room(100, 199), 100 * second))
      << "a purge would not do";
  EXPECT_EQ(Step::purge, gate.step(request, room(100, 200), 100 * second));
  EXPECT_EQ(Step::wait, gate.step(request, room(100, 200), 100 * second + 1));
  EXPECT_EQ(Step::wait, gate.step(request, room(100, 200), 101 * second - 1));
  EXPECT_EQ(Step::purge, gate.step(request, room(100, 200), 101 * second));
}

TEST(Admission, TheWaitIsBounded) {
  Gate gate;
  EXPECT_EQ(Step::wait, gate.step(request, room(10), 110 * second - 1));
  EXPECT_EQ(Step::refuse, gate.step(request, room(10), 110 * second));
  EXPECT_EQ(Step::run, gate.step(request, room(300), 110 * second))
      << "there is room at last";
  EXPECT_EQ(Step::refuse,
            gate.step({300 * mb, 100 * second, 0}, room(10), 100 * second));
}

TEST(Admission, ThoseThatRunKeepTheirPlaces) {
  Gate gate;
  Place one{.peak_bytes = 200 * mb};
  Place other{.peak_bytes = 100 * mb};
  gate.enter(&one);
  gate.enter(&other);
  EXPECT_EQ(300 * mb, gate.reserved_bytes());
  EXPECT_EQ(Step::wait, gate.step(request, room(599), 100 * second));
  EXPECT_EQ(Step::run, gate.step(request, room(600), 100 * second));
  gate.leave(&one);
  EXPECT_EQ(100 * mb, gate.reserved_bytes());
  EXPECT_EQ(Step::run, gate.step(request, room(400), 100 * second));
  gate.enter(&one);
  gate.leave(&other);
  EXPECT_EQ(200 * mb, gate.reserved_bytes());
  gate.leave(&one);
  EXPECT_EQ(0u, gate.reserved_bytes());
  Place huge{.peak_bytes = UINT64_MAX};
  gate.enter(&huge);
  EXPECT_EQ(Step::wait, gate.step(request, room(1000), 100 * second));
  gate.leave(&huge);
}

TEST(Admission, TheLogKeepsTheLastAndALineEachTenSeconds) {
  Log log;
  Decided decided{};
  decided.figures = room(100, 5);
  decided.figures.reserve_bytes = 30 * mb;
  decided.reserved_bytes = 20 * mb;
  decided.peak_bytes = 300 * mb;
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
            refusal(decided).find("up to 314572800 bytes, and 52428800 are "
                                  "left"))
      << refusal(decided);
  decided.reserved_bytes = UINT64_MAX;
  EXPECT_NE(std::string::npos, refusal(decided).find("and 0 are left"));
  decided.figures.room_bytes.reset();
  EXPECT_NE(std::string::npos, refusal(decided).find("and unknown are left"));
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

TEST(Admission, OnlyLargeStatementsAreAsked) {
  sessions::track(true);
  run_statement(1, sessions::large_statement_bytes / 2);
  run_statement(2, 2 * sessions::large_statement_bytes);
  unsigned char small[32];
  unsigned char large[32];
  digest_of(1, small);
  digest_of(2, large);
  EXPECT_FALSE(sessions::may_be_large(small));
  EXPECT_TRUE(sessions::may_be_large(large));
  sessions::Digest digest;
  std::copy_n(large, 32, digest.begin());
  EXPECT_EQ(2 * sessions::large_statement_bytes, sessions::peak_of(digest));
  digest[31] = 9;
  EXPECT_EQ(0u, sessions::peak_of(digest));
  EXPECT_EQ(0u, sessions::peak_of({}));

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
  statement_gate::set(nullptr);
  EXPECT_FALSE(is_refused(nullptr, large));
  sessions::track(true);
  EXPECT_FALSE(sessions::may_be_large(large)) << "counting began anew";
  sessions::track(false);
}

}  // namespace
}  // namespace memdiag::admission
