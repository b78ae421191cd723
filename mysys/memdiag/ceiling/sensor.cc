#include "mysys/memdiag/ceiling/sensor.h"

#include <algorithm>
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

/** 0: off. Each switch_on() has another number, so that threads forget what
they grew by meanwhile. */
constinit std::atomic<uint32_t> generation{0};
/** 0: no thread waits in its event. Another number for each time that threads
begin to ask. */
constinit std::atomic<uint32_t> asking{0};
constinit std::atomic<void (*)()> giver{nullptr};

struct Thread {
  Taker taker;
  int64_t net_bytes{0};
  /** net_bytes when the statement began. */
  int64_t base_bytes{0};
  /** Counted as promised. */
  int64_t promised_bytes{0};
  /** Promised by the last ask, and not seen in an event yet. */
  int64_t asked_bytes{0};
  int64_t token_bytes{0};
  uint32_t generation{0};
  uint32_t asking{0};
  bool in_statement{false};
  /** The base is not known before the next event. */
  bool no_base{false};
  /** Within pools::allocate(), since the last event. */
  bool in_pool{false};
  /** It was to wait where it could not. */
  bool owes{false};
  /** Within a function of this file. */
  bool busy{false};
};
constinit thread_local Thread thread;

/** Blocks of these pools come from the SQL layer. */
bool waits_for(Pool pool) {
  return pool == Pool::statement || pool == Pool::session ||
         pool == Pool::temp_table;
}

/** Bytes that were promised are touched by now, or will be counted by the next
reading. */
void settle(Thread *self) {
  account.charge(self->promised_bytes);
  account.promise(-self->promised_bytes);
  self->promised_bytes = 0;
}

void promise(Thread *self, int64_t bytes) {
  account.promise(bytes);
  self->promised_bytes += bytes;
}

void look() {
  const uint64_t now_us = clock_us(CLOCK_MONOTONIC);
  if (account.is_due(now_us)) (void)account.read(now_us);
  if (account.level() <= Level::green) return;
  if (const auto call = giver.load(std::memory_order_relaxed); call != nullptr)
    call();
}

/** @param bytes  are promised */
void wait(Thread *self, int64_t bytes) {
  const uint64_t began_us = clock_us(CLOCK_MONOTONIC);
  Asked asked{bytes, began_us, rounds.ended(), rounds.ended(), began_us};
  uint64_t now_us = began_us;
  Answer last;
  while ((last = answer(account, &tokens, &asked,
                        self->taker.told_to_end.load(std::memory_order_relaxed),
                        now_us, rounds.ended())) == Answer::wait) {
    if (generation.load(std::memory_order_relaxed) != self->generation) break;
    // Others do not wait for what this thread has not taken yet.
    account.promise(-bytes);
    rounds.wait(asked.seen_rounds, look_again_us);
    account.promise(bytes);
    look();
    now_us = clock_us(CLOCK_MONOTONIC);
  }
  if (last == Answer::tokens) self->token_bytes += bytes;
  if (now_us == began_us) return;
  if (last == Answer::went_on) counters.went_on.fetch_add(1);
  const uint64_t waited_us = now_us - began_us;
  counters.waits.fetch_add(1);
  counters.wait_us.fetch_add(waited_us);
  uint64_t longest = counters.longest_wait_us.load();
  while (longest < waited_us &&
         !counters.longest_wait_us.compare_exchange_weak(longest, waited_us)) {
  }
}

/** True if the thread is not within pools::allocate(). */
bool may_wait_in_event(Thread *self, bool in_pool) {
  // Where allocate() has seen the bit cleared, this sees that or a later value,
  // and behind a cleared bit the number is 0. Behind a number that an event has
  // seen before, allocate() has seen the bit set.
  if (!pools::is_set(pools::attention_in_order(), pools::Attention::ceiling)) {
    self->asking = 0;
    return false;
  }
  const uint32_t now = asking.load(std::memory_order_acquire);
  return std::exchange(self->asking, now) == now && now != 0 && !in_pool;
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
  if (self->generation != now) {
    self->generation = now;
    self->asked_bytes = 0;
    self->no_base = true;
    grown = interval_bytes;
  }
  if (std::exchange(self->no_base, false)) self->base_bytes = net - grown;
  self->taker.grown_bytes.store(net - self->base_bytes,
                                std::memory_order_relaxed);
  const bool in_pool = std::exchange(self->in_pool, false);
  grown -= std::exchange(self->asked_bytes, 0);
  if (grown <= 0) return;
  if (!self->in_statement) {
    account.charge(grown);
    look();
    return;
  }
  settle(self);
  promise(self, grown);
  look();
  const bool may_wait = may_wait_in_event(self, in_pool);
  if (account.level() != Level::red) return;
  if (may_wait)
    wait(self, grown);
  else
    self->owes = true;
}

void on_ask(Pool pool, size_t size) {
  Thread *const self = &thread;
  if (self->busy) return;
  self->in_pool = true;
  if (!self->in_statement || !waits_for(pool) ||
      asking.load(std::memory_order_relaxed) == 0)
    return;
  const bool large = size >= interval_bytes;
  if (!std::exchange(self->owes, false) && !large) return;
  const Busy busy(self);
  const int64_t bytes =
      large ? static_cast<int64_t>(std::min<size_t>(size, INT64_MAX / 4)) : 0;
  settle(self);
  promise(self, bytes);
  self->asked_bytes = bytes;
  look();
  if (account.level() == Level::red) wait(self, bytes);
}

int switch_on(void (*call_giver)()) {
  static constinit bool installed = false;
  giver.store(call_giver);
  if (!installed) {
    const int error = mallctl::write<Ctl::hook_thread_event>(
        {on_event, interval_bytes, true});
    if (error != 0) return error;
    installed = true;
    pools::set_ask(on_ask);
  }
  static constinit uint32_t last_generation = 0;
  if (++last_generation == 0) ++last_generation;
  generation.store(last_generation);
  counters.on.store(true);
  return 0;
}

void switch_off() {
  let_threads_ask(false);
  generation.store(0);
  counters.on.store(false);
  account.set_reader(nullptr);
  rounds.end_one();
}

void let_threads_ask(bool ask) {
  static constinit uint32_t last = 0;
  if (ask == (asking.load() != 0)) return;
  if (ask) {
    pools::set_attention(pools::Attention::ceiling, true);
    if (++last == 0) ++last;
    asking.store(last);
  } else {
    asking.store(0);
    pools::set_attention(pools::Attention::ceiling, false);
  }
}

Taker *begin(int64_t promised_bytes) {
  Thread *const self = &thread;
  self->in_statement = true;
  self->no_base =
      self->generation != generation.load(std::memory_order_relaxed);
  self->base_bytes = self->net_bytes;
  self->owes = false;
  self->taker.grown_bytes.store(0, std::memory_order_relaxed);
  self->taker.told_to_end.store(false, std::memory_order_relaxed);
  promise(self, promised_bytes);
  return &self->taker;
}

void end() {
  Thread *const self = &thread;
  if (!self->in_statement) return;
  self->in_statement = false;
  settle(self);
  self->asked_bytes = 0;
  tokens.give_back(std::exchange(self->token_bytes, 0));
}

}  // namespace memdiag::ceiling
