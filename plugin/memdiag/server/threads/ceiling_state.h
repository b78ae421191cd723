/*
  What the parts of the ceiling share: the statements that wait and run, and the
  log. ceiling.cc switches the ceiling, ceiling_gate.cc is what statements pass,
  ceiling_owner.cc answers the sensor, and ceiling_giver.cc gives memory back.

  Threads: any. Locks: State::mutex protects the lists and the log;
  State::round is held during a round of the giver. A thread may take the mutex
  while it holds `round`, and not the other way round.
  Ownership: a Running lives in its thread. The state is never destroyed:
  sessions may ask while the process exits.
*/

#ifndef MEMDIAG_CEILING_STATE_H
#define MEMDIAG_CEILING_STATE_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "mysql/psi/mysql_cond.h"
#include "mysql/psi/mysql_mutex.h"
#include "mysys/memdiag/accounting/digests.h"
#include "mysys/memdiag/accounting/statement_gate.h"
#include "mysys/memdiag/base/clock.h"
#include "mysys/memdiag/base/worker.h"
#include "mysys/memdiag/ceiling/sensor.h"
#include "plugin/memdiag/ceiling/ceiling_log.h"
#include "plugin/memdiag/ceiling/giving.h"
#include "plugin/memdiag/ceiling/target.h"
#include "plugin/memdiag/host/kept_reader.h"
#include "plugin/memdiag/host/limit_reader.h"

class THD;

namespace memdiag::ceiling {

/** A statement that waits at the gate, or runs. */
struct Running {
  /** Only the event's own thread reads it of an event: the session ends before
  the thread does, and no hook is between. */
  THD *thd{nullptr};
  /** It stands for an event of the event scheduler, with all statements. */
  bool of_event{false};
  /** State::list() sets it. */
  uint32_t session_id{0};
  sessions::Digest digest{};
  /** The ceiling remembers peaks by this hash, of a digest or of the name of an
  event. 0: the statement has no digest. */
  uint64_t hash{0};
  /** nullptr: none has begun, or it is exempt. */
  Taker *taker{nullptr};
  bool may_end{false};
  /** Its session may keep what it takes; see exempt::may_keep(). */
  bool may_keep{false};
  /** See exempt::takes_little(). */
  bool takes_little{false};
  /** See exempt::may_be_logged_as_text(). Such a statement ends only while it
  waits: then the thread has just said whether it changes a table without
  transactions, or is about to. */
  bool logged_as_text{false};
  std::atomic<bool> changes_for_good{false};
  /** It has less memory for what it can write to disk. */
  std::atomic<bool> spills{false};
  /** It began as a small one, and nothing is known of its digest. */
  bool guessed{false};
  /** Of those in the list; see Candidate. */
  uint64_t number{0};
  /** It is in the list of those that run. */
  bool listed{false};
  /** At the gate, where it was listed already. No other waits for it. */
  bool waits_to_keep{false};
  /** Its digest told so when it began, or nothing was known of it. */
  bool expects_much{false};
  /** KILL ends it. Before, it is parsed, and told_to_end is enough: the parser
  would answer KILL with an error of its own. */
  std::atomic<bool> passed_gate{false};
  /** Set before Taker::told_to_end. */
  uint64_t target_bytes{0};
  uint64_t grown_bytes{0};
  size_t of_statements{0};
  Running *previous{nullptr};
  Running *next{nullptr};

  /** A small one that sleeps, as for a lock, is none that others wait for.
  It is in the list, and the caller holds the mutex. */
  bool may_take_much() const {
    return expects_much || of_event ||
           taker->waits.load(std::memory_order_relaxed) ||
           taker->wants_bytes() >= small_bytes;
  }
};

struct List {
  void append(Running *each) {
    each->next = nullptr;
    each->previous = last;
    (last != nullptr ? last->next : first) = each;
    last = each;
    ++count;
    if (first_of_others == nullptr && !each->may_keep) first_of_others = each;
  }
  void remove(Running *each) {
    if (each == first_of_others) {
      Running *other = each->next;
      while (other != nullptr && other->may_keep) other = other->next;
      first_of_others = other;
    }
    (each->next != nullptr ? each->next->previous : last) = each->previous;
    (each->previous != nullptr ? each->previous->next : first) = each->next;
    each->next = each->previous = nullptr;
    --count;
  }
  Running *first{nullptr};
  /** The first one that keeps nothing, as of its append(). Each that waits asks
  for it fifty times a second, and a thousand others may be before it. */
  Running *first_of_others{nullptr};
  Running *last{nullptr};
  size_t count{0};
};

struct State {
  State() {
    mysql_mutex_init(PSI_NOT_INSTRUMENTED, &mutex, MY_MUTEX_INIT_FAST);
    mysql_cond_init(PSI_NOT_INSTRUMENTED, &changed);
  }

  /** The giver knows the statement from here on. Caller holds the mutex. */
  void list(Running *mine);

  mysql_mutex_t mutex;
  /** A round has ended, or a statement. */
  mysql_cond_t changed;
  List waiting;
  /** Statements that are large, or that began when room was short; events. */
  List running;
  uint64_t last_number{0};
  Pace pace;
  Small_pace small_pace;
  Log log;

  /** Statements that begin spill what they can (Giving), and sessions drop the
  stored programs that they keep. */
  std::atomic<bool> spills{false};
  Guess guess;
  /** waiting.count, for those that do not hold the mutex. */
  std::atomic<size_t> waiters{0};
  /** When the last round ended. */
  std::atomic<uint64_t> round_us{0};
  std::atomic<int64_t> average_bytes{4 << 20};
  /** Taken by the running statements, as of the last round at red. 0: the level
  was not red. */
  std::atomic<int64_t> running_bytes{0};

  /** So many threads wait for `round`, and none begins one meanwhile. Rounds
  follow each other so closely that a thread that sleeps for the mutex would
  wait for seconds on a busy machine. */
  std::atomic<unsigned> round_wanted{0};
  /** Protects all below. */
  std::mutex round;
  Giving giving;
  host::Limit_reader limits{{}, host::Limits::kill_or_throttle};
  host::Kept_reader kept;
  /** @name Protected by the reading (account.h) @{ */
  uint64_t statements{0};
  /** 0: it is not the limit of a control group that counts. */
  uint64_t limit_bytes{0};
  /** @} */
  /** The limit of a control group counts, not the target in bytes. */
  bool of_group{false};
  std::string kept_file;
  std::optional<uint64_t> limits_us;
  /** The server needed so much at rest, and the administrator's target had no
  room for that and the reserve. Empty: it had. */
  Reading need_beyond_target{};
  /** The thread that holds `round` uses it. */
  Floor floor;
  uint64_t watched_us{0};
  uint64_t woken_us{0};
  /** The time of the round that saw first that the server shuts down. */
  std::optional<uint64_t> shutdown_us;
  /** A statement was told to end, and has not ended. */
  bool kills_due{false};
  bool said_unknown{false};
  /** The error log says that no memory of the buffer pool goes back. */
  bool said_frames_stay{false};
  /** Statements pass the gate, and threads are charged. */
  bool at_work{false};
  /** Set before the first round. */
  const Owner *owner{nullptr};
  const statement_gate::Gate *gate{nullptr};
  Worker worker;
};

State &state();
/** What statements of a digest took. */
inline constinit Peaks peaks;

/** Holds State::round, before other rounds. */
class Between_rounds {
 public:
  explicit Between_rounds(State *self) : m_self(self) {
    self->round_wanted.fetch_add(1);
    self->round.lock();
    self->round_wanted.fetch_sub(1);
  }
  ~Between_rounds() { m_self->round.unlock(); }
  Between_rounds(const Between_rounds &) = delete;
  Between_rounds &operator=(const Between_rounds &) = delete;

 private:
  State *const m_self;
};

extern std::atomic<bool> started;
/** memdiag_memory_wait_ms. The server writes it under its own lock. */
extern unsigned wait_ms;
inline uint64_t wait_us() {
  return uint64_t{__atomic_load_n(&wait_ms, __ATOMIC_RELAXED)} * 1000;
}
/** The mode and the bytes of the target. */
extern std::atomic<Target::Mode> mode;
extern std::atomic<uint64_t> wanted_bytes;

/** False: WATCH, or OFF. */
inline bool acts() {
  const Target::Mode now = mode.load(std::memory_order_relaxed);
  return now == Target::automatic || now == Target::bytes;
}

inline uint64_t monotonic_us() { return clock_us(CLOCK_MONOTONIC); }

/** Ends a statement that has passed the gate. The caller is its thread, or
holds the mutex while the statement is in the list.
@return false: LOCK_thd_data is taken. Its thread may hold it, and wait for
memory or for the mutex */
bool kill(Running *running);

/** An action begins. */
Done begun(Action action);
void finish(Done *done, uint64_t since_us, uint64_t bytes);
/** Caller does not hold the mutex. */
void note(const Done &done);

/** @name The gate @{ */
/** What statements pass while there is a target. */
extern const statement_gate::Gate gate;
/** Performance Schema shows those that wait at the gate. Before any waits. */
void register_stage();
/** @} */

/** @name For Owner @{ */
bool is_large();
int client_is_idle();
bool new_session();
bool is_parsing();
bool is_in_parser();
bool never_waits();
Replica_block replica_block(pools::Account account);
bool text_comes();
bool goes_on();
bool has_account();
bool nobody_waits();
bool leaves_lock();
void takes_lock();
bool is_killed();
bool keeps_value();
uint64_t drops_of_values();
bool is_executing();
bool writes_for_good();
bool is_before_parser();
bool ends_at_once();
const void *transaction();
bool must_succeed();
bool holds_lock();
bool breaks_off();
bool gives_up();
void refused(uint64_t waited_us);
void went_on(uint64_t waited_us, int64_t left_before_bytes);
/** @} */

/** @name The giver @{ */
/** For Owner. */
void call_giver();
/** One round, unless another thread is at one.
@return true: another round is worth its while now */
bool round(State *self);
/** The giver's thread. */
void run(Worker *worker);
/** Reads the limits and the kernel's figure now. Caller holds State::round.
@throws std::bad_alloc */
void look_at_limits(State *self);
/** Without a limit nothing is charged, and no statement asks. Caller holds
State::round. @return 0, or an errno: nothing was done */
int set_at_work(State *self, bool at_work);
/** All parked frames go back. Caller holds State::round. */
void give_all_back();
/** @} */

}  // namespace memdiag::ceiling

#endif  // MEMDIAG_CEILING_STATE_H
