/*
  The gate of admission: which statement runs below the memory limit now, and
  which one waits. Pure decisions; server/admission.h makes sessions wait.

  Need: a statement is expected to take the most that one of its digest has
  taken. While fewer than sessions::known_statements of them have ended, that
  may be too little. Such a statement is expected to take a part of the guess at
  least: a quarter of what is left, 1 MiB to 16 MiB, divided by the number of
  statements. One that holds more than expected is expected to take as much
  again.

  Room: what is free below the limit by the last look at the kernel's figures,
  less what the statements that run are still expected to take, less
  memdiag_admission_reserve. The allocator counts a block before its pages are
  written. So what a statement holds counts as taken only if it has held it
  since the look before. Memory of statements that have ended since the last
  look counts as used until the next one: the allocator keeps their pages.

  Order: statements wait in the order in which they came. One that fits may
  overtake others until the first has waited for half of its time. It may also
  overtake then if the first would not fit if all that run had ended. Where less
  is left than the guess, one unknown statement runs at each look: a server
  whose memory is always full goes on.

  Looks: the first one in the queue, the leader, looks for all; every 100 ms, or
  after 10 ms if a statement has ended. The others sleep. So the cost of waiting
  does not grow with the number of those who wait.

  Threads: a Gate and the statements in it belong to their user's mutex.
  Errors: where a figure is not known, statements run.
  Units: bytes; microseconds, of a clock that does not go back.
*/

#ifndef MEMDIAG_ADMISSION_GATE_H
#define MEMDIAG_ADMISSION_GATE_H

#include <atomic>
#include <cstdint>

#include "mysys/memdiag/accounting/sessions.h"
#include "plugin/memdiag/base/reading.h"

namespace memdiag::admission {

struct Figures {
  Reading limit_bytes;
  /** Free below the limit, with page cache that the kernel drops at once. */
  Reading room_bytes;
  /** Unused pages of the pools, which a purge gives back. Empty: they were not
  looked for, because nobody waited. */
  Reading unused_bytes;
  /** Room that statements leave free (memdiag_admission_reserve). */
  uint64_t reserve_bytes;
};

/** A statement that asks, waits or runs. It belongs to the caller, and stays
where it is while the gate has it. */
struct Statement {
  // The caller sets these.
  sessions::Past past{};
  /** What it holds now. */
  const std::atomic<int64_t> *held_bytes = nullptr;
  uint64_t asked_us = 0;
  /** How long it may wait. */
  uint64_t wait_us = 0;

  // The gate sets these.
  /** What it is expected to take. */
  uint64_t need_bytes = 0;
  /** The need is a guess, and none of its digest was large. */
  bool unknown = false;
  bool runs = false;
  /** Held at the last look; and at that and the look before. */
  uint64_t seen_bytes = 0;
  uint64_t taken_bytes = 0;
  Statement *next = nullptr;
  Statement *previous = nullptr;
};

enum class Step : uint8_t {
  run,
  /** Read the figures, and call look(). */
  look,
  /** Purge pools, then call outdate(). */
  purge,
  wait,
  /** It has waited for long enough: call withdraw(). */
  refuse
};

struct Next {
  Step step;
  /** Of wait: until then at most. Of purge: so much is wanted. */
  uint64_t until_us;
  uint64_t bytes;
};

class Gate {
 public:
  static constexpr uint64_t look_us = 100'000;
  static constexpr uint64_t soonest_look_us = 10'000;
  /** Memory is short enough to shrink caches when the leader has waited so
  long. */
  static constexpr uint64_t pressed_us = 1'000'000;
  /** After a purge that does not make room for the leader. */
  static constexpr uint64_t purge_pause_us = 1'000'000;
  /** Less is not worth a purge. */
  static constexpr uint64_t worth_purging_bytes = 1 << 20;
  static constexpr uint64_t least_guess_bytes = 1 << 20;
  static constexpr uint64_t most_guess_bytes = 16 << 20;

  /** @param wake  is called when a statement that waits may run, or has become
  the leader, or the leader has something to do */
  explicit Gate(void (*wake)(Statement *)) : m_wake(wake) {}

  /** The figures are too old for anybody. */
  bool is_stale(uint64_t now_us) const;
  /** It is worth while to look before a statement waits. */
  bool may_look(uint64_t now_us) const;
  /** New figures. Those who wait and fit run now. */
  void look(const Figures &figures, uint64_t now_us);
  const Figures &figures() const { return m_figures; }

  /** @return true: the statement runs; false: it waits, in the queue */
  bool ask(Statement *statement, uint64_t now_us);
  /** It has room. Sets its need. */
  bool fits(Statement *statement) const;
  /** It runs, whatever it takes. */
  void enter(Statement *statement);

  /** What a statement that has asked does next. */
  Next next(const Statement &statement, uint64_t now_us);
  /** The figures are true no more: after a purge, or with another reserve. */
  void outdate();
  /** It leaves the queue. */
  void withdraw(Statement *statement);
  /** A statement that runs has ended. */
  void leave(Statement *statement);
  void wake_all();

  /** What is expected of those that run, and of those that ran at the last
  look. */
  uint64_t reserved_bytes() const;
  bool somebody_waits() const { return m_waiting.first != nullptr; }
  bool is_pressed(uint64_t now_us) const;

 private:
  struct List {
    void append(Statement *statement);
    void remove(Statement *statement);

    Statement *first = nullptr;
    Statement *last = nullptr;
  };

  static uint64_t expected_bytes(const Statement &statement);
  uint64_t left_bytes() const;
  void expect(Statement *statement) const;
  bool has_room(const Statement &statement) const;
  bool nobody_overtakes(const Statement &first, uint64_t now_us) const;

  void (*const m_wake)(Statement *);
  List m_running;
  List m_waiting;
  Figures m_figures{};
  Reading m_looked_us;
  Reading m_purged_us;
  /** Of m_running. */
  uint64_t m_expected_bytes{0};
  /** Of those that have ended since the last look. */
  uint64_t m_ended_bytes{0};
  /** By m_running at the last look. */
  uint64_t m_held_bytes{0};
  /** Something has changed since then. */
  bool m_changed{false};
  /** One of unknown need has run since then although it did not fit. */
  bool m_unknown_ran{false};
};

}  // namespace memdiag::admission

#endif  // MEMDIAG_ADMISSION_GATE_H
