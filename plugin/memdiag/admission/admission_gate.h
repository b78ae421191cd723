/*
  The gate of admission decides which statement runs below the memory limit now
  and which one waits. It only decides; server/threads/admission.h makes
  sessions wait.

  Need: the most that a statement of the digest has ever held. While fewer than
  sessions::known_statements of the digest have ended, that may be too little.
  The need is then at least a share of a guess. The guess is a quarter of the
  room, within 1 and 16 MiB. The share is the guess divided by the number of
  ended statements plus one. A statement that holds more than its need gets a
  need of twice what it holds.

  Refresh: reading the kernel's figures again. The first statement of the queue,
  the leader, refreshes them for all: every 100 ms, or after 10 ms if a
  statement has ended. The others sleep, so the cost of waiting does not grow
  with their number.

  Room: free memory below the limit at the last refresh, less what the running
  statements are still expected to take, less memdiag_admission_reserve. The
  allocator counts a block before its pages are written. A running statement's
  memory therefore counts as taken only if the statement already held it at the
  refresh before. Memory of a statement that has ended counts as used until the
  next refresh, because the allocator keeps its pages.

  Order: statements wait in the order in which they came. A statement that fits
  may overtake others until one of them has waited for half of its time. After
  that, it may do so only if that one would not fit even after all running
  statements have ended. Two kinds may always overtake. One needs at most a
  sixteenth of the room. The other is unknown while the room is less than the
  guess: one of these runs at each refresh. Otherwise a server whose memory is
  always full would refuse all new statements.

  Threads: the caller's mutex protects a Gate and the statements in it.
  Errors: while a figure is unknown, statements run.
  Units: bytes; microseconds, of a clock that does not go back.
*/

#ifndef MEMDIAG_ADMISSION_GATE_H
#define MEMDIAG_ADMISSION_GATE_H

#include <atomic>
#include <cstdint>

#include "mysys/memdiag/accounting/digests.h"
#include "plugin/memdiag/base/reading.h"

namespace memdiag::admission {

struct Figures {
  Reading limit_bytes;
  /** Free below the limit, with page cache that the kernel drops at once. */
  Reading room_bytes;
  /** Unused pages of the pools, which a purge gives back. Empty: not read,
  because no statement waited. */
  Reading unused_bytes;
  /** Room that statements leave free (memdiag_admission_reserve). */
  uint64_t reserve_bytes;
};

/** A statement that asks, waits or runs. The caller owns it and must not move
it while it is in the gate. */
struct Statement {
  // The caller sets these.
  sessions::Past past{};
  /** The bytes that it holds now. */
  const std::atomic<int64_t> *held_bytes = nullptr;
  uint64_t asked_us = 0;
  /** The longest time that it may wait. */
  uint64_t wait_us = 0;

  // The gate sets these.
  /** The need, as above. */
  uint64_t need_bytes = 0;
  /** The need is a guess, and no statement of the digest was large. */
  bool unknown = false;
  bool runs = false;
  /** Bytes that it held at the last refresh. */
  uint64_t seen_bytes = 0;
  /** The lower one of the bytes held at the last two refreshes. */
  uint64_t taken_bytes = 0;
  Statement *next = nullptr;
  Statement *previous = nullptr;
};

enum class Step : uint8_t {
  run,
  /** Read the figures, and call refresh(). */
  refresh,
  /** Purge pools, then call outdate(). */
  purge,
  wait,
  /** Its time is over: call withdraw(). */
  refuse
};

struct Next {
  Step step;
  /** For Step::wait: the latest end. */
  uint64_t until_us;
  /** For Step::purge: bytes to give back. */
  uint64_t bytes;
};

class Gate {
 public:
  static constexpr uint64_t refresh_us = 100'000;
  static constexpr uint64_t soonest_refresh_us = 10'000;
  /** Caches should shrink when the leader has waited for this time. */
  static constexpr uint64_t pressed_us = 1'000'000;
  /** The pause after a purge that did not make room for the leader. */
  static constexpr uint64_t purge_pause_us = 1'000'000;
  /** Fewer unused bytes are not worth a purge. */
  static constexpr uint64_t worth_purging_bytes = 1 << 20;
  /** A statement that needs at most this part of the room is never held up. */
  static constexpr uint64_t minor_share = 16;
  static constexpr uint64_t least_guess_bytes = 1 << 20;
  static constexpr uint64_t most_guess_bytes = 16 << 20;

  /** @param wake  called when a waiting statement may run or has become the
  leader, and when the leader has something to do; with the caller's mutex held,
  from within a function of the gate, so it must not call the gate */
  explicit Gate(void (*wake)(Statement *)) : m_wake(wake) {}

  /** The figures are too old for any statement. */
  bool is_stale(uint64_t now_us) const;
  /** A refresh before the statement waits is worth its cost. */
  bool may_refresh(uint64_t now_us) const;
  /** Takes new figures. Waiting statements that fit run now. */
  void refresh(const Figures &figures, uint64_t now_us);
  const Figures &figures() const { return m_figures; }

  /** @return true: the statement runs; false: it waits, in the queue */
  bool ask(Statement *statement, uint64_t now_us);
  /** Sets the need. @return true: there is room for it */
  bool fits(Statement *statement) const;
  /** Lets it run without asking for room. */
  void enter(Statement *statement);

  /** The next step of a statement that has asked. */
  Next next(const Statement &statement, uint64_t now_us);
  /** Discards the figures, after a purge or with another reserve. */
  void outdate();
  /** It leaves the queue. */
  void withdraw(Statement *statement);
  /** A statement that runs has ended. */
  void leave(Statement *statement);
  void wake_all();

  /** Bytes that running statements, and those that ended since the last
  refresh, were still expected to take. */
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
  void set_need(Statement *statement) const;
  bool has_room(const Statement &statement) const;
  bool is_minor(const Statement &statement) const;
  bool nobody_overtakes(const Statement &first, uint64_t now_us) const;

  void (*const m_wake)(Statement *);
  List m_running;
  List m_waiting;
  Figures m_figures{};
  Reading m_refreshed_us;
  Reading m_purged_us;
  /** Bytes that m_running is still expected to take. */
  uint64_t m_expected_bytes{0};
  /** The same of statements that have ended since the last refresh. */
  uint64_t m_ended_bytes{0};
  /** Bytes that m_running held at the last refresh. */
  uint64_t m_held_bytes{0};
  /** Something has changed since then. */
  bool m_changed{false};
  /** An unknown statement has run since then although it did not fit. */
  bool m_unknown_ran{false};
};

}  // namespace memdiag::admission

#endif  // MEMDIAG_ADMISSION_GATE_H
