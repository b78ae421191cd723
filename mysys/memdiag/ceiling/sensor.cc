#include "mysys/memdiag/ceiling/sensor.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "mysys/memdiag/base/clock.h"
#include "mysys/memdiag/jemalloc/mallctl.h"
#include "mysys/memdiag/pools/attention.h"

namespace memdiag::ceiling {

constinit Account account;
constinit Rounds rounds;
constinit Tokens tokens;
constinit Counters counters;

namespace {

constexpr uint64_t look_again_us = 50'000;
constexpr uint64_t longest_packet_us = 50'000'000;
/** After so long, a packet needs only the reserve. Where idle sessions keep
what is missing, plenty may never be left. */
constexpr uint64_t patient_packet_us = 5'000'000;
constexpr uint64_t connection_wait_us = 1'000'000;
/** Threads whose wait is over go on one by one: together they would take at
once what they waited for. */
constexpr uint64_t goes_on_pause_us = 250'000;

/** 0: off. Each switch_on() has another number, so that threads forget what
they grew by meanwhile. */
constinit std::atomic<uint32_t> generation{0};
/** 0: no thread waits in its event. Another number for each time that threads
begin to ask. */
constinit std::atomic<uint32_t> asking{0};
constinit std::atomic<bool> may_wait{false};
constinit std::atomic<const Owner *> owner{nullptr};

/** The bytes that a statement takes for each byte of a large text, in
sixteenths. A statement that takes more raises the figure at once. One that
takes less lowers it by a quarter of the difference. */
constinit std::atomic<int64_t> taken_per_text{8 * 16};
constexpr int64_t most_per_text = 64 * 16;

/** Calls a function of the owner.
@return what it said; `otherwise`: there is no such function */
template <typename Result, typename... Parameters>
Result ask_owner(Result (*Owner::*function)(Parameters...), Result otherwise,
                 Parameters... parameters) {
  const Owner *const asked = owner.load(std::memory_order_acquire);
  return asked == nullptr || asked->*function == nullptr
             ? otherwise
             : (asked->*function)(parameters...);
}

template <typename... Parameters>
void tell_owner(void (*Owner::*function)(Parameters...),
                Parameters... parameters) {
  const Owner *const told = owner.load(std::memory_order_acquire);
  if (told != nullptr && told->*function != nullptr)
    (told->*function)(parameters...);
}

/** A watched block whose pages are not all touched yet. */
struct Block {
  uintptr_t address;
  size_t size;
  /** Counted as promised. */
  int64_t untouched_bytes;
};

constexpr size_t max_blocks = 4;
constexpr uint64_t blocks_pause_us = 5'000;

struct Thread {
  Taker taker;
  std::array<Block, max_blocks> blocks{};
  size_t block_count{0};
  uint64_t blocks_seen_us{0};
  /** Promised for a watched block that is being allocated. */
  int64_t coming_bytes{0};
  uint64_t allocated_bytes{0};
  int64_t net_bytes{0};
  /** The least of net_bytes since the statement began, or the last one ended.
   */
  int64_t base_bytes{0};
  /** The most of Taker::grown_bytes. */
  int64_t peak_bytes{0};
  /** Counted as promised. */
  int64_t promised_bytes{0};
  /** What the statement is to take, and the part that is counted as expected.
   */
  int64_t to_take_bytes{0};
  int64_t expected_bytes{0};
  /** Promised by the last ask, and not seen in an event yet. */
  int64_t asked_bytes{0};
  int64_t token_bytes{0};
  /** The size of the large text or packet that the statement began with. 0:
  there is none. */
  int64_t text_bytes{0};
  /** How long it waited before that was read. */
  uint64_t text_waited_us{0};
  /** It waited as long as it may. */
  bool text_in_vain{false};
  /** The packets since the last statement are parts of a parameter
  (COM_STMT_SEND_LONG_DATA). What they waited counts for all of them. */
  bool sends_value{false};
  /** A part of a value was refused after its wait. */
  bool value_in_vain{false};
  /** Promised for what follows the parsing, until the statement has grown to
  parsed_bytes. */
  int64_t later_bytes{0};
  int64_t parsed_bytes{0};
  uint32_t generation{0};
  uint32_t asking{0};
  bool in_statement{false};
  /** begin_late() began it: its text may be parsed still. */
  bool began_late{false};
  /** Statements of the session may wait. */
  bool of_session{false};
  /** The base is not known before the next event. */
  bool no_base{false};
  /** The owner knows that it is large. */
  bool told_large{false};
  /** Within pools::allocate(), since the last event. */
  bool in_pool{false};
  /** It was to wait where it could not. */
  bool owes{false};
  /** It asked for a packet, a text or a value, and no statement ran. */
  bool asked_without{false};
  /** Within a function of this file. */
  bool busy{false};
};
constinit thread_local Thread thread;

/** Blocks of these pools come from the SQL layer. */
bool waits_for(Pool pool) {
  return pool == Pool::statement || pool == Pool::session ||
         pool == Pool::temp_table ||
         (pool == Pool::table_cache && ask_owner(&Owner::is_in_parser, false));
}

/** Upstream looks whether it got the block. Where it does not, as with the
memory root of a statement that is parsed or runs, a refusal would end the
server. A copy of its text is refused without tokens: many statements that were
told to end, and wait for tokens to copy their texts, would wait for each other.
A packet that is read is refused only if it is too large: its connection would
be lost. */
Refusal refusal_of(Pool pool, bool watched) {
  if (pool == Pool::session)
    return watched && ask_owner(&Owner::is_executing, false)
               ? Refusal::at_once
               : Refusal::too_large;
  return pool == Pool::statement && watched &&
                 ask_owner(&Owner::is_before_parser, false)
             ? Refusal::without_tokens
             : Refusal::never;
}

/** Bytes that were promised are touched by now, or will be counted by the next
reading. */
void settle(Thread *self) {
  if (self->promised_bytes == 0) return;
  account.charge(self->promised_bytes);
  account.promise(-self->promised_bytes);
  self->promised_bytes = 0;
}

void promise(Thread *self, int64_t bytes) {
  account.promise(bytes);
  self->promised_bytes += bytes;
}

int64_t untouched_bytes(const Block &block) {
  static const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  constexpr size_t most = 2048;
  unsigned char touched[most];
  const uintptr_t end = block.address + block.size;
  size_t pages = 0;
  for (uintptr_t at = block.address & ~(page - 1); at < end;
       at += most * page) {
    const size_t count = std::min(most, (end - at + page - 1) / page);
    // Freed, and not mapped any more.
    if (mincore(reinterpret_cast<void *>(at), count * page, touched) != 0)
      return 0;
    for (size_t i = 0; i < count; ++i) pages += (touched[i] & 1) == 0;
  }
  return std::min<int64_t>(static_cast<int64_t>(pages * page),
                           block.untouched_bytes);
}

/** Pages that were touched meanwhile are the kernel's. */
void see_blocks(Thread *self) {
  const uint64_t now_us = clock_us(CLOCK_MONOTONIC);
  if (now_us - self->blocks_seen_us < blocks_pause_us) return;
  self->blocks_seen_us = now_us;
  size_t left = 0;
  for (size_t i = 0; i < self->block_count; ++i) {
    Block block = self->blocks[i];
    const int64_t now = untouched_bytes(block);
    account.promise(now - block.untouched_bytes);
    account.charge(block.untouched_bytes - now);
    block.untouched_bytes = now;
    if (now != 0) self->blocks[left++] = block;
  }
  self->block_count = left;
}

/** The block is forgotten. */
void drop_block(Thread *self, size_t number) {
  const int64_t bytes = self->blocks[number].untouched_bytes;
  account.promise(-bytes);
  account.charge(bytes);
  self->blocks[number] = self->blocks[--self->block_count];
}

void drop_coming(Thread *self) {
  if (self->coming_bytes == 0) return;
  account.promise(-std::exchange(self->coming_bytes, 0));
}

/** A statement that is parsed promises what it takes afterwards. */
void promise_later(Thread *self) {
  const int64_t grown = self->taker.grown_bytes.load(std::memory_order_relaxed);
  if (ask_owner(&Owner::is_parsing, false))
    self->parsed_bytes = grown + grown / 4;
  const int64_t later = std::max<int64_t>(self->parsed_bytes - grown, 0);
  account.promise(later - std::exchange(self->later_bytes, later));
}

void forget_later(Thread *self) {
  if (self->later_bytes != 0)
    account.promise(-std::exchange(self->later_bytes, 0));
  self->parsed_bytes = 0;
  self->began_late = false;
}

/** What the statement has taken is not expected any more. One that took more
than was expected may take as much again. */
void expect(Thread *self) {
  int64_t rest = self->to_take_bytes - self->peak_bytes;
  if (rest < 0)
    rest = std::min(self->peak_bytes, account.marks().plenty_bytes / 2);
  if (rest == self->expected_bytes) return;
  account.expect(rest - self->expected_bytes);
  self->expected_bytes = rest;
}

void read_if_due() {
  const uint64_t now_us = clock_us(CLOCK_MONOTONIC);
  if (account.is_due(now_us)) (void)account.read(now_us);
}

void look() {
  read_if_due();
  if (account.level() <= Level::green) return;
  if (may_wait.load(std::memory_order_relaxed)) let_threads_ask(true);
  tell_owner(&Owner::call_giver);
}

/** A statement that grew so much waits at red. A quarter of the reserve behind
the target, many small ones would take the rest. */
int64_t waiting_bytes() {
  return account.left_bytes() < -account.marks().reserve_bytes / 4
             ? int64_t{interval_bytes}
             : small_bytes;
}

void tell_large(Thread *self) {
  if (!self->told_large) self->told_large = ask_owner(&Owner::is_large, true);
}

/** A wait that was as long as it may be is over. @return false: not yet */
bool may_go_on(uint64_t now_us) {
  static constinit std::atomic<uint64_t> last_us{0};
  uint64_t last = last_us.load(std::memory_order_relaxed);
  return now_us - last >= goes_on_pause_us &&
         last_us.compare_exchange_strong(last, now_us,
                                         std::memory_order_relaxed);
}

/** The thread whose statement goes on to its end. A statement that waits within
malloc() cannot be refused a block, and keeps what others wait for: if each of
many took one block more in turn, none would come to its end. */
constinit std::atomic<const Thread *> in_lane{nullptr};

/** @return true: the thread has the lane, and is half a reserve from the limit
at least */
bool take_lane(Thread *self) {
  if (account.left_bytes() < -account.marks().reserve_bytes / 2) return false;
  const Thread *holder = nullptr;
  return in_lane.load(std::memory_order_relaxed) == self ||
         in_lane.compare_exchange_strong(holder, self,
                                         std::memory_order_relaxed);
}

void leave_lane(const Thread *self) {
  if (in_lane.load(std::memory_order_relaxed) == self)
    in_lane.store(nullptr, std::memory_order_relaxed);
}

/** How a wait may end without room. */
struct May {
  Refusal refusal{Refusal::never};
  /** Raise an error: the thread is not within malloc(). */
  bool raise{false};
};

/** See Owner::ends_at_once. */
bool ends_at_once(const Thread *self) {
  return self->taker.told_to_end.load(std::memory_order_acquire) &&
         ask_owner(&Owner::ends_at_once, false);
}

bool is_to_end(const Thread *self) {
  return self->taker.told_to_end.load(std::memory_order_relaxed) ||
         ask_owner(&Owner::is_killed, false);
}

/** The thread sleeps until another round has ended, or for a moment. Others do
not wait meanwhile for what it has not taken yet.
@param bytes  are promised */
void wait_for_round(uint64_t seen_rounds, int64_t bytes) {
  account.promise(-bytes);
  rounds.wait(seen_rounds, look_again_us);
  account.promise(bytes);
  // The giver knows. Called by each one that it wakes, it would never rest.
  read_if_due();
}

/** The giver sees it. */
void waits(Thread *self, int64_t for_bytes, bool in_malloc) {
  Taker &taker = self->taker;
  taker.asks_bytes.store(for_bytes, std::memory_order_relaxed);
  taker.waits_in_malloc.store(in_malloc, std::memory_order_relaxed);
  taker.waits.store(true, std::memory_order_relaxed);
}

void waits_no_more(Thread *self) {
  Taker &taker = self->taker;
  taker.waits.store(false, std::memory_order_relaxed);
  taker.waits_in_malloc.store(false, std::memory_order_relaxed);
  taker.asks_bytes.store(0, std::memory_order_relaxed);
}

/** There is no room.
@return true: the thread goes on even so */
bool may_pass(Thread *self, int64_t bytes, bool waited_long, uint64_t began_us,
              uint64_t now_us) {
  if ((is_to_end(self) || (waited_long && bytes > small_bytes)) &&
      take_lane(self))
    return true;
  return waited_long &&
         (bytes <= small_bytes || now_us - began_us >= longest_large_ask_us) &&
         may_go_on(now_us);
}

/** @param bytes  are promised
@return false: the block is refused */
bool wait(Thread *self, int64_t bytes, May may) {
  if (may.refusal != Refusal::after_the_wait &&
      in_lane.load(std::memory_order_relaxed) == self && take_lane(self))
    return true;
  const uint64_t began_us = clock_us(CLOCK_MONOTONIC);
  const int64_t left_before = account.left_bytes();
  Asked asked{bytes, began_us, rounds.ended(), rounds.ended(), began_us};
  uint64_t now_us = began_us;
  Answer last;
  while ((last = answer(account, &tokens, &asked, is_to_end(self), may.refusal,
                        now_us, rounds.ended())) == Answer::wait ||
         last == Answer::went_on) {
    if (may_pass(self, bytes, last == Answer::went_on, began_us, now_us)) {
      last = Answer::went_on;
      break;
    }
    if (generation.load(std::memory_order_relaxed) != self->generation ||
        (may.raise && ends_at_once(self)))
      break;
    tell_large(self);
    waits(self, bytes, !may.raise);
    wait_for_round(asked.seen_rounds, bytes);
    now_us = clock_us(CLOCK_MONOTONIC);
  }
  waits_no_more(self);
  if (last == Answer::tokens) self->token_bytes += bytes;
  if (now_us == began_us) return last != Answer::refuse;
  const uint64_t waited_us = now_us - began_us;
  if (last == Answer::went_on) {
    counters.went_on.fetch_add(1);
    tell_owner(&Owner::went_on, waited_us, left_before);
  }
  counters.waits.fetch_add(1);
  counters.wait_us.fetch_add(waited_us);
  uint64_t longest = counters.longest_wait_us.load();
  while (longest < waited_us &&
         !counters.longest_wait_us.compare_exchange_weak(longest, waited_us)) {
  }
  return last != Answer::refuse;
}

uint64_t longest_lane_us() {
  return ask_owner(&Owner::goes_on, false)
             ? longest_ask_us
             : ask_owner(&Owner::longest_wait_us, longest_packet_us);
}

/** A large block of malloc() cannot be refused, and the next one of the
statement may be as large. So while there is not plenty, one after the other of
such statements comes to its end.
@param bytes  are promised */
void wait_for_lane(Thread *self, int64_t bytes) {
  const uint64_t began_us = clock_us(CLOCK_MONOTONIC);
  while (account.level() > Level::green && !take_lane(self) &&
         generation.load(std::memory_order_relaxed) == self->generation &&
         clock_us(CLOCK_MONOTONIC) - began_us < longest_lane_us()) {
    tell_large(self);
    waits(self, 0, true);
    wait_for_round(rounds.ended(), bytes);
  }
  waits_no_more(self);
}

int64_t expected_of_text(int64_t bytes) {
  return std::min(bytes / 16 * taken_per_text.load(std::memory_order_relaxed),
                  account.marks().target_bytes);
}

void note_text(int64_t bytes, int64_t peak_bytes) {
  const int64_t now = std::min(peak_bytes * 16 / bytes, most_per_text);
  const int64_t before = taken_per_text.load(std::memory_order_relaxed);
  taken_per_text.store(now > before ? now : (3 * before + now) / 4,
                       std::memory_order_relaxed);
}

/** There is room for one more statement with a text of so much. If none is
expected to take more, one always begins. */
bool has_room_for_text(int64_t bytes, uint64_t waited_us) {
  const Marks marks = account.marks();
  const int64_t left = account.left_for_beginners_bytes();
  const bool fits = left - expected_of_text(bytes) >= marks.reserve_bytes;
  return left >= marks.plenty_bytes ? fits || account.expected_bytes() <= 0
                                    : fits && waited_us >= patient_packet_us;
}

/** A large packet, and the copy of its text, come before the statement. As a
statement at the gate, it waits while there is not plenty. Then others wait for
what it will take.
@param bytes  are promised */
void wait_as_beginner(Thread *self, int64_t bytes) {
  // The copy of a text whose packet has waited.
  if (self->text_bytes != 0) return;
  const uint64_t began_us = clock_us(CLOCK_MONOTONIC) -
                            (self->sends_value ? self->text_waited_us : 0);
  uint64_t waited_us = clock_us(CLOCK_MONOTONIC) - began_us;
  while (may_wait.load(std::memory_order_relaxed) &&
         account.level() != Level::unknown &&
         generation.load(std::memory_order_relaxed) == self->generation &&
         !has_room_for_text(bytes, waited_us) &&
         !ask_owner(&Owner::goes_on, false)) {
    const uint64_t now_us = clock_us(CLOCK_MONOTONIC);
    waited_us = now_us - began_us;
    self->text_in_vain =
        waited_us >= ask_owner(&Owner::longest_wait_us, longest_packet_us) &&
        (bytes <= small_bytes || may_go_on(now_us));
    if (self->text_in_vain) break;
    wait_for_round(rounds.ended(), bytes);
  }
  self->text_bytes = bytes;
  self->text_waited_us = waited_us;
  self->to_take_bytes = expected_of_text(bytes);
  account.expect(self->to_take_bytes -
                 std::exchange(self->expected_bytes, self->to_take_bytes));
}

/** True if the thread has no shard of a pool: it is not within
pools::allocate(), or not for so large a block. */
bool may_wait_in_event(Thread *self, bool of_malloc, bool in_pool) {
  // Where allocate() has seen the bit cleared, this sees that or a later value,
  // and behind a cleared bit the number is 0. Behind a number that an event has
  // seen before, allocate() has seen the bit set.
  if (!pools::is_set(pools::attention_in_order(), pools::Attention::ceiling)) {
    self->asking = 0;
    return false;
  }
  const uint32_t now = asking.load(std::memory_order_acquire);
  const bool seen = std::exchange(self->asking, now) == now;
  return now != 0 && ((seen && !in_pool) || of_malloc);
}

/** Is left by all ways, so that a thread is never taken for busy for ever. */
class Busy {
 public:
  explicit Busy(Thread *self) : m_self(self) { self->busy = true; }
  ~Busy() {
    m_self->busy = false;
    errno = m_error;
  }
  Busy(const Busy &) = delete;
  Busy &operator=(const Busy &) = delete;

 private:
  Thread *const m_self;
  const int m_error{errno};
};

}  // namespace

void on_event(bool, uint64_t allocated, uint64_t freed) {
  const uint32_t now = generation.load(std::memory_order_relaxed);
  if (now == 0) return;
  Thread *const self = &thread;
  if (self->busy) return;
  const Busy busy(self);
  const auto net = static_cast<int64_t>(allocated - freed);
  int64_t grown = net - std::exchange(self->net_bytes, net);
  const uint64_t came =
      allocated - std::exchange(self->allocated_bytes, allocated);
  if (self->block_count != 0) see_blocks(self);
  if (self->generation != now) {
    self->generation = now;
    self->asked_bytes = 0;
    self->no_base = true;
    grown = interval_bytes;
  }
  if (std::exchange(self->no_base, false)) self->base_bytes = net - grown;
  // The thread may free memory of a former statement. jemalloc sends no event
  // for that. The next event shows it, and the base follows.
  self->base_bytes = std::min(self->base_bytes, net);
  const int64_t since_base = net - self->base_bytes;
  self->taker.grown_bytes.store(since_base, std::memory_order_relaxed);
  self->peak_bytes = std::max(self->peak_bytes, since_base);
  if (self->in_statement && self->peak_bytes >= small_bytes) expect(self);
  if (self->began_late) promise_later(self);
  const bool in_pool = std::exchange(self->in_pool, false);
  grown -= std::exchange(self->asked_bytes, 0);
  if (grown <= 0) {
    if (!account.has_much_left()) {
      account.churn(static_cast<int64_t>(came));
      look();
    }
    return;
  }
  // At red, a session that prepares a statement is one that runs.
  const bool prepares = !self->in_statement && self->of_session &&
                        account.level() == Level::red &&
                        since_base >= waiting_bytes();
  if (since_base >= large_bytes || prepares) tell_large(self);
  if (!self->in_statement) {
    account.charge(grown);
    look();
    return;
  }
  settle(self);
  promise(self, grown);
  look();
  const bool of_malloc = grown >= static_cast<int64_t>(pools::watched_size) &&
                         self->coming_bytes == 0;
  const bool may = may_wait_in_event(self, of_malloc, in_pool);
  if (may && of_malloc) wait_for_lane(self, grown);
  if (account.level() != Level::red || since_base < waiting_bytes()) return;
  if (may)
    (void)wait(self, grown, {});
  else
    self->owes = true;
}

bool on_ask(Pool pool, size_t size) {
  Thread *const self = &thread;
  if (self->busy) return true;
  self->in_pool = true;
  const bool watched = size >= pools::watched_size;
  const bool asks = asking.load(std::memory_order_relaxed) != 0;
  const bool large = size >= interval_bytes;
  if (!self->in_statement &&
      !(self->of_session && (watched || (asks && large))))
    return true;
  const bool may_wait_now = asks && waits_for(pool);
  if (!may_wait_now && !watched) return true;
  const bool ends = self->taker.told_to_end.load(std::memory_order_acquire);
  const bool owes = may_wait_now && std::exchange(self->owes, false);
  if (!owes && !large && !ends) return true;
  const Busy busy(self);
  if (!self->in_statement && ask_owner(&Owner::never_waits, false)) return true;
  const int64_t bytes =
      large ? static_cast<int64_t>(std::min<size_t>(size, INT64_MAX / 4)) : 0;
  settle(self);
  drop_coming(self);
  if (watched) {
    account.promise(bytes);
    self->coming_bytes = bytes;
  } else {
    promise(self, bytes);
  }
  self->asked_bytes = bytes;
  self->asked_without |= !self->in_statement;
  look();
  const bool keeps =
      pool == Pool::session && ask_owner(&Owner::keeps_value, false);
  if (!self->in_statement && !keeps && waits_for(pool)) {
    if (ask_owner(&Owner::text_comes, true))
      wait_as_beginner(self, bytes);
    else
      tell_large(self);
  }
  self->sends_value |= keeps && !self->in_statement;
  const auto waits_in_vain = [&] {
    if (self->text_in_vain && bytes <= small_bytes) return false;
    if (keeps && self->value_in_vain && account.left_bytes() < 0) return true;
    return !wait(
        self, bytes,
        {.refusal = keeps ? Refusal::after_the_wait : refusal_of(pool, watched),
         .raise = true});
  };
  // look() may have been the first to see that memory is short.
  const bool may_have = asking.load(std::memory_order_relaxed) == 0 ||
                        !waits_for(pool) || account.level() != Level::red ||
                        !waits_in_vain();
  if (!may_have) {
    self->value_in_vain |= keeps;
    drop_coming(self);
    settle(self);
    self->asked_bytes = 0;
    tell_owner(&Owner::refused);
  }
  (void)ends_at_once(self);
  if (self->text_in_vain && ask_owner(&Owner::gives_up, false))
    self->text_in_vain = false;
  return may_have;
}

void on_allocated(const void *block, size_t size) {
  Thread *const self = &thread;
  if (self->busy || self->coming_bytes == 0) return;
  if (self->block_count == max_blocks) {
    const auto least =
        std::min_element(self->blocks.begin(), self->blocks.end(),
                         [](const Block &a, const Block &b) {
                           return a.untouched_bytes < b.untouched_bytes;
                         });
    drop_block(self, static_cast<size_t>(least - self->blocks.begin()));
  }
  self->blocks[self->block_count++] = {reinterpret_cast<uintptr_t>(block), size,
                                       std::exchange(self->coming_bytes, 0)};
}

void on_freed(const void *block) {
  Thread *const self = &thread;
  for (size_t i = 0; i < self->block_count; ++i) {
    if (self->blocks[i].address != reinterpret_cast<uintptr_t>(block)) continue;
    account.promise(-self->blocks[i].untouched_bytes);
    self->blocks[i] = self->blocks[--self->block_count];
    return;
  }
}

int switch_on(const Owner *tell) {
  static constexpr pools::Watcher watcher{on_ask, on_allocated, on_freed};
  static constinit bool installed = false;
  owner.store(tell, std::memory_order_release);
  if (!installed) {
    const int error = mallctl::write<Ctl::hook_thread_event>(
        {on_event, interval_bytes, true});
    if (error != 0) return error;
    installed = true;
  }
  static constinit uint32_t last_generation = 0;
  if (++last_generation == 0) ++last_generation;
  generation.store(last_generation);
  pools::set_watcher(&watcher);
  return 0;
}

void switch_off() {
  may_wait.store(false);
  let_threads_ask(false);
  pools::set_watcher(nullptr);
  generation.store(0);
  account.set_reader(nullptr);
  rounds.end_one();
}

void let_threads_wait(bool may) {
  may_wait.store(may, std::memory_order_relaxed);
}

void let_threads_ask(bool ask) {
  static constinit std::atomic_flag busy;
  static constinit uint32_t last = 0;
  if (ask == (asking.load() != 0)) return;
  if (busy.test_and_set(std::memory_order_acquire)) return;
  if (ask) {
    pools::set_attention(pools::Attention::ceiling, true);
    if (++last == 0) ++last;
    asking.store(last);
  } else {
    asking.store(0);
    pools::set_attention(pools::Attention::ceiling, false);
  }
  busy.clear(std::memory_order_release);
}

Taker *begin(int64_t expected_bytes) {
  Thread *const self = &thread;
  self->in_statement = self->of_session = true;
  self->no_base =
      self->generation != generation.load(std::memory_order_relaxed);
  self->base_bytes = self->net_bytes;
  self->peak_bytes = 0;
  self->owes = false;
  self->told_large = false;
  self->taker.grown_bytes.store(0, std::memory_order_relaxed);
  self->taker.told_to_end.store(false, std::memory_order_relaxed);
  self->to_take_bytes = expected_bytes;
  if (expected_bytes != 0) expect(self);
  return &self->taker;
}

bool begin_small() {
  Thread *const self = &thread;
  if (asking.load(std::memory_order_relaxed) != 0 || self->in_statement ||
      self->text_bytes != 0 || self->sends_value)
    return false;
  self->of_session = true;
  self->base_bytes = self->net_bytes;
  self->peak_bytes = 0;
  self->told_large = false;
  return true;
}

Taker *begin_late(bool parses) {
  Thread *const self = &thread;
  self->in_statement = self->of_session = true;
  self->began_late = parses;
  if (self->text_bytes == 0) self->to_take_bytes = 0;
  self->taker.told_to_end.store(false, std::memory_order_relaxed);
  return &self->taker;
}

uint64_t waited_for_text_us() { return thread.text_waited_us; }

int64_t end() {
  Thread *const self = &thread;
  // What is allocated from now on is not the statement's.
  self->base_bytes = self->net_bytes;
  self->told_large = false;
  if (self->expected_bytes != 0)
    account.expect(-std::exchange(self->expected_bytes, 0));
  leave_lane(self);
  const bool ran = self->in_statement;
  if (!ran && !self->asked_without) return 0;
  const int64_t text = std::exchange(self->text_bytes, 0);
  if (ran) self->sends_value = self->value_in_vain = false;
  if (!self->sends_value) self->text_waited_us = 0;
  self->text_in_vain = false;
  if (ran && text != 0) note_text(text, self->peak_bytes);
  self->in_statement = self->asked_without = false;
  // Nor is the packet of the next one refused.
  self->taker.told_to_end.store(false, std::memory_order_relaxed);
  settle(self);
  drop_coming(self);
  forget_later(self);
  while (self->block_count != 0) drop_block(self, self->block_count - 1);
  self->asked_bytes = 0;
  if (self->token_bytes != 0)
    tokens.give_back(std::exchange(self->token_bytes, 0));
  const int64_t peak = std::exchange(self->peak_bytes, 0);
  return ran ? peak : 0;
}

void session_begins() {
  // A thread serves one session after another.
  thread.sends_value = thread.value_in_vain = false;
  (void)end();
  thread.text_waited_us = 0;
  if (generation.load(std::memory_order_relaxed) == 0) return;
  thread.of_session = ask_owner(&Owner::session_begins, false);
}

void exempt_thread(bool exempt) { thread.of_session = !exempt; }

void before_connection() {
  if (generation.load(std::memory_order_relaxed) == 0) return;
  const uint64_t began_us = clock_us(CLOCK_MONOTONIC);
  while (account.level() == Level::red &&
         asking.load(std::memory_order_relaxed) != 0) {
    look();
    rounds.wait(rounds.ended(), look_again_us);
    if (clock_us(CLOCK_MONOTONIC) - began_us >= connection_wait_us) return;
  }
}

}  // namespace memdiag::ceiling
