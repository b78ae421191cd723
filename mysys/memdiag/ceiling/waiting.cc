#include "mysys/memdiag/ceiling/waiting.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "mysys/memdiag/base/clock.h"
#include "mysys/memdiag/ceiling/going_on.h"
#include "mysys/memdiag/ceiling/loose_blocks.h"
#include "mysys/memdiag/ceiling/owner.h"

namespace memdiag::ceiling {
namespace {

constexpr uint64_t longest_packet_us = 50'000'000;
/** After so long, a packet needs only the reserve. Where idle sessions keep
what is missing, plenty may never be left. */
constexpr uint64_t patient_packet_us = 5'000'000;
/** With a lock of the server's, a thread waits no longer for a block that it
may be refused. */
constexpr uint64_t longest_with_lock_us = 250'000;
constinit Going_on going_on;

/** The bytes that a statement takes for each byte of a large text, in
sixteenths. A statement that takes more raises the figure at once. One that
takes less lowers it by a quarter of the difference. */
constinit std::atomic<int64_t> taken_per_text{8 * 16};
constexpr int64_t most_per_text = 64 * 16;

/** The bytes that a message of a client without an account may take for each of
its own. An empty object of protobuf's has two to four bytes in the message, and
64 to 80 in memory. */
constexpr int64_t taken_per_stranger = 32;

/** One thread has it. One that has not used it for long loses it to the next
one that asks: it sleeps, its client does not read, or it waits for what another
one has. */
class Turn {
 public:
  /** @return true: the thread has it, and uses it */
  bool take(const Thread *self) {
    const uint64_t now_us = clock_us(CLOCK_MONOTONIC);
    const Thread *holder = m_holder.load(std::memory_order_acquire);
    // The holder may have used it after this look at the clock.
    const bool is_free =
        holder == nullptr || holder == self ||
        now_us >= m_used_us.load(std::memory_order_relaxed) + longest_ask_us;
    if (!is_free) return false;
    // One that sees the new holder sees this time, too.
    m_used_us.store(now_us, std::memory_order_relaxed);
    return m_holder.compare_exchange_strong(
        holder, self, std::memory_order_release, std::memory_order_relaxed);
  }
  bool is_of(const Thread *self) const {
    return m_holder.load(std::memory_order_relaxed) == self;
  }
  void keep(const Thread *self) {
    if (is_of(self))
      m_used_us.store(clock_us(CLOCK_MONOTONIC), std::memory_order_relaxed);
  }
  void leave(const Thread *self) {
    // Another thread may take it between a look and a store.
    const Thread *holder = self;
    if (is_of(self))
      m_holder.compare_exchange_strong(holder, nullptr,
                                       std::memory_order_relaxed);
  }

 private:
  std::atomic<const Thread *> m_holder{nullptr};
  std::atomic<uint64_t> m_used_us{0};
};

/** Its holder's statement goes on to its end. A statement that waits within
malloc() cannot be refused a block, and keeps what others wait for: if each of
many took one block more in turn, none would come to its end. */
constinit Turn lane;

/** @return true: the thread has the lane, and is half a reserve from the limit
at least. If it is to end, a target that is farther from the limit does not keep
it: nothing but its end would bring memory */
bool take_lane(const Thread *self, bool to_end) {
  const Marks marks = account.marks();
  return account.left_bytes() >=
             -(to_end ? marks.ending_bytes : marks.reserve_bytes / 2) &&
         lane.take(self);
}

/** Its holder's transaction takes much memory when it commits. The holder may
wait for a row lock of a transaction that waits for this turn. InnoDB does not
see that deadlock. */
constinit Turn commit_turn;

/** The ceiling is OFF or WATCH now, another target began, or clients have had
their time to end before a shutdown. */
bool waits_are_over(const Thread *self) {
  return !may_wait.load(std::memory_order_relaxed) ||
         generation.load(std::memory_order_relaxed) != self->generation;
}

bool is_to_end(const Thread *self) {
  return self->taker.told_to_end.load(std::memory_order_relaxed) ||
         ask_owner(&Owner::is_killed, false);
}

/** @return true: a wait would stop others. But a block that is larger than the
reserve waits even so: to go on could end the server */
bool must_go_on(Thread *self, int64_t bytes) {
  if (ask_owner(&Owner::must_succeed, false)) return true;
  const bool later = bytes <= account.marks().reserve_bytes &&
                     ask_owner(&Owner::holds_lock, false);
  self->owes |= later;
  return later;
}

/** The thread sleeps until another round has ended, or for a moment. Others
that run do not wait meanwhile for what it does not touch: if each of many that
sleep kept it from the others, none would come to its end. No large one begins
for that, and the giver makes room for it.
@param bytes  are promised, beside its blocks */
void wait_for_round(const Thread &self, uint64_t seen_rounds, int64_t bytes) {
  int64_t untouched = 0;
  for (size_t i = 0; i < self.block_count; ++i)
    untouched += self.blocks[i].untouched_bytes;
  account.expect(untouched);
  account.ask(untouched);
  account.promise(-bytes - untouched);
  rounds.wait(seen_rounds, look_again_us);
  account.promise(bytes + untouched);
  account.ask(-untouched);
  account.expect(-untouched);
  // The giver knows. Called by each one that it wakes, it would never rest.
  read_if_due();
}

/** The giver sees it, and what the owner finds out here: whether the statement
may end now. */
void waits(Thread *self, int64_t for_bytes, bool in_malloc) {
  (void)ask_owner(&Owner::is_killed, false);
  Taker &taker = self->taker;
  account.ask(for_bytes - taker.asks_bytes.exchange(for_bytes));
  taker.waits_in_malloc.store(in_malloc, std::memory_order_relaxed);
  taker.waits.store(true, std::memory_order_release);
}

void waits_no_more(Thread *self) {
  Taker &taker = self->taker;
  taker.waits.store(false, std::memory_order_relaxed);
  taker.waits_in_malloc.store(false, std::memory_order_relaxed);
  account.ask(-taker.asks_bytes.exchange(0));
}

/** There is no room.
@return true: the thread goes on even so */
bool may_pass(Thread *self, int64_t bytes, bool waited_long, uint64_t began_us,
              uint64_t now_us) {
  const bool to_end = is_to_end(self);
  if ((to_end || (waited_long && bytes > small_bytes)) &&
      take_lane(self, to_end))
    return true;
  return waited_long &&
         (bytes <= small_bytes || now_us - began_us >= longest_large_ask_us) &&
         going_on.may_go_on(began_us, now_us);
}

void count_wait(uint64_t waited_us) {
  counters.waits.fetch_add(1);
  counters.wait_us.fetch_add(waited_us);
  uint64_t longest = counters.longest_wait_us.load();
  while (longest < waited_us &&
         !counters.longest_wait_us.compare_exchange_weak(longest, waited_us)) {
  }
}

void note_wait(uint64_t waited_us, bool went_on, int64_t left_before) {
  if (went_on) {
    counters.went_on.fetch_add(1);
    tell_owner(&Owner::went_on, waited_us, left_before);
  }
  count_wait(waited_us);
}

uint64_t longest_lane_us(bool nobody_waits) {
  return nobody_waits ? ask_owner(&Owner::longest_wait_us, longest_packet_us)
                      : longest_ask_us;
}

/** Each of a crowd that goes on takes a block. */
bool may_leave_lane_queue(uint64_t began_us, uint64_t longest_us,
                          uint64_t now_us) {
  const uint64_t waited_us = now_us - began_us;
  return waited_us >= 2 * longest_us ||
         (waited_us >= longest_us && going_on.may_go_on(began_us, now_us));
}

int64_t expected_of_text(int64_t bytes) {
  return std::min(bytes / 16 * taken_per_text.load(std::memory_order_relaxed),
                  account.marks().target_bytes);
}

bool fits(int64_t expected_bytes) {
  return account.left_for_beginners_bytes() - expected_bytes >=
         account.marks().reserve_bytes;
}

/** There is room for one more statement with a text of so much. If none is
expected to take more, one always begins. */
bool has_room_for_text(int64_t bytes, uint64_t waited_us) {
  const Marks marks = account.marks();
  const int64_t left = account.left_for_beginners_bytes();
  const bool is_room = fits(expected_of_text(bytes));
  return left >= marks.plenty_bytes ? is_room || account.expected_bytes() <= 0
                                    : is_room && waited_us >= patient_packet_us;
}

void expect_to_take(Thread *self, int64_t bytes) {
  self->to_take_bytes = bytes;
  account.expect(bytes - std::exchange(self->expected_bytes, bytes));
}

/** A thread looks for room. */
constinit std::atomic_flag looks_for_room;

/** One thread after the other looks for room: each sees what is expected of the
one before.
@return true: so much is expected of this one */
template <typename Has_room>
bool take_room(Thread *self, int64_t bytes, Has_room has_room) {
  while (looks_for_room.test_and_set(std::memory_order_acquire)) sched_yield();
  const bool takes = has_room();
  if (takes) expect_to_take(self, bytes);
  looks_for_room.clear(std::memory_order_release);
  return takes;
}

}  // namespace

void read_if_due() {
  const uint64_t now_us = clock_us(CLOCK_MONOTONIC);
  if (account.is_due(now_us)) (void)account.read(now_us);
}

bool needs_lane(int64_t bytes) {
  const Level level = account.level();
  return level > Level::green ||
         (level == Level::green &&
          account.left_bytes() < account.marks().plenty_bytes + 4 * bytes);
}

void tell_large(Thread *self) {
  if (!self->told_large) self->told_large = ask_owner(&Owner::is_large, true);
}

void keep_lane(const Thread *self) { lane.keep(self); }
void leave_lane(const Thread *self) { lane.leave(self); }
void keep_turn(const Thread *self) { commit_turn.keep(self); }
void leave_turn(const Thread *self) { commit_turn.leave(self); }

bool ends_at_once(const Thread *self) {
  return self->taker.told_to_end.load(std::memory_order_acquire) &&
         ask_owner(&Owner::ends_at_once, false);
}

bool wait(Thread *self, int64_t bytes, May may) {
  if (must_go_on(self, bytes)) return true;
  // With less than the reserve, must_go_on() has asked for a lock.
  const uint64_t longest_us = may.refusal != Refusal::never &&
                                      bytes > account.marks().reserve_bytes &&
                                      ask_owner(&Owner::holds_lock, false)
                                  ? longest_with_lock_us
                                  : UINT64_MAX;
  if (may.refusal != Refusal::after_the_wait && lane.is_of(self) &&
      take_lane(self, is_to_end(self)))
    return true;
  const uint64_t began_us = clock_us(CLOCK_MONOTONIC);
  const int64_t left_before = account.left_bytes();
  Asked asked{bytes,          began_us, rounds.ended(),
              rounds.ended(), began_us, self->went_on};
  uint64_t now_us = began_us;
  const auto small_is_over = [&] {
    return self->small_waited_us + (now_us - began_us) >= longest_small_us;
  };
  Answer last;
  while ((last = answer(account, &tokens, &asked, is_to_end(self), may.refusal,
                        now_us, rounds.ended())) == Answer::wait ||
         last == Answer::went_on) {
    // The gate lets small ones begin behind the target after as long.
    if (may.small && (has_room_for_small(account) || small_is_over())) {
      last = Answer::room;
      break;
    }
    if (may_pass(self, bytes, last == Answer::went_on, began_us, now_us)) {
      last = Answer::went_on;
      break;
    }
    if (waits_are_over(self) || (may.raise && ends_at_once(self))) break;
    if (now_us - began_us >= longest_us) {
      last = Answer::refuse;
      break;
    }
    tell_large(self);
    // A pool's block is written without an event.
    if (now_us == began_us) see_blocks(self);
    waits(self, bytes, !may.raise);
    // Its last round may have seen plenty.
    if (now_us == began_us) tell_owner(&Owner::call_giver);
    wait_for_round(*self, asked.seen_rounds, bytes);
    now_us = clock_us(CLOCK_MONOTONIC);
  }
  waits_no_more(self);
  if (last == Answer::tokens) self->token_bytes += bytes;
  if (may.small)
    self->small_waited_us += now_us - began_us;
  else
    self->went_on = last == Answer::went_on ? self->went_on + 1 : 0;
  if (now_us == began_us) return last != Answer::refuse;
  note_wait(now_us - began_us, last == Answer::went_on, left_before);
  return last != Answer::refuse;
}

void wait_to_read(Thread *self) {
  if (account.level() != Level::red) {
    self->went_on = 0;
    return;
  }
  const bool left_lock = ask_owner(&Owner::leaves_lock, false);
  const uint64_t began_us = clock_us(CLOCK_MONOTONIC);
  const int64_t left_before = account.left_bytes();
  uint64_t now_us = began_us;
  uint64_t seen_rounds = rounds.ended();
  uint64_t seen_us = began_us;
  const auto is_over = [&] {
    const bool is_deadly =
        account.left_bytes() < -account.marks().reserve_bytes;
    const bool has_event = loose_blocks.has_event();
    const uint64_t longest_us =
        is_deadly && has_event ? longest_large_ask_us
        : is_deadly || has_event
            ? longest_ask_us
            : longest_ask_us >> std::min(self->went_on, most_halvings);
    // The giver may wait for a mutex that this thread holds.
    return now_us - began_us >= longest_us ||
           now_us - seen_us >= longest_ask_us;
  };
  bool went_on = false;
  while (account.level() == Level::red && !waits_are_over(self) &&
         !ask_owner(&Owner::is_killed, false)) {
    went_on = is_over();
    if (went_on) break;
    tell_owner(&Owner::call_giver);
    rounds.wait(seen_rounds, look_again_us);
    read_if_due();
    now_us = clock_us(CLOCK_MONOTONIC);
    if (rounds.ended() == seen_rounds) continue;
    seen_rounds = rounds.ended();
    seen_us = now_us;
  }
  self->went_on = went_on ? self->went_on + 1 : 0;
  if (now_us != began_us) note_wait(now_us - began_us, went_on, left_before);
  if (left_lock) tell_owner(&Owner::takes_lock);
}

void wait_for_lane(Thread *self, int64_t block_bytes, int64_t bytes) {
  if (must_go_on(self, bytes)) return;
  const uint64_t began_us = clock_us(CLOCK_MONOTONIC);
  const int64_t left_before = account.left_bytes();
  const bool nobody_waits = ask_owner(&Owner::nobody_waits, false);
  uint64_t now_us = began_us;
  bool went_on = false;
  while (needs_lane(block_bytes) && !take_lane(self, is_to_end(self)) &&
         !waits_are_over(self)) {
    // The end that the giver tells it of brings nothing before it has the
    // block: if it went on for that, so would the next one that has to end.
    const bool still = nobody_waits && (self->taker.told_to_end.load() ||
                                        ask_owner(&Owner::nobody_waits, false));
    went_on = may_leave_lane_queue(began_us, longest_lane_us(still), now_us);
    if (went_on) break;
    tell_large(self);
    waits(self, 0, true);
    wait_for_round(*self, rounds.ended(), bytes);
    now_us = clock_us(CLOCK_MONOTONIC);
  }
  waits_no_more(self);
  if (now_us != began_us) note_wait(now_us - began_us, went_on, left_before);
}

bool wait_for_commit(Thread *self, int64_t bytes) {
  const uint64_t began_us = clock_us(CLOCK_MONOTONIC);
  // A client waits for its answer since it sent the packet.
  const uint64_t before_us = waited_for_text(*self) + self->commit_waited_us;
  const int64_t left_before = account.left_bytes();
  const Marks marks = account.marks();
  uint64_t now_us = began_us;
  // Since then the thread has the turn.
  uint64_t turn_us = began_us;
  // Those whose clients sleep now may come back.
  const auto fits = [bytes](int64_t still) {
    return account.left_bytes() - lapsed_bytes.load(std::memory_order_relaxed) -
               bytes >=
           still;
  };
  const auto is_over = [&](bool in_turn) {
    return before_us + (now_us - began_us) >= longest_large_ask_us ||
           (in_turn && now_us - turn_us >= longest_ask_us &&
            fits(-marks.reserve_bytes));
  };
  bool has_room = false;
  bool is_free = false;
  bool ends = false;
  for (;;) {
    const bool in_turn = fits(marks.plenty_bytes) || commit_turn.take(self);
    has_room = in_turn && fits(marks.reserve_bytes);
    is_free = waits_are_over(self);
    ends = is_to_end(self);
    if (!in_turn) turn_us = now_us;
    if (has_room || is_free || ends || is_over(in_turn)) break;
    if (in_turn) {
      // The giver gives back for it.
      tell_large(self);
      waits(self, bytes, false);
      tell_owner(&Owner::call_giver);
    }
    wait_for_round(*self, rounds.ended(), 0);
    now_us = clock_us(CLOCK_MONOTONIC);
  }
  waits_no_more(self);
  const bool may = is_free || (!ends && fits(-marks.reserve_bytes));
  if (now_us == began_us) return may;
  self->commit_waited_us += now_us - began_us;
  note_wait(now_us - began_us, may && !has_room && !is_free, left_before);
  return may;
}

void note_text(int64_t bytes, int64_t peak_bytes) {
  const int64_t now = std::min(peak_bytes * 16 / bytes, most_per_text);
  const int64_t before = taken_per_text.load(std::memory_order_relaxed);
  taken_per_text.store(now > before ? now : (3 * before + now) / 4,
                       std::memory_order_relaxed);
}

void wait_as_beginner(Thread *self, int64_t bytes) {
  // The copy of a text whose packet has waited.
  if (self->text_bytes != 0) return;
  const uint64_t before_us = self->sends_value ? self->parts_waited_us : 0;
  const uint64_t began_us = clock_us(CLOCK_MONOTONIC) - before_us;
  uint64_t waited_us = before_us;
  while (!waits_are_over(self) && account.level() != Level::unknown &&
         !take_room(self, expected_of_text(bytes),
                    [&] { return has_room_for_text(bytes, waited_us); }) &&
         !ask_owner(&Owner::goes_on, false)) {
    self->text_in_vain =
        waited_us >= ask_owner(&Owner::longest_wait_us, longest_packet_us) &&
        (bytes <= small_bytes ||
         going_on.may_go_on(began_us, began_us + waited_us));
    if (self->text_in_vain) break;
    wait_for_round(*self, rounds.ended(), bytes);
    waited_us = clock_us(CLOCK_MONOTONIC) - began_us;
  }
  self->text_bytes = bytes;
  self->text_waited_us = waited_us - before_us;
  expect_to_take(self, expected_of_text(bytes));
  if (waited_us != before_us) count_wait(waited_us - before_us);
}

bool wait_for_message(Thread *self, int64_t bytes) {
  wait_as_beginner(self, bytes);
  if (!self->text_in_vain) return true;
  // The statement in its stead says nothing about texts.
  self->text_bytes = 0;
  self->text_in_vain = false;
  expect_to_take(self, 0);
  return false;
}

bool wait_to_connect(Thread *self, int64_t bytes) {
  const uint64_t began_us = clock_us(CLOCK_MONOTONIC);
  const int64_t expected = bytes * taken_per_stranger;
  uint64_t waited_us = 0;
  bool may = true;
  while (!waits_are_over(self) && account.level() != Level::unknown &&
         !take_room(self, expected, [&] { return fits(expected); })) {
    may = waited_us < patient_packet_us;
    if (!may) break;
    wait_for_round(*self, rounds.ended(), bytes);
    waited_us = clock_us(CLOCK_MONOTONIC) - began_us;
  }
  if (may) expect_to_take(self, expected);
  if (waited_us != 0) count_wait(waited_us);
  return may;
}

bool wait_for_part(Thread *self) {
  const uint64_t began_us = clock_us(CLOCK_MONOTONIC);
  const int64_t left_before = account.left_bytes();
  uint64_t now_us = began_us;
  bool may = true;
  bool went_on = false;
  while (account.level() == Level::red && !waits_are_over(self)) {
    if (now_us - began_us >= longest_ask_us >>
        std::min(self->went_on, most_halvings)) {
      may = account.left_bytes() >= 0;
      went_on = may && going_on.may_go_on(began_us, now_us);
      if (!may || went_on) break;
    }
    tell_owner(&Owner::call_giver);
    wait_for_round(*self, rounds.ended(), 0);
    now_us = clock_us(CLOCK_MONOTONIC);
  }
  self->went_on = went_on ? self->went_on + 1 : 0;
  if (now_us != began_us) note_wait(now_us - began_us, went_on, left_before);
  return may;
}

}  // namespace memdiag::ceiling
