#include "mysys/memdiag/ceiling/sensor.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "mysys/memdiag/base/clock.h"
#include "mysys/memdiag/ceiling/levels.h"
#include "mysys/memdiag/ceiling/loose_blocks.h"
#include "mysys/memdiag/ceiling/taken.h"
#include "mysys/memdiag/ceiling/waiting.h"
#include "mysys/memdiag/jemalloc/mallctl.h"
#include "mysys/memdiag/pools/attention.h"

namespace memdiag::ceiling {

namespace {

constexpr uint64_t connection_wait_us = 1'000'000;

/** 0: no thread waits in its event. Another number for each time that threads
begin to ask. */
constinit std::atomic<uint32_t> asking{0};

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
be lost. Blocks of temporary tables double, and may be larger than all tokens:
statements that were told to end would wait for each other with what they have.
*/
Refusal refusal_of(Pool pool, bool watched, bool users_look) {
  if (pool == Pool::temp_table)
    return watched && users_look ? Refusal::at_once : Refusal::never;
  if (pool == Pool::session && !users_look) return Refusal::never;
  if (pool == Pool::session)
    return watched && ask_owner(&Owner::is_executing, false)
               ? Refusal::at_once
               : Refusal::too_large;
  return pool == Pool::statement && watched &&
                 ask_owner(&Owner::is_before_parser, false)
             ? Refusal::without_tokens
             : Refusal::never;
}

/** A buffer of a setting's size, such as binlog_cache_size, of which most may
never be touched. It is not worth a wait. Nor is it a part of an event: a
worker keeps it for as long as it lives. */
bool may_be_smaller(pools::Account account_of_block) {
  return pools::may_be_smaller[account_of_block].load(
      std::memory_order_relaxed);
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
  return has_room_for_small(account) ? small_bytes : int64_t{interval_bytes};
}

/** True if the thread has no shard of a pool, nor a latch of InnoDB's: it is
not within pools::allocate(), or not for so large a block. */
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
  return now != 0 && !pools::in_malloc_of_pool &&
         ((seen && !in_pool) || of_malloc);
}

/** A statement with more small blocks of malloc() takes the lane for the next
ones. If each of a crowd had a reserve without it, all would wait, and none
could come to its end. */
int64_t most_without_lane() { return account.marks().reserve_bytes / 8; }

/** The statement took `grown` bytes more, in small blocks.
@param may  it is known that they are of malloc(), and the thread may wait */
void add_small_blocks(Thread *self, int64_t since_base, int64_t grown,
                      bool may) {
  const int64_t most = most_without_lane();
  if (since_base <= most || !needs_lane(since_base)) return;
  // At green no pool is asked, and it is not known who took the bytes.
  if (!may) return let_threads_ask(true);
  self->malloc_bytes += grown;
  if (self->malloc_bytes > most) wait_for_lane(self, self->malloc_bytes, grown);
}

/** Its session has dropped the parts of the parameter: the next one is new. */
void see_drops(Thread *self) {
  if (ask_owner(&Owner::drops_of_values, uint64_t{0}) != self->drops_of_values)
    (void)value_dropped();
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

/** The thread runs no statement, and serves no session that may wait. */
void ask_for_loose_block(Thread *self, size_t size,
                         pools::Account account_of_block) {
  const auto bytes =
      static_cast<int64_t>(std::min<size_t>(size, INT64_MAX / 8));
  drop_coming(self);
  self->coming =
      ask_owner(&Owner::replica_block, Replica_block::other, account_of_block);
  int64_t later = 0;
  switch (self->coming) {
    case Replica_block::event:
      later = taken_for_event(bytes, loose_blocks.applied_bytes()) - bytes;
      account.promise(later);
      break;
    case Replica_block::rows: {
      later = loose_blocks.take_later(self->event);
      const int64_t rows = std::min(bytes, later);
      account.promise(-rows);
      later -= rows;
      break;
    }
    case Replica_block::applied:
      loose_blocks.note_taken(bytes);
      break;
    case Replica_block::other:
      break;
  }
  account.promise(bytes);
  self->coming_bytes = self->asked_bytes = bytes;
  self->coming_later_bytes = later;
  self->coming_is_loose = true;
  look();
  if (self->coming == Replica_block::event &&
      may_wait.load(std::memory_order_relaxed))
    wait_to_read(self);
  // No watcher will see the block.
  if (generation.load(std::memory_order_relaxed) == 0) drop_coming(self);
}

/** A block that a pool asks for, of a thread that has a statement or serves a
session that may wait. */
struct Pool_block {
  Pool pool;
  /** 0: it is small; the thread asks for what it has taken already. */
  int64_t bytes;
  /** The watcher sees it. */
  bool watched;
  bool large;
  /** Upstream looks whether it got the block. */
  bool users_look{false};
  /** It is of a value that the session keeps. */
  bool keeps{false};
};

/** The block is promised, before the thread has it. */
void count(Thread *self, const Pool_block &block) {
  settle(self);
  drop_coming(self);
  if (block.watched) {
    account.promise(block.bytes);
    self->coming_bytes = block.bytes;
  } else {
    promise(self, block.bytes);
  }
  self->asked_bytes = block.bytes;
  self->asked_without |= !self->in_statement;
  look();
}

/** The thread does not get the block. */
void forget(Thread *self) {
  drop_coming(self);
  settle(self);
  self->asked_bytes = 0;
}

/** look() may have been the first to see it. */
bool is_short(Pool pool) {
  return asking.load(std::memory_order_relaxed) != 0 && waits_for(pool) &&
         account.level() == Level::red;
}

/** Between two statements, the block is of a text or of a value. */
void ask_before_statement(Thread *self, const Pool_block &block) {
  if (self->sends_value) see_drops(self);
  if (!block.keeps && waits_for(block.pool)) {
    if (ask_owner(&Owner::text_comes, true))
      wait_as_beginner(self, block.bytes);
    else
      tell_large(self);
  }
  if (block.keeps && !std::exchange(self->sends_value, true))
    self->drops_of_values = ask_owner(&Owner::drops_of_values, uint64_t{0});
}

/** Waits while memory is short.
@param waited_us  set if it waits, or has waited */
bool is_refused(Thread *self, const Pool_block &block, uint64_t *waited_us) {
  if (block.keeps && (self->value_in_vain || self->text_in_vain) &&
      account.left_bytes() < 0) {
    *waited_us =
        self->value_in_vain ? self->value_waited_us : waited_for_text(*self);
    return true;
  }
  // It has waited, and the packet is read.
  if (self->text_in_vain && block.bytes <= small_bytes) return false;
  const bool may =
      block.users_look && !ask_owner(&Owner::writes_for_good, false);
  const uint64_t began_us = clock_us(CLOCK_MONOTONIC);
  const bool goes_on = wait(
      self, block.bytes,
      {.refusal = block.keeps ? Refusal::after_the_wait
                              : refusal_of(block.pool, block.watched, may),
       .raise = true,
       .small = !block.large && self->taker.grown_bytes.load(
                                    std::memory_order_relaxed) < small_bytes});
  *waited_us = clock_us(CLOCK_MONOTONIC) - began_us;
  return !goes_on;
}

void refuse(Thread *self, const Pool_block &block, uint64_t waited_us) {
  if (block.keeps) {
    self->value_in_vain = true;
    self->value_waited_us = waited_us;
  }
  forget(self);
  tell_owner(&Owner::refused, waited_us);
  // my_malloc() takes this back. TempTable does not come through it.
  self->error_is_raised = block.pool != Pool::temp_table;
}

}  // namespace

void on_event(bool, uint64_t allocated, uint64_t freed) {
  const uint32_t now = generation.load(std::memory_order_relaxed);
  if (now == 0) return;
  Thread *const self = &thread;
  if (self->busy) {
    self->missed = true;
    return;
  }
  const Busy busy(self);
  const bool missed = std::exchange(self->missed, false);
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
  if (self->value_bytes != 0) take_value(self, grown);
  if (self->commit_bytes != 0) see_commit(self);
  // At red, a session that prepares a statement is one that runs.
  const bool prepares = !self->in_statement && self->of_session &&
                        account.level() == Level::red &&
                        since_base >= waiting_bytes();
  if (since_base >= large_bytes || prepares) tell_large(self);
  const bool in_pool = std::exchange(self->in_pool, false);
  grown -= std::exchange(self->asked_bytes, 0);
  if (grown <= 0) {
    self->malloc_bytes = std::max<int64_t>(self->malloc_bytes + grown, 0);
    if (!account.has_much_left()) {
      account.churn(static_cast<int64_t>(came));
      look();
    }
    return;
  }
  if (!self->in_statement) {
    account.charge(grown);
    look();
    return;
  }
  keep_lane(self);
  settle(self);
  promise(self, grown);
  look();
  const bool of_malloc = grown >= static_cast<int64_t>(pools::watched_size) &&
                         self->coming_bytes == 0 && !missed &&
                         !pools::in_malloc_of_pool;
  const bool may = may_wait_in_event(self, of_malloc, in_pool);
  // The thread is in no pool: a pool asks before it allocates so much.
  if (may_wait.load(std::memory_order_relaxed)) {
    if (of_malloc)
      wait_for_lane(self, grown, grown);
    else
      add_small_blocks(self, since_base, grown, may);
  }
  if (account.level() != Level::red || since_base < waiting_bytes()) return;
  if (may)
    (void)wait(self, grown, {.small = since_base < small_bytes});
  else
    self->owes = true;
}

bool on_ask(Pool pool, size_t size, pools::Account account_of_block) {
  Thread *const self = &thread;
  if (self->busy) return true;
  self->in_pool = true;
  const bool watched = size >= pools::watched_size;
  const bool asks = asking.load(std::memory_order_relaxed) != 0;
  const bool large = size >= interval_bytes;
  if (!self->in_statement &&
      !(self->of_session && (watched || (asks && large)))) {
    if (!watched || may_be_smaller(account_of_block)) return true;
    const Busy busy(self);
    ask_for_loose_block(self, size, account_of_block);
    return true;
  }
  const bool may_wait_now = asks && waits_for(pool);
  if (!may_wait_now && !watched) return true;
  const bool ends = self->taker.told_to_end.load(std::memory_order_acquire);
  const bool owes = may_wait_now && std::exchange(self->owes, false);
  if (!owes && !large && !ends) return true;
  const Busy busy(self);
  if (!self->in_statement && ask_owner(&Owner::never_waits, false)) return true;
  Pool_block block{.pool = pool,
                   .bytes = large ? static_cast<int64_t>(
                                        std::min<size_t>(size, INT64_MAX / 4))
                                  : 0,
                   .watched = watched,
                   .large = large};
  count(self, block);
  if (watched && may_be_smaller(account_of_block) && is_short(pool)) {
    forget(self);
    return false;
  }
  block.users_look =
      pools::may_be_refused[account_of_block].load(std::memory_order_relaxed);
  block.keeps = pool == Pool::session && block.users_look &&
                ask_owner(&Owner::keeps_value, false);
  if (!self->in_statement) ask_before_statement(self, block);
  uint64_t waited_us = 0;
  const bool may_have = !is_short(pool) || !is_refused(self, block, &waited_us);
  if (!may_have) refuse(self, block, waited_us);
  (void)ends_at_once(self);
  if (self->text_in_vain && ask_owner(&Owner::gives_up, false))
    self->text_in_vain = false;
  return may_have;
}

void on_allocated(const void *block, size_t size) {
  Thread *const self = &thread;
  if (self->busy || self->coming_bytes == 0) return;
  if (std::exchange(self->coming_is_loose, false)) {
    self->coming_bytes = 0;
    loose_blocks.add(block, size, self->coming,
                     std::exchange(self->coming_later_bytes, 0));
    if (self->coming == Replica_block::event) self->event = block;
    return;
  }
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
  loose_blocks.remove(block);
}

int switch_on(const Owner *tell) {
  static constexpr pools::Watcher watcher{on_ask, on_allocated, on_freed};
  static constinit bool installed = false;
  owner_in_use.store(tell, std::memory_order_release);
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
  loose_blocks.clear();
  account.set_reader(nullptr);
  rounds.end_one();
}

void let_threads_wait(bool may) {
  may_wait.store(may, std::memory_order_relaxed);
}

void see_loose_blocks() { loose_blocks.see(); }

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
      self->text_bytes != 0 || self->sends_value || self->commit_bytes != 0)
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

bool ends_now() {
  Thread *const self = &thread;
  if (!self->taker.told_to_end.load(std::memory_order_acquire) || self->busy)
    return false;
  const Busy busy(self);
  return ask_owner(&Owner::breaks_off, false);
}

bool commit_is_small(int64_t bytes) {
  constexpr int64_t others = 16;
  return generation.load(std::memory_order_relaxed) == 0 || thread.busy ||
         !may_wait.load(std::memory_order_relaxed) || !thread.of_session ||
         account.level() == Level::unknown ||
         account.left_bytes() / others >= bytes;
}

bool room_for_commit(int64_t bytes) {
  Thread *const self = &thread;
  const Busy busy(self);
  // Another thread may have the lock that the owner needs.
  constexpr int attempts = 20;
  for (int i = 0; i < attempts && !self->in_statement && !self->told_large;
       ++i) {
    if (i > 0) pause_us(50);
    tell_large(self);
  }
  keep_turn(self);
  if (!self->in_statement || bytes <= self->commit_promised_bytes) return true;
  settle(self);
  if (self->commit_bytes == 0)
    self->commit_of =
        ask_owner(&Owner::transaction, static_cast<const void *>(nullptr));
  const uint64_t began_us = clock_us(CLOCK_MONOTONIC);
  // The bytes that are promised already count for this document.
  const bool has_room =
      wait_for_commit(self, bytes - self->commit_promised_bytes);
  if (has_room) {
    promise_commit(self, bytes);
  } else {
    if (self->commit_bytes == 0) leave_turn(self);
    tell_owner(&Owner::refused, clock_us(CLOCK_MONOTONIC) - began_us);
  }
  return has_room;
}

void transaction_ended() {
  // A CALL, or an event, has many transactions.
  thread.commit_waited_us = 0;
  if (thread.commit_bytes == 0) return;
  forget_commit(&thread);
  leave_turn(&thread);
}

void part_of_transaction_ended(bool undone) {
  Thread *const self = &thread;
  if (!undone)
    self->commit_stays_bytes = self->commit_bytes;
  else if (self->commit_stays_bytes != 0)
    undo_commit(self);
  else
    transaction_ended();
}

void client_sleeps() {
  if (thread.commit_bytes != 0) lapse_commit(&thread);
}

void client_is_back() {
  if (thread.commit_lapsed_bytes != 0) renew_commit(&thread);
}

uint64_t waited_for_text_us() { return waited_for_text(thread); }

bool text_waited_in_vain() { return thread.text_in_vain; }

bool text_is_expected() { return thread.text_bytes != 0; }

void see_value(bool executes) {
  if (executes && thread.sends_value)
    see_drops(&thread);
  else
    (void)value_dropped();
}

bool value_dropped() {
  thread.value_in_vain = false;
  thread.parts_waited_us = 0;
  return std::exchange(thread.sends_value, false);
}

int64_t end() {
  Thread *const self = &thread;
  // What is allocated from now on is not the statement's.
  self->base_bytes = self->net_bytes;
  if (self->commit_bytes != 0) commit_later(self);
  self->malloc_bytes = 0;
  self->told_large = false;
  if (self->expected_bytes != 0)
    account.expect(-std::exchange(self->expected_bytes, 0));
  leave_lane(self);
  const bool ran = self->in_statement;
  if (!ran && !self->asked_without) return 0;
  const int64_t text = std::exchange(self->text_bytes, 0);
  const uint64_t waited_us = std::exchange(self->text_waited_us, 0);
  if (ran)
    (void)value_dropped();
  else if (self->sends_value)
    self->parts_waited_us += waited_us;
  self->text_in_vain = false;
  if (ran && text != 0) note_text(text, self->peak_bytes);
  self->in_statement = self->asked_without = false;
  // Nor is the packet of the next one refused.
  self->taker.told_to_end.store(false, std::memory_order_relaxed);
  settle(self);
  drop_coming(self);
  forget_later(self);
  forget_value(self);
  while (self->block_count != 0) drop_block(self, self->block_count - 1);
  self->asked_bytes = 0;
  self->went_on = 0;
  self->small_waited_us = self->commit_waited_us = 0;
  if (self->token_bytes != 0)
    tokens.give_back(std::exchange(self->token_bytes, 0));
  const int64_t peak = std::exchange(self->peak_bytes, 0);
  return ran ? peak : 0;
}

bool message_comes(size_t size, bool connects) {
  Thread *const self = &thread;
  const uint32_t now = generation.load(std::memory_order_relaxed);
  if (now == 0 || self->busy || self->in_statement) return true;
  const bool has_account = !connects && ask_owner(&Owner::has_account, false);
  self->part_bytes = self->net_bytes;
  if (has_account &&
      size < (account.level() > Level::green ? size_t{interval_bytes}
                                             : pools::watched_size))
    return true;
  const Busy busy(self);
  if (std::exchange(self->generation, now) != now) {
    self->asked_bytes = 0;
    self->no_base = true;
  }
  const auto bytes =
      static_cast<int64_t>(std::min<size_t>(size, INT64_MAX / 64));
  self->asked_without = true;
  account.promise(bytes);
  look();
  self->of_session |= !connects;
  const bool may =
      connects ? wait_to_connect(self, bytes) : wait_for_message(self, bytes);
  account.promise(-bytes);
  if (!may) counters.refused.fetch_add(1);
  return may;
}

bool message_goes_on() {
  Thread *const self = &thread;
  if (account.level() != Level::red || self->busy || self->in_statement ||
      self->net_bytes - self->part_bytes < large_bytes)
    return true;
  const Busy busy(self);
  self->part_bytes = self->net_bytes;
  look();
  const bool may = wait_for_part(self);
  if (!may) counters.refused.fetch_add(1);
  return may;
}

bool error_is_raised() { return std::exchange(thread.error_is_raised, false); }

void message_ended() {
  if (thread.asked_without && !thread.in_statement) (void)end();
}

bool value_comes(size_t size) {
  Thread *const self = &thread;
  if (generation.load(std::memory_order_relaxed) == 0 || self->busy ||
      !self->in_statement)
    return true;
  const Busy busy(self);
  forget_value(self);
  self->value_bytes =
      static_cast<int64_t>(std::min<size_t>(size, INT64_MAX / 4));
  account.promise(self->value_bytes);
  look();
  if (account.level() != Level::red || !ask_owner(&Owner::is_executing, false))
    return true;
  const uint64_t began_us = clock_us(CLOCK_MONOTONIC);
  if (wait(self, self->value_bytes,
           {.refusal = Refusal::at_once, .raise = true}))
    return true;
  forget_value(self);
  tell_owner(&Owner::refused, clock_us(CLOCK_MONOTONIC) - began_us);
  return false;
}

void session_begins() {
  (void)end();
  (void)value_dropped();
  thread.text_waited_us = 0;
  if (generation.load(std::memory_order_relaxed) == 0) return;
  thread.of_session = ask_owner(&Owner::session_begins, false);
}

void exempt_thread(bool exempt) { thread.of_session = !exempt; }

No_wait::No_wait() : m_was_busy(std::exchange(thread.busy, true)) {}
No_wait::~No_wait() { thread.busy = m_was_busy; }

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
