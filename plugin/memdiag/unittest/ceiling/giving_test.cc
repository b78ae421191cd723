/*
  The giver's policy on literal figures, the target's text, and the log.
*/

#include "plugin/memdiag/ceiling/giving.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "plugin/memdiag/ceiling/ceiling_log.h"
#include "plugin/memdiag/ceiling/target.h"

namespace memdiag::ceiling {
namespace {

constexpr int64_t mb = 1 << 20;
constexpr uint64_t second = 1'000'000;
constexpr Marks marks{1000 * mb, 64 * mb, 16 * mb};

Situation left(int64_t megabytes) {
  return {level_of(megabytes * mb, marks),
          megabytes * mb,
          marks,
          0,
          0,
          0,
          0,
          0,
          false,
          true};
}

TEST(Needed_at_rest, is_what_is_kept_less_what_can_go) {
  EXPECT_EQ(700u, needed_at_rest(1000, {100u, 200u}));
  EXPECT_EQ(1000u, needed_at_rest(1000, {}));
  EXPECT_EQ(0u, needed_at_rest(-5, {}));
  EXPECT_EQ(std::nullopt, needed_at_rest(1000, {100u, std::nullopt}));
  // The figures are of different moments.
  EXPECT_EQ(std::nullopt, needed_at_rest(1000, {600u, 500u}));
}

TEST(Frames_give, what_is_in_memory_and_does_not_stay) {
  EXPECT_EQ(100u, frames_give(100, 500, 300));
  // The rest of the frames was never written.
  EXPECT_EQ(50u, frames_give(100, 350, 300));
  EXPECT_EQ(0u, frames_give(100, 200, 300));
  EXPECT_EQ(0u, frames_give(0, std::nullopt, 0));
  EXPECT_EQ(std::nullopt, frames_give(100, std::nullopt, 300));
}

TEST(Giving, does_nothing_while_there_is_plenty_or_nothing_is_known) {
  Giving giving;
  EXPECT_EQ(Step::none, giving.next(left(80), second).step);
  Situation unknown = left(-100);
  unknown.level = Level::unknown;
  unknown.unused_bytes = unknown.parkable_bytes = 100 * mb;
  EXPECT_EQ(Step::none, giving.next(unknown, second).step);
}

TEST(Giving, gives_what_a_thread_waits_for_although_there_is_plenty) {
  Giving giving;
  Situation now = left(200);
  now.parkable_bytes = 500 * mb;
  EXPECT_EQ(Step::none, giving.next(now, second).step);
  now.asked_bytes = 121 * mb;
  EXPECT_EQ(Step::park, giving.next(now, second).step);
  now.asked_bytes = 120 * mb;
  EXPECT_EQ(Step::none, giving.next(now, second).step);
}

TEST(Giving, goes_in_the_order_of_cost) {
  Giving giving;
  Situation now = left(10);
  now.unused_bytes = 10 * mb;
  now.parkable_bytes = 100 * mb;
  EXPECT_EQ(Step::purge, giving.next(now, second).step);
  // The next purge must wait.
  const Next park = giving.next(now, second);
  EXPECT_EQ(Step::park, park.step);
  EXPECT_EQ(most_parked_at_once, park.bytes);
  giving.note_parked(park, 0, second);
  EXPECT_EQ(Step::shrink_caches, giving.next(now, second).step);
  // Some statement goes on, and its end may bring room.
  EXPECT_EQ(Step::none, giving.next(now, second).step);
  EXPECT_EQ(Step::purge, giving.next(now, second + purge_pause_us).step);
  now.unused_bytes = now.parkable_bytes = 0;
  now.caches = false;
  EXPECT_EQ(Step::none, giving.next(now, second + hope_us - 1).step);
  EXPECT_EQ(Step::end_statement, giving.next(now, second + hope_us).step);
  giving.note_ended(second + hope_us);
  EXPECT_EQ(Step::none, giving.next(now, second + hope_us).step);
}

TEST(Giving, caches_that_gave_little_rest_for_ten_seconds) {
  Giving giving;
  const Situation now = left(30);
  EXPECT_EQ(Step::shrink_caches, giving.next(now, second).step);
  giving.note_shrunk(mb);
  EXPECT_EQ(Step::none, giving.next(now, 2 * second - 1).step);
  EXPECT_EQ(Step::shrink_caches, giving.next(now, 2 * second).step);
  giving.note_shrunk(mb - 1);
  EXPECT_EQ(Step::none, giving.next(now, 12 * second - 1).step);
  EXPECT_EQ(Step::shrink_caches, giving.next(now, 12 * second).step);
  giving.note_shrunk(mb);
  EXPECT_EQ(Step::shrink_caches, giving.next(now, 13 * second).step);
}

TEST(Giving, statements_spill_once_pages_and_frames_are_used_up) {
  Giving giving;
  Situation now = left(10);
  now.unused_bytes = 10 * mb;
  now.parkable_bytes = 100 * mb;
  EXPECT_EQ(Step::purge, giving.next(now, second).step);
  EXPECT_EQ(Step::park, giving.next(now, second).step);
  EXPECT_FALSE(giving.spills());
  now.unused_bytes = now.parkable_bytes = 0;
  EXPECT_EQ(Step::shrink_caches, giving.next(now, second).step);
  EXPECT_TRUE(giving.spills());
  // Some pages came, and do not suffice.
  now.unused_bytes = 10 * mb;
  EXPECT_EQ(Step::purge, giving.next(now, 2 * second).step);
  EXPECT_TRUE(giving.spills());
  EXPECT_EQ(Step::none, giving.next(left(64), 3 * second).step);
  EXPECT_FALSE(giving.spills());
}

TEST(Giving, a_statement_ends_at_once_when_all_wait_or_the_reserve_is_used) {
  Situation now = left(10);
  now.caches = false;
  EXPECT_EQ(Step::none, Giving().next(now, second).step);
  now.stuck = true;
  EXPECT_EQ(Step::end_statement, Giving().next(now, second).step);
  now = left(3);
  now.caches = false;
  EXPECT_EQ(Step::end_statement, Giving().next(now, second).step);
}

TEST(Giving, dirty_frames_may_bring_room_to_statements_that_all_wait) {
  Giving giving;
  Situation now = left(10);
  now.caches = false;
  now.stuck = true;
  now.parkable_bytes = 100 * mb;
  giving.note_parked({Step::park, mb}, 0, second);
  EXPECT_EQ(Step::none, giving.next(now, second).step);
  giving.note_parked({Step::park, mb}, 0, second + hope_us);
  EXPECT_EQ(Step::end_statement, giving.next(now, second + hope_us).step);
}

TEST(Giving, no_statement_ends_while_frames_can_be_parked) {
  Giving giving;
  Situation now = left(-50);
  now.parkable_bytes = mb;
  for (uint64_t i = 0; i < 100; ++i) {
    const Next next = giving.next(now, second + i);
    EXPECT_EQ(Step::park, next.step);
    giving.note_parked(next, next.bytes, second + i);
  }
}

TEST(Giving, no_statement_ends_while_the_level_is_yellow) {
  Giving giving;
  EXPECT_EQ(Step::shrink_caches, giving.next(left(20), second).step);
  EXPECT_EQ(Step::none, giving.next(left(20), second).step);
}

TEST(Giving, one_statement_at_a_time) {
  Giving giving;
  Situation now = left(0);
  now.caches = false;
  EXPECT_EQ(Step::end_statement, giving.next(now, second).step);
  giving.note_ended(second);
  EXPECT_EQ(Step::none, giving.next(now, second + end_pause_us - 1).step);
  EXPECT_EQ(Step::end_statement, giving.next(now, second + end_pause_us).step);
}

TEST(Giving, another_statement_ends_at_once_while_what_is_left_falls) {
  Giving giving;
  Situation now = left(0);
  now.caches = false;
  EXPECT_EQ(Step::end_statement, giving.next(now, second).step);
  giving.note_ended(second);
  now.left_bytes = -now.marks.reserve_bytes / 8;
  EXPECT_EQ(Step::none, giving.next(now, second + stuck_pause_us).step);
  --now.left_bytes;
  EXPECT_EQ(Step::none, giving.next(now, second + stuck_pause_us - 1).step);
  EXPECT_EQ(Step::end_statement,
            giving.next(now, second + stuck_pause_us).step);
}

TEST(Giving, fills_until_a_quarter_more_than_plenty) {
  Giving giving;
  Situation now = left(79);
  now.parkable_bytes = 100 * mb;
  const Next next = giving.next(now, second);
  EXPECT_EQ(Step::park, next.step);
  EXPECT_EQ(static_cast<uint64_t>(mb), next.bytes);
}

TEST(Giving, frames_come_back_after_ten_seconds_of_room) {
  Giving giving;
  Situation now = left(208);
  now.parked_bytes = 100 * mb;
  EXPECT_EQ(Step::none, giving.next(now, second).step);
  EXPECT_EQ(Step::none, giving.next(now, 10 * second).step);
  const Next next = giving.next(now, 11 * second);
  EXPECT_EQ(Step::give_back_frames, next.step);
  EXPECT_EQ(static_cast<uint64_t>(10 * mb), next.bytes);
  // Each second once.
  EXPECT_EQ(Step::none, giving.next(now, 11 * second + 1).step);
  EXPECT_EQ(Step::give_back_frames, giving.next(now, 12 * second).step);
  // Less room begins the ten seconds anew.
  EXPECT_EQ(Step::none, giving.next(left(127), 13 * second).step);
  EXPECT_EQ(Step::none, giving.next(now, 14 * second).step);
}

TEST(Giving, frames_come_back_at_once_when_the_pool_is_below_its_floor) {
  Giving giving;
  Situation now = left(-5);
  now.unused_bytes = now.parkable_bytes = 10 * mb;
  now.parked_bytes = 100 * mb;
  now.missing_bytes = 3 * mb;
  const Next next = giving.next(now, second);
  EXPECT_EQ(Step::give_back_missing, next.step);
  EXPECT_EQ(static_cast<uint64_t>(3 * mb), next.bytes);
  EXPECT_FALSE(next.of_credit);
  now.missing_bytes = 0;
  EXPECT_EQ(Step::purge, giving.next(now, second).step);
}

/** @return the index of the statement that ends; -1: none */
int choose(const std::vector<Candidate> &candidates, bool all_kept = false) {
  Choice choice(all_kept);
  for (const Candidate &each : candidates) choice.see_first(each);
  int chosen = -1;
  for (size_t i = 0; i < candidates.size(); ++i)
    if (choice.see_again(candidates[i])) chosen = static_cast<int>(i);
  return chosen;
}

TEST(Giving, free_frames_are_half_of_the_room_above_plenty) {
  Giving giving;
  Situation now = left(264);
  now.free_bytes = 500 * mb;
  now.parkable_bytes = 400 * mb;
  const Next park = giving.next(now, second);
  EXPECT_EQ(Step::park, park.step);
  EXPECT_TRUE(park.of_credit);
  EXPECT_EQ(most_of_credit_at_once, park.bytes);
  giving.note_parked(park, 400 * mb, second);
  now.parked_bytes = 400 * mb;
  now.free_bytes = 100 * mb;
  EXPECT_EQ(Step::none, giving.next(now, second).step);
  // The pool has used it.
  now.free_bytes = 10 * mb;
  const Next back = giving.next(now, second);
  EXPECT_EQ(Step::give_back_frames, back.step);
  EXPECT_TRUE(back.of_credit);
  EXPECT_EQ(static_cast<uint64_t>(90 * mb), back.bytes);
  giving.note_given_back(back, 400 * mb);
  EXPECT_EQ(Step::none, giving.next(now, second).step);
}

/** An idle server with a buffer pool of which `free` MB were never used.
@return the steps of a minute */
int steps_of_a_minute(Situation now, int64_t free, int64_t parked) {
  Giving giving;
  int steps = 0;
  for (uint64_t us = second; us < 61 * second; us += second / 100) {
    now.free_bytes = free * mb;
    now.parked_bytes = parked * mb;
    now.parkable_bytes = now.free_bytes + 100 * mb;
    const Next next = giving.next(now, us);
    if (next.step == Step::none) continue;
    ++steps;
    const auto bytes = static_cast<int64_t>(next.bytes) / mb;
    if (next.step == Step::park) {
      EXPECT_LE(bytes, free);
      free -= bytes;
      parked += bytes;
      giving.note_parked(next, next.bytes, us);
    } else {
      EXPECT_EQ(Step::give_back_frames, next.step);
      EXPECT_LE(bytes, parked);
      free += bytes;
      parked -= bytes;
      giving.note_given_back(next, next.bytes);
    }
  }
  return steps;
}

TEST(Giving, free_frames_do_not_come_and_go) {
  // The giver parks frames of the credit. Ten calm seconds return none of them.
  EXPECT_EQ(3, steps_of_a_minute(left(600), 900, 0));
  // Ten calm seconds return other frames. The giver does not park them again.
  EXPECT_LE(steps_of_a_minute(left(600), 0, 900), 10);
}

TEST(Giving, a_pool_that_fills_slowly_gets_few_steps) {
  Giving giving;
  Situation now = left(600);
  now.free_bytes = 250 * mb;
  now.parked_bytes = 400 * mb;
  int steps = 0;
  for (uint64_t us = second; us < 3600 * second; us += second) {
    now.free_bytes -= 50'000;
    now.left_bytes -= 50'000;
    const Next next = giving.next(now, us);
    if (next.step == Step::none) continue;
    ++steps;
    EXPECT_EQ(Step::give_back_frames, next.step);
    now.free_bytes += next.bytes;
    now.parked_bytes -= next.bytes;
    giving.note_given_back(next, next.bytes);
  }
  EXPECT_LE(1, steps);
  EXPECT_GE(8, steps);
}

TEST(Giving, the_credit_ends_when_all_frames_came_back) {
  Giving giving;
  Situation now = left(264);
  now.free_bytes = 500 * mb;
  now.parkable_bytes = 400 * mb;
  const Next park = giving.next(now, second);
  giving.note_parked(park, 400 * mb, second);
  // A resize of the pool took them, and the load then parked others.
  now.free_bytes = 10 * mb;
  EXPECT_EQ(Step::none, giving.next(now, second).step);
  now.parked_bytes = 50 * mb;
  EXPECT_EQ(Step::none, giving.next(now, second).step);
  // They come back after ten seconds of room.
  const Next back = giving.next(now, 11 * second);
  EXPECT_EQ(Step::give_back_frames, back.step);
  EXPECT_FALSE(back.of_credit);
}

TEST(Victim, is_the_one_that_grew_most_and_may_end) {
  EXPECT_EQ(1, choose({{2 * mb, 3, true, false}, {9 * mb, 1, true, false}}));
  EXPECT_EQ(0, choose({{2 * mb, 3, true, false}, {9 * mb, 1, false, false}}));
  EXPECT_EQ(0, choose({{2 * mb, 3, true, false}, {9 * mb, 1, true, true}}));
  EXPECT_EQ(-1, choose({{worth_ending_bytes - 1, 1, true, false}}));
}

TEST(Victim, may_be_small_where_sessions_keep_what_is_missing) {
  const std::vector<Candidate> small{
      {least_ending_bytes, 1, true, false, true},
      {least_ending_bytes, 2, true, false},
      {least_ending_bytes - 1, 3, true, false, true}};
  EXPECT_EQ(-1, choose(small));
  EXPECT_EQ(0, choose(small, true));
}

TEST(Victim, ends_late_only_if_there_is_no_other) {
  const Candidate late{90 * mb, 9, true, false, false, true};
  EXPECT_EQ(1, choose({late, {2 * mb, 1, true, false}, late}));
  EXPECT_EQ(0, choose({{2 * mb, 1, true, false}, late}));
  EXPECT_EQ(1, choose({{worth_ending_bytes - 1, 1, true, false}, late}));
  EXPECT_EQ(1, choose({{2 * mb, 1, true, true}, late}));
  EXPECT_EQ(-1, choose({{0, 1, false, false, false, true}}));
}

TEST(Guess, is_doubted_for_five_seconds) {
  Guess guess;
  EXPECT_TRUE(guess.is_small(second));
  guess.was_wrong(second);
  EXPECT_FALSE(guess.is_small(second));
  EXPECT_FALSE(guess.is_small(second - 1)) << "a look at the clock before";
  EXPECT_FALSE(guess.is_small(second + Guess::doubt_us - 1));
  EXPECT_TRUE(guess.is_small(second + Guess::doubt_us));
}

TEST(Giving, knows_after_some_time_that_sessions_keep_what_is_missing) {
  Giving giving;
  Situation now = left(1);
  now.stuck = true;
  now.caches = false;
  EXPECT_EQ(Step::end_statement, giving.next(now, second).step);
  EXPECT_FALSE(giving.all_kept(now, second));
  EXPECT_TRUE(giving.all_kept(now, second + hope_us));
  now = left(-1);
  EXPECT_FALSE(giving.all_kept(now, second + hope_us)) << "some goes on";
  now.stuck = true;
  EXPECT_TRUE(giving.all_kept(now, second)) << "behind the target";
}

TEST(Victim, of_equals_is_the_one_that_began_last) {
  EXPECT_EQ(1, choose({{9 * mb, 1, true, false},
                       {6 * mb, 3, true, false},
                       {8 * mb, 2, true, false}}));
  // One that is told to end or may not end protects none.
  EXPECT_EQ(2, choose({{90 * mb, 1, true, true},
                       {90 * mb, 4, false, false},
                       {3 * mb, 2, true, false}}));
}

TEST(Beginner, is_expected_to_take_what_its_digest_took) {
  EXPECT_EQ(9 * mb, expected_of_beginner(true, 9 * mb, 50 * mb, 64 * mb));
  EXPECT_EQ(200 * mb, expected_of_beginner(true, 200 * mb, 0, 64 * mb));
  EXPECT_EQ(256 * mb, expected_of_beginner(true, 500 * mb, 0, 64 * mb));
  EXPECT_EQ(0, expected_of_beginner(true, mb / 8, 50 * mb, 64 * mb));
}

TEST(Beginner, of_an_unknown_digest_is_expected_to_take_the_plenty) {
  EXPECT_EQ(64 * mb, expected_of_beginner(true, std::nullopt, 0, 64 * mb));
}

TEST(Beginner, without_a_digest_takes_a_quarter_of_the_average) {
  EXPECT_EQ(0, expected_of_beginner(false, std::nullopt, 0, 64 * mb));
  EXPECT_EQ(2 * mb, expected_of_beginner(false, std::nullopt, 8 * mb, 64 * mb));
  EXPECT_EQ(16 * mb,
            expected_of_beginner(false, std::nullopt, 800 * mb, 64 * mb));
  EXPECT_EQ(15 * mb, next_average(16 * mb, -5));
  EXPECT_EQ(16 * mb, next_average(16 * mb, 16 * mb));
}

/** A small statement in the place of a large one would wait as that, and get an
error in the end. */
TEST(Peaks, hardly_any_digests_share_a_place) {
  static Peaks peaks;
  std::mt19937_64 random(7);
  std::vector<uint64_t> hashes(2000);
  for (uint64_t &hash : hashes) hash = random();
  for (int round = 0; round < 20; ++round)
    for (size_t i = 0; i < hashes.size(); ++i)
      peaks.note(hashes[i], i % 20 == 0 ? 50 * mb : 1000, false);
  size_t wrong = 0;
  for (size_t i = 0; i < hashes.size(); ++i)
    wrong += peaks.is_small(hashes[i]) != (i % 20 != 0);
  EXPECT_LE(wrong, hashes.size() / 200);
}

/** Each statement of such a load has a digest of its own. */
TEST(Peaks, another_digest_is_not_taken_for_one_that_has_its_place) {
  static Peaks peaks;
  std::mt19937_64 random(8);
  for (int i = 0; i < 500'000; ++i) peaks.note(random(), 50 * mb, false);
  size_t taken_for_large = 0;
  for (int i = 0; i < 10'000; ++i)
    taken_for_large += peaks.peak_bytes(random()).has_value();
  EXPECT_LT(taken_for_large, 100u);
  peaks.note(UINT64_MAX, INT64_MAX, false);
  EXPECT_EQ((int64_t{4} << 30) - 2048, peaks.peak_bytes(UINT64_MAX));
  const uint64_t small_one = random();
  peaks.note(small_one, 0, false);
  EXPECT_TRUE(peaks.is_small(small_one));
}

/** Anyone can send texts whose digests differ. */
TEST(Peaks, many_small_digests_do_not_displace_large_ones) {
  static Peaks peaks;
  std::mt19937_64 random(9);
  std::vector<uint64_t> large(1000);
  for (uint64_t &hash : large) {
    hash = random();
    peaks.note(hash, 50 * mb, false);
  }
  for (int i = 0; i < 500'000; ++i) peaks.note(random(), 1000, false);
  size_t known = 0;
  // Some have an average with a small one whose part of the hash is the same.
  for (const uint64_t hash : large)
    known += peaks.peak_bytes(hash).value_or(0) >= 20 * mb;
  EXPECT_GE(known, 990u);
}

/** Else small ones that share the last place of a set would never both be
known. */
TEST(Peaks, large_digests_that_do_not_come_again_make_room) {
  static Peaks peaks;
  std::mt19937_64 random(10);
  for (int i = 0; i < 500'000; ++i) peaks.note(random(), 50 * mb, false);
  std::vector<uint64_t> hashes(2000);
  for (uint64_t &hash : hashes) hash = random();
  for (int round = 0; round < 2000; ++round)
    for (const uint64_t hash : hashes) peaks.note(hash, 1000, false);
  size_t known = 0;
  for (const uint64_t hash : hashes) known += peaks.is_small(hash);
  EXPECT_GE(known, hashes.size() * 98 / 100);
}

TEST(Beginner, the_peak_of_a_digest_forgets) {
  Peaks peaks;
  EXPECT_FALSE(peaks.peak_bytes(7));
  peaks.note(7, 8 * mb, false);
  EXPECT_EQ(8 * mb, peaks.peak_bytes(7));
  peaks.note(7, 0, false);
  EXPECT_EQ(6 * mb, peaks.peak_bytes(7));
  peaks.note(8, 0, false);
  EXPECT_EQ(0, peaks.peak_bytes(8));
  peaks.note(0, mb, false);
  EXPECT_FALSE(peaks.peak_bytes(0));
}

TEST(Beginner, one_that_runs_says_what_others_will_take_at_least) {
  Peaks peaks;
  peaks.note_at_least(7, 5 * mb, 5 * mb, false);
  EXPECT_FALSE(peaks.peak_bytes(7)) << "no more than is expected anyway";
  peaks.note_at_least(7, 8 * mb, 5 * mb, false);
  EXPECT_EQ(8 * mb, peaks.peak_bytes(7));
  peaks.note_at_least(7, 7 * mb, 5 * mb, false);
  EXPECT_EQ(8 * mb, peaks.peak_bytes(7));
  peaks.note_at_least(7, 9 * mb, 50 * mb, false);
  EXPECT_EQ(9 * mb, peaks.peak_bytes(7));
  peaks.note_at_least(0, 8 * mb, 5 * mb, false);
  EXPECT_FALSE(peaks.peak_bytes(0));
}

TEST(Beginner, a_digest_is_small_once_its_statements_were) {
  Peaks peaks;
  EXPECT_FALSE(peaks.is_small(7)) << "nothing is known of it";
  peaks.note(7, small_bytes - 1024, false);
  EXPECT_TRUE(peaks.is_small(7));
  EXPECT_EQ(0, expected_of_beginner(true, peaks.peak_bytes(7), mb, mb));
  peaks.note(7, 8 * mb, false);
  EXPECT_FALSE(peaks.is_small(7));
  peaks.note(8, small_bytes, false);
  EXPECT_FALSE(peaks.is_small(8));
  EXPECT_EQ(small_bytes,
            expected_of_beginner(true, peaks.peak_bytes(8), mb, mb));
  peaks.note(4096, 0, false);
  EXPECT_FALSE(peaks.is_small(0)) << "another digest has its place";
}

TEST(Peaks, what_a_digest_takes_while_it_spills_is_remembered_apart) {
  Peaks peaks;
  peaks.note(7, 100 * mb, false);
  EXPECT_EQ(100 * mb, peaks.expected_bytes(7, true)) << "it never spilled";
  peaks.note(7, 8 * mb, true);
  EXPECT_EQ(8 * mb, peaks.expected_bytes(7, true));
  EXPECT_EQ(100 * mb, peaks.expected_bytes(7, false));
  peaks.note(7, 0, true);
  EXPECT_EQ(6 * mb, peaks.expected_bytes(7, true));
  peaks.note_at_least(7, 50 * mb, mb, true);
  EXPECT_EQ(50 * mb, peaks.expected_bytes(7, true));
  EXPECT_EQ(100 * mb, peaks.expected_bytes(7, false));

  peaks.note(8, small_bytes, true);
  EXPECT_EQ(small_bytes, peaks.expected_bytes(8, true));
  EXPECT_FALSE(peaks.expected_bytes(8, false)) << "it may take more then";
  peaks.note(9, small_bytes - 1024, true);
  EXPECT_TRUE(peaks.is_small(9)) << "it had nothing to spill";
  peaks.note(0, mb, true);
  peaks.note_at_least(0, mb, 0, true);
  EXPECT_FALSE(peaks.expected_bytes(0, true));
}

/** InnoDB writes its frames without asking malloc(). */
TEST(Floor, is_promised_until_it_is_in_physical_memory) {
  constexpr uint64_t floor_bytes = 200 * mb;
  constexpr int64_t much = 1000 * mb;
  Floor floor;
  EXPECT_TRUE(floor.is_due(floor_bytes, 0, second));
  EXPECT_EQ(150 * mb, floor.see(floor_bytes, 0, 50 * mb, much, second, 10));
  EXPECT_FALSE(floor.is_due(floor_bytes, 0, second + 990'000));
  EXPECT_TRUE(floor.is_due(floor_bytes, 0, 2 * second));
  EXPECT_EQ(-100 * mb,
            floor.see(floor_bytes, 0, 150 * mb, much, 2 * second, 10));
  EXPECT_EQ(-50 * mb,
            floor.see(floor_bytes, 0, 300 * mb, much, 3 * second, 10));
  EXPECT_FALSE(floor.is_due(floor_bytes, 0, 9 * second));
  // Frames that were parked may have been written ones.
  EXPECT_TRUE(floor.is_due(floor_bytes, mb, 9 * second));
  EXPECT_EQ(10 * mb,
            floor.see(floor_bytes, mb, 190 * mb, much, 9 * second, 10));
  // The pool is made larger.
  EXPECT_EQ(100 * mb, floor.see(300 * mb, mb, 190 * mb, much, 10 * second, 10));
  EXPECT_EQ(-46 * mb,
            floor.see(300 * mb, mb, 190 * mb, 64 * mb, 11 * second, 10));
  EXPECT_EQ(64 * mb, floor.forget());
  EXPECT_EQ(0, floor.forget());
}

TEST(Floor, that_cannot_be_looked_at_is_not_promised) {
  Floor floor;
  EXPECT_EQ(0, floor.see(200 * mb, 0, std::nullopt, mb, second, 10));
}

TEST(Floor, to_look_takes_a_thousandth_of_the_time) {
  Floor floor;
  EXPECT_EQ(200 * mb, floor.see(200 * mb, 0, 0, 200 * mb, second, 5'000));
  EXPECT_FALSE(floor.is_due(200 * mb, 0, 5 * second));
  EXPECT_TRUE(floor.is_due(200 * mb, 0, 6 * second));
}

TEST(Pace, an_unknown_statement_begins_each_quarter_of_a_second) {
  constexpr Pace::Beginner fits{.left_bytes = 16 * mb,
                                .left_for_beginners_bytes = 16 * mb,
                                .reserve_bytes = 16 * mb,
                                .waited_us = patient_us};
  Pace pace;
  EXPECT_TRUE(pace.may_begin(fits, 5'000'000)) << "the first at once";
  EXPECT_FALSE(pace.may_begin(fits, 5'249'999));
  EXPECT_TRUE(pace.may_begin(fits, 5'250'000));
  EXPECT_FALSE(pace.may_begin(fits, 5'499'999)) << "since the last one";
  Pace::Beginner impatient = fits;
  --impatient.waited_us;
  EXPECT_FALSE(pace.may_begin(impatient, 9'000'000));
  Pace::Beginner red = fits;
  --red.left_bytes;
  EXPECT_FALSE(pace.may_begin(red, 9'000'000));
}

TEST(Pace, is_slow_while_those_that_run_are_expected_to_take_the_rest) {
  constexpr Pace::Beginner beyond{.left_bytes = 16 * mb,
                                  .left_for_beginners_bytes = 16 * mb - 1,
                                  .reserve_bytes = 16 * mb,
                                  .waited_us = patient_us};
  Pace pace;
  EXPECT_TRUE(pace.may_begin(beyond, 5'000'000));
  EXPECT_FALSE(pace.may_begin(beyond, 6'999'999));
  EXPECT_TRUE(pace.may_begin(beyond, 7'000'000));
}

constexpr Small_pace::Beginner small{.left_bytes = 4 * mb,
                                     .reserve_bytes = 16 * mb,
                                     .waited_us = 0,
                                     .known = true,
                                     .may_keep = true,
                                     .holds = false};

TEST(Small_pace, lets_all_begin_while_a_quarter_of_the_reserve_is_left) {
  Small_pace pace;
  EXPECT_TRUE(pace.may_begin(small, 5'000'000));
  EXPECT_TRUE(pace.may_begin(small, 5'000'000));
}

TEST(Small_pace, lets_one_begin_that_gives_back_what_it_takes) {
  Small_pace pace;
  Small_pace::Beginner reads = small;
  reads.may_keep = false;
  reads.left_bytes = -1000 * mb;
  reads.waited_us = 199'999;
  EXPECT_FALSE(pace.may_begin(reads, 5'000'000));
  reads.waited_us = 200'000;
  EXPECT_TRUE(pace.may_begin(reads, 5'000'000));
  EXPECT_TRUE(pace.may_begin(reads, 5'000'000));
}

TEST(Small_pace, is_slow_for_those_that_keep_it_and_ends_behind_the_target) {
  Small_pace pace;
  Small_pace::Beginner keeps = small;
  keeps.left_bytes = -8 * mb;
  keeps.waited_us = 200'000;
  EXPECT_TRUE(pace.may_begin(keeps, 5'000'000));
  EXPECT_FALSE(pace.may_begin(keeps, 5'019'999));
  ++keeps.waited_us;
  EXPECT_TRUE(pace.may_begin(keeps, 5'020'000));
  --keeps.left_bytes;
  EXPECT_FALSE(pace.may_begin(keeps, 9'000'000));
}

TEST(Small_pace, lets_those_that_keep_it_begin_as_far_beyond_as_it_is_told) {
  Small_pace pace;
  Small_pace::Beginner keeps = small;
  keeps.beyond_bytes = 100 * mb;
  keeps.left_bytes = -100 * mb;
  keeps.waited_us = 200'000;
  EXPECT_TRUE(pace.may_begin(keeps, 5'000'000));
  --keeps.left_bytes;
  EXPECT_FALSE(pace.may_begin(keeps, 9'000'000));
}

/** Without an order, one of 32 clients would wait for seconds. */
TEST(Small_pace, lets_the_one_begin_first_that_has_waited_for_longest) {
  Small_pace pace;
  Small_pace::Beginner late = small;
  late.left_bytes = 0;
  late.waited_us = 200'000;
  Small_pace::Beginner early = late;
  early.waited_us = 900'000;
  EXPECT_TRUE(pace.may_begin(late, 5'000'000)) << "no other has asked";
  EXPECT_FALSE(pace.may_begin(early, 5'010'000));
  EXPECT_FALSE(pace.may_begin(late, 5'020'000));
  early.waited_us += 10'000;
  EXPECT_TRUE(pace.may_begin(early, 5'020'000));
}

/** The memory of running statements comes back. That of sessions does not. */
TEST(Small_pace, is_used_up_by_what_sessions_keep) {
  Small_pace pace;
  Small_pace::Beginner keeps = small;
  keeps.waited_us = 200'000;
  keeps.left_bytes = -8 * mb - 1;
  EXPECT_FALSE(pace.may_begin(keeps, 5'000'000)) << "nothing runs";
  keeps.running_bytes = 1;
  EXPECT_TRUE(pace.may_begin(keeps, 5'000'000));
  EXPECT_FALSE(pace.may_begin(keeps, 5'249'999)) << "4 in a second";
  ++keeps.waited_us;
  EXPECT_TRUE(pace.may_begin(keeps, 5'250'000));
  keeps.left_bytes = -12 * mb;
  keeps.running_bytes = 4 * mb - 1;
  EXPECT_FALSE(pace.may_begin(keeps, 9'000'000)) << "sessions keep too much";
  keeps.running_bytes = 100 * mb;
  EXPECT_TRUE(pace.may_begin(keeps, 9'000'000));
  --keeps.left_bytes;
  EXPECT_FALSE(pace.may_begin(keeps, 19'000'000)) << "near the limit";
  keeps.left_bytes = -12 * mb;
  keeps.waited_us = 199'999;
  EXPECT_FALSE(pace.may_begin(keeps, 19'000'000));
  keeps.holds = true;
  EXPECT_TRUE(pace.may_begin(keeps, 19'000'000)) << "others wait for it";
  keeps.known = false;
  EXPECT_FALSE(pace.may_begin(keeps, 29'000'000));
}

TEST(Small_pace, lets_those_that_nothing_is_known_of_begin_in_turn) {
  Small_pace pace;
  Small_pace::Beginner unknown = small;
  unknown.known = false;
  EXPECT_FALSE(pace.may_begin(unknown, 5'000'000)) << "it has not waited";
  unknown.waited_us = 1;
  EXPECT_TRUE(pace.may_begin(unknown, 5'000'000));
  EXPECT_FALSE(pace.may_begin(unknown, 5'049'999));
  EXPECT_TRUE(pace.may_begin(unknown, 5'050'000));
}

TEST(Small_pace, lets_those_begin_that_others_wait_for_unless_they_keep_it) {
  Small_pace pace;
  Small_pace::Beginner holds = small;
  holds.known = false;
  holds.holds = true;
  holds.left_bytes = -8 * mb;
  EXPECT_TRUE(pace.may_begin(holds, 5'000'000));
  EXPECT_TRUE(pace.may_begin(holds, 5'000'000)) << "at no pace";
  --holds.left_bytes;
  EXPECT_FALSE(pace.may_begin(holds, 5'000'000));
  holds.waited_us = 4'000'000;
  EXPECT_FALSE(pace.may_begin(holds, 9'000'000));
  holds.may_keep = false;
  EXPECT_TRUE(pace.may_begin(holds, 9'000'000));
}

TEST(Rest, is_longer_after_rounds_that_gave_nothing) {
  Rest rest;
  EXPECT_EQ(2, rest.next_ms(false, 0));
  EXPECT_EQ(4, rest.next_ms(false, 1));
  EXPECT_EQ(8, rest.next_ms(false, 0));
  EXPECT_EQ(8, rest.next_ms(false, 0)) << "at most";
  EXPECT_EQ(1, rest.next_ms(true, 0));
  EXPECT_EQ(2, rest.next_ms(false, 0)) << "anew";
  EXPECT_EQ(100, rest.next_ms(true, 100)) << "until the kernel is read";
}

TEST(Target_text, is_a_word_or_bytes) {
  EXPECT_EQ(Target{}, parse_target("off"));
  EXPECT_EQ((Target{Target::watch, 0}), parse_target("Watch"));
  EXPECT_EQ((Target{Target::automatic, 0}), parse_target("AUTO"));
  EXPECT_EQ((Target{Target::bytes, 1 << 30}), parse_target("1g"));
  EXPECT_EQ((Target{Target::bytes, 1 << 30}), parse_target("1073741824"));
}

TEST(Target_text, nothing_else_is_accepted) {
  for (const char *const wrong :
       {"", "0", "0G", "ON", "1", "15M", "-1", "1.5G", "1GB", " 1G", "1G ", "K",
        "99999999999999999999", "17179869184G"})
    EXPECT_FALSE(parse_target(wrong)) << wrong;
}

Done step(uint64_t time_us, Action action, uint64_t bytes) {
  return {time_us, action, true, 0, {}, bytes, 5, 30, 20, Level::yellow};
}

TEST(Ceiling_log, steps_of_one_kind_within_a_second_are_one_row) {
  Log log;
  log.add(step(second, Action::park, 10));
  Done next = step(second + second / 2, Action::park, 20);
  next.level = Level::red;
  log.add(next);
  log.add(step(2 * second - 1, Action::park, 0));
  log.add(step(2 * second, Action::park, 40));
  const auto rows = log.rows();
  ASSERT_EQ(2u, rows.size());
  EXPECT_EQ(30u, rows[0].bytes);
  EXPECT_EQ(15u, rows[0].duration_us);
  EXPECT_STREQ("RED", rows[0].level);
  EXPECT_FALSE(rows[0].processlist_id);
  EXPECT_EQ(40u, rows[1].bytes);
}

TEST(Ceiling_log, statements_have_a_row_each_and_the_last_768_stay) {
  Log log;
  for (uint64_t i = 0; i < Log::max_others + 3; ++i) {
    Done done = step(second, Action::wait, i);
    done.processlist_id = 8;
    log.add(done);
  }
  const auto rows = log.rows();
  ASSERT_EQ(Log::max_others, rows.size());
  EXPECT_EQ(3u, rows[0].bytes);
  EXPECT_EQ(8u, rows[0].processlist_id);
}

TEST(Ceiling_log, waits_do_not_displace_what_ended) {
  Log log;
  constexpr Action lost[] = {Action::end, Action::refuse, Action::went_on};
  for (const Action each : lost) log.add(step(second, each, 1));
  for (uint64_t i = 0; i < Log::max_others; ++i)
    log.add(step(2 * second, i % 2 ? Action::wait : Action::spill, 2));
  auto rows = log.rows();
  ASSERT_EQ(Log::max_others + 3, rows.size());
  EXPECT_STREQ("end", rows[0].action);
  EXPECT_STREQ("refuse", rows[1].action);
  EXPECT_STREQ("went_on", rows[2].action);
  EXPECT_STREQ("spill", rows[3].action);
  for (uint64_t i = 0; i < Log::max_lost; ++i)
    log.add(step(3 * second, Action::end, 10 + i));
  rows = log.rows();
  ASSERT_EQ(Log::max_others + Log::max_lost, rows.size());
  EXPECT_STREQ("spill", rows[0].action);
  EXPECT_EQ(10 + Log::max_lost - 1, rows.back().bytes);
}

/** Steps of one kind are one row only where nothing came between. */
TEST(Ceiling_log, a_step_behind_an_end_has_a_row_of_its_own) {
  Log log;
  log.add(step(second, Action::park, 10));
  log.add(step(second, Action::end, 1));
  log.add(step(second, Action::park, 20));
  const auto rows = log.rows();
  ASSERT_EQ(3u, rows.size());
  EXPECT_EQ(10u, rows[0].bytes);
  EXPECT_STREQ("end", rows[1].action);
  EXPECT_EQ(20u, rows[2].bytes);
}

TEST(Ceiling_texts, say_what_happened_and_that_the_server_goes_on) {
  const std::string text = text_of_end(1000, 300, 7, false);
  for (const char *const part :
       {"1000 bytes", "300 bytes", "one of the largest of 7", "server go on"})
    EXPECT_NE(text.npos, text.find(part)) << part;
  EXPECT_EQ(text.npos, text.find("transaction"));
  EXPECT_NE(text.npos, text_of_end(1, 1, 1, true).find("its transaction"));
  const std::string refusal = text_of_refusal(10 * second, Refused::statement);
  EXPECT_NE(text.npos, refusal.find("10000 ms"));
  EXPECT_NE(text.npos, refusal.find("did not begin"));
  EXPECT_EQ(text.npos,
            text_of_refusal(second, Refused::value).find("did not begin"));
  EXPECT_NE(text.npos, text_of_refusal(0, Refused::run_of_event)
                           .find("An earlier run of this event waits"));
}

}  // namespace
}  // namespace memdiag::ceiling
