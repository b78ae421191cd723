#include "plugin/memdiag/server/threads/ceiling.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <new>
#include <optional>
#include <string>

#include "my_sys.h"
#include "my_systime.h"
#include "my_thread.h"
#include "mysql/psi/mysql_cond.h"
#include "mysql/psi/mysql_mutex.h"
#include "mysqld_error.h"
#include "mysys/memdiag/accounting/statement_gate.h"
#include "mysys/memdiag/base/clock.h"
#include "mysys/memdiag/base/worker.h"
#include "mysys/memdiag/ceiling/sensor.h"
#include "mysys/memdiag/pools/pools.h"
#include "mysys/memdiag/purging/purge.h"
#include "plugin/memdiag/base/reason.h"
#include "plugin/memdiag/ceiling/giving.h"
#include "plugin/memdiag/ceiling/target.h"
#include "plugin/memdiag/host/kept_reader.h"
#include "plugin/memdiag/host/limit_reader.h"
#include "plugin/memdiag/server/bridge/error_log.h"
#include "plugin/memdiag/server/threads/admission.h"
#include "plugin/memdiag/server/threads/exempt.h"
#include "sql/error_handler.h"
#include "sql/mysqld.h"
#include "sql/sql_base.h"
#include "sql/sql_class.h"
#include "sql/sql_lex.h"
#include "storage/innobase/memdiag/balloon.h"
#include "storage/innobase/memdiag/innodb.h"

namespace memdiag::ceiling {

char *wish = nullptr;

namespace {

constexpr uint64_t limits_age_us = 1'000'000;
/** A waiting statement looks again after so long, without a round. */
constexpr uint64_t gate_look_us = 20'000;
/** A table's full-text cache with less is not worth writing. */
constexpr uint64_t worth_writing_bytes = 64 << 10;
constexpr uint64_t watch_row_us = 1'000'000;

uint64_t monotonic_us() { return clock_us(CLOCK_MONOTONIC); }

/** Puts the ceiling's error in the place of KILL's. */
class Told_to_end final : public Internal_error_handler {
 public:
  bool handle_condition(THD *, uint error, const char *,
                        Sql_condition::enum_severity_level *level,
                        const char *) override;
};

/** A statement that waits or runs. It lives in its thread. */
struct Running {
  THD *thd{nullptr};
  sessions::Digest digest{};
  Taker *taker{nullptr};
  bool may_end{false};
  bool runs{false};
  /** Set before Taker::told_to_end. */
  uint64_t target_bytes{0};
  uint64_t grown_bytes{0};
  size_t of_statements{0};
  Told_to_end handler;
  Running *previous{nullptr};
  Running *next{nullptr};
};

Running &running_of_thread() {
  thread_local Running mine;
  return mine;
}

struct List {
  void append(Running *each) {
    each->next = nullptr;
    each->previous = last;
    (last != nullptr ? last->next : first) = each;
    last = each;
    ++count;
  }
  void remove(Running *each) {
    (each->next != nullptr ? each->next->previous : last) = each->previous;
    (each->previous != nullptr ? each->previous->next : first) = each->next;
    each->next = each->previous = nullptr;
    --count;
  }
  Running *first{nullptr};
  Running *last{nullptr};
  size_t count{0};
};

/** Never destroyed: sessions may ask while the process exits. */
struct State {
  State() {
    mysql_mutex_init(PSI_NOT_INSTRUMENTED, &mutex, MY_MUTEX_INIT_FAST);
    mysql_cond_init(PSI_NOT_INSTRUMENTED, &changed);
  }

  /** Protects the lists and the log. */
  mysql_mutex_t mutex;
  /** A round has ended, or a statement. */
  mysql_cond_t changed;
  List waiting;
  List running;
  Log log;
  std::atomic<int64_t> average_bytes{4 << 20};
  Small_digests small;

  /** Held during a round: protects all below. */
  std::mutex round;
  Giving giving;
  host::Limit_reader limits;
  host::Kept_reader kept;
  std::string kept_file;
  std::optional<uint64_t> limits_us;
  uint64_t watched_us{0};
  bool said_unknown{false};
  Worker worker;
};

State &state() {
  static State *const instance = new State;
  return *instance;
}

constinit std::atomic<bool> started{false};
/** The mode and the bytes of the target. */
constinit std::atomic<Target::Mode> mode{Target::off};
constinit std::atomic<uint64_t> wanted_bytes{0};
constinit std::atomic<bool> giver_is_called{false};

bool acts() {
  const Target::Mode now = mode.load(std::memory_order_relaxed);
  return now == Target::automatic || now == Target::bytes;
}

class Locked {
 public:
  explicit Locked(State *state) : m_state(state) {
    mysql_mutex_lock(&m_state->mutex);
  }
  ~Locked() { mysql_mutex_unlock(&m_state->mutex); }
  Locked(const Locked &) = delete;
  Locked &operator=(const Locked &) = delete;

 private:
  State *const m_state;
};

/** Called within malloc(). */
void call_giver() {
  if (!giver_is_called.exchange(true, std::memory_order_relaxed))
    state().worker.wake();
}

/** Called within malloc(). */
bool read_kept(int64_t *bytes) {
  const Reading kept = state().kept.read(
      monotonic_us(), static_cast<uint64_t>(account.marks().plenty_bytes) / 4);
  if (!kept) return false;
  *bytes = static_cast<int64_t>(*kept);
  return true;
}

uint64_t hash_of(const sessions::Digest &digest) {
  uint64_t hash;
  memcpy(&hash, digest.data(), sizeof hash);
  return hash;
}

// The log.

/** Caller does not hold the mutex. */
void note(const Done &done) {
  const Locked locked(&state());
  state().log.add(done);
}

Done begun(Action action) {
  return {clock_us(CLOCK_REALTIME), action, acts(),         0, {}, 0, 0,
          account.left_bytes(),     0,      account.level()};
}

void finish(Done *done, uint64_t since_us, uint64_t bytes) {
  done->bytes = bytes;
  done->duration_us = monotonic_us() - since_us;
  done->left_after_bytes = account.left_bytes();
}

// The giver.

void say_unknown(State *self, bool unknown, const char *why) {
  if (unknown == self->said_unknown) return;
  self->said_unknown = unknown;
  if (unknown)
    error_log::warn(std::string("the ceiling does nothing now: ") + why +
                    " (memdiag_memory_target)");
  else
    error_log::note("the ceiling is at work (memdiag_memory_target)");
}

/** The files of another group, or of the process. Caller holds `round`. */
void read_from(State *self, const std::string &usage_file,
               const std::string &folder) {
  if (self->kept_file == usage_file) return;
  account.hold_reading();
  const bool of_process = folder.empty();
  const int version = usage_file.ends_with("memory.usage_in_bytes") ? 1 : 2;
  const int error =
      of_process
          ? self->kept.open_process(usage_file)
          : self->kept.open_group(usage_file, folder + "/memory.stat", version);
  if (error != 0) self->kept.close_all();
  account.let_reading_go();
  self->kept_file = error == 0 ? usage_file : "";
}

/** Caller holds `round`. @throws std::bad_alloc */
void refresh_limits(State *self, uint64_t now_us) {
  if (self->limits_us && now_us - *self->limits_us < limits_age_us &&
      !self->kept_file.empty())
    return;
  self->limits_us = now_us;
  size_t statements;
  {
    const Locked locked(self);
    statements = self->running.count;
  }
  const host::Limit_figures figures = self->limits.read(now_us);
  const bool has_group =
      figures.group_limit_bytes && !figures.usage_file.empty();
  const bool has_bytes = mode.load() == Target::bytes;
  const uint64_t bytes = wanted_bytes.load();
  std::optional<Marks> marks;
  bool of_group = false;
  if (has_group) {
    const Marks of_limit =
        marks_of_limit(*figures.group_limit_bytes, statements);
    if (!has_bytes || static_cast<uint64_t>(of_limit.target_bytes) <= bytes) {
      marks = of_limit;
      of_group = true;
    }
  }
  if (!marks && has_bytes) marks = marks_of_target(bytes, statements);
  if (!marks) {
    account.set_reader(nullptr);
    self->kept_file.clear();
    say_unknown(self, true, "no control group has a memory limit");
    return;
  }
  account.set_marks(*marks);
  tokens.set_all(marks->reserve_bytes);
  if (of_group)
    read_from(self, figures.usage_file, figures.folder);
  else
    read_from(self, "/proc/self/statm", "");
  account.set_reader(read_kept);
}

std::array<uint64_t, pool_count> unused_bytes(uint64_t *sum) {
  std::array<uint64_t, pool_count> bytes;
  *sum = 0;
  for (size_t i = 0; i < pool_count; ++i) {
    const Result<uint64_t> dirty = purging::dirty_bytes(static_cast<Pool>(i));
    bytes[i] = dirty ? dirty.value() : 0;
    *sum += bytes[i];
  }
  return bytes;
}

uint64_t purge(const std::array<uint64_t, pool_count> &unused) {
  uint64_t purged = 0;
  for (size_t i = 0; i < pool_count; ++i) {
    if (unused[i] < worth_purging_bytes) continue;
    (void)purging::purge(static_cast<Pool>(i), Purge_reason::pressure);
    purged += unused[i];
  }
  return purged;
}

void note_parked_total() {
  counters.parked_bytes.store(balloon::parked_bytes(),
                              std::memory_order_relaxed);
}

/** @return false: no statement may be told to end */
bool end_one(State *self) {
  const uint64_t began_us = monotonic_us();
  Done done = begun(Action::end);
  const Locked locked(self);
  Running *most = nullptr;
  Candidate candidate_of_most{};
  for (Running *each = self->running.first; each != nullptr;
       each = each->next) {
    const Candidate candidate{
        each->taker->grown_bytes.load(std::memory_order_relaxed), each->may_end,
        each->taker->told_to_end.load() ||
            each->thd->killed != THD::NOT_KILLED};
    if (!ends_rather(candidate, most == nullptr ? nullptr : &candidate_of_most))
      continue;
    most = each;
    candidate_of_most = candidate;
  }
  if (most == nullptr) return false;
  most->target_bytes = static_cast<uint64_t>(account.marks().target_bytes);
  most->grown_bytes = static_cast<uint64_t>(candidate_of_most.grown_bytes);
  most->of_statements = self->running.count;
  most->taker->told_to_end.store(true, std::memory_order_release);
  mysql_mutex_lock(&most->thd->LOCK_thd_data);
  if (most->thd->killed == THD::NOT_KILLED) most->thd->awake(THD::KILL_QUERY);
  mysql_mutex_unlock(&most->thd->LOCK_thd_data);
  done.processlist_id = most->thd->thread_id();
  done.digest = most->digest;
  finish(&done, began_us, most->grown_bytes);
  self->log.add(done);
  counters.ended.fetch_add(1);
  return true;
}

/** In WATCH a step is noted once a second. */
void note_only(State *self, Action action, uint64_t bytes, uint64_t now_us) {
  if (now_us - self->watched_us < watch_row_us) return;
  self->watched_us = now_us;
  Done done = begun(action);
  finish(&done, now_us, bytes);
  note(done);
}

/** Caller holds `round`. @return true: another round is worth its while now */
bool take_step(State *self, uint64_t now_us) {
  const bool caches = get_server_state() == SERVER_OPERATING;
  const balloon::State works = balloon::state();
  if (works == balloon::State::resizing && balloon::parked_bytes() != 0) {
    Done done = begun(Action::give_back);
    finish(&done, now_us, balloon::give_back(UINT64_MAX));
    note_parked_total();
    note(done);
  }
  Situation now{account.level(),
                account.left_bytes(),
                account.marks(),
                0,
                locked_in_memory ? 0 : balloon::parkable_bytes(),
                balloon::parked_bytes(),
                caches};
  std::array<uint64_t, pool_count> unused{};
  if (now.left_bytes < now.marks.plenty_bytes * 5 / 4)
    unused = unused_bytes(&now.unused_bytes);
  const Next next = self->giving.next(now, now_us);
  constexpr Action actions[] = {Action::wait, Action::purge,
                                Action::park, Action::caches,
                                Action::end,  Action::give_back};
  const Action action = actions[static_cast<size_t>(next.step)];
  if (next.step == Step::none) return false;
  if (!acts() && next.step != Step::give_back_frames) {
    note_only(self, action, next.bytes, now_us);
    return false;
  }
  if (next.step == Step::end_statement) {
    self->giving.note_ended(now_us);
    return end_one(self);
  }
  Done done = begun(action);
  uint64_t bytes = 0;
  switch (next.step) {
    case Step::purge:
      bytes = purge(unused);
      break;
    case Step::park:
      bytes = balloon::park(next.bytes);
      self->giving.note_parked(next.bytes, bytes, now_us);
      break;
    case Step::give_back_frames:
      bytes = balloon::give_back(next.bytes);
      break;
    case Step::shrink_caches:
      bytes = innodb::write_full_text_caches(worth_writing_bytes).value_or(0);
      tdc_flush_unused_tables();
      break;
    case Step::none:
    case Step::end_statement:
      break;
  }
  note_parked_total();
  (void)account.read(monotonic_us());
  if (bytes == 0) return false;
  finish(&done, now_us, bytes);
  note(done);
  return next.step != Step::give_back_frames;
}

/** @return true: another round is worth its while now */
bool round(State *self) {
  const std::unique_lock<std::mutex> lock(self->round, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  bool again = false;
  try {
    const uint64_t now_us = monotonic_us();
    refresh_limits(self, now_us);
    if (account.read(now_us))
      say_unknown(self, false, "");
    else if (account.level() == Level::unknown)
      say_unknown(self, true, "the kernel's figures cannot be read");
    let_threads_ask(acts() && account.level() >= Level::yellow);
    again = take_step(self, now_us);
  } catch (const std::bad_alloc &) {
    // The next round tries again.
  }
  rounds.end_one();
  mysql_mutex_lock(&self->mutex);
  mysql_cond_broadcast(&self->changed);
  mysql_mutex_unlock(&self->mutex);
  return again;
}

void run(Worker *worker) {
  my_thread_init();
  State &self = state();
  uint64_t wait_ms = 0;
  do {
    giver_is_called.store(false, std::memory_order_relaxed);
    if (mode.load() == Target::off) {
      const std::lock_guard<std::mutex> guard(self.round);
      // A round that had begun before may have let them.
      let_threads_ask(false);
      (void)balloon::give_back(UINT64_MAX);
      note_parked_total();
      wait_ms = 0;
      continue;
    }
    // Rounds without a pause would starve those that hold the lists' mutexes.
    for (int i = 0; i < 64 && round(&self); ++i) {
    }
    wait_ms = account.level() == Level::unknown
                  ? limits_age_us / 1000
                  : next_look_us(account.left_bytes(), account.marks()) / 1000;
    if (wait_ms == 0) wait_ms = 1;
  } while (worker->wait_ms(wait_ms));
  my_thread_end();
}

// The gate.

PSI_stage_info waits_for_room = {
    0, "Waiting for memory (memdiag_memory_target)", 0, ""};

bool Told_to_end::handle_condition(THD *, uint error, const char *,
                                   Sql_condition::enum_severity_level *level,
                                   const char *) {
  const Running &mine = running_of_thread();
  if (error != ER_QUERY_INTERRUPTED || *level != Sql_condition::SL_ERROR ||
      mine.taker == nullptr ||
      !mine.taker->told_to_end.load(std::memory_order_acquire))
    return false;
  try {
    my_printf_error(
        ER_CAPACITY_EXCEEDED, "%s", MYF(ME_FATALERROR),
        text_of_end(mine.target_bytes, mine.grown_bytes, mine.of_statements)
            .c_str());
  } catch (const std::bad_alloc &) {
    return false;
  }
  return true;
}

/** Caller holds the mutex, which is free meanwhile. */
void wait_at_gate(State *self, THD *thd) {
  timespec until;
  set_timespec_nsec(&until, gate_look_us * 1000);
  PSI_stage_info old_stage;
  thd->ENTER_COND(&self->changed, &self->mutex, &waits_for_room, &old_stage);
  thd_wait_begin(thd, THD_WAIT_SLEEP);
  if (!thd->killed)
    (void)mysql_cond_timedwait(&self->changed, &self->mutex, &until);
  thd_wait_end(thd);
  mysql_mutex_unlock(&self->mutex);
  thd->EXIT_COND(&old_stage);
  // Helping needs no mutex of the gate.
  (void)round(self);
  mysql_mutex_lock(&self->mutex);
}

bool has_room(int64_t promised_bytes) {
  return account.level() == Level::unknown ||
         account.left_bytes() - promised_bytes >= account.marks().plenty_bytes;
}

/** Caller holds the mutex. @return true: the statement must not begin */
bool waits_in_vain(State *self, Running *mine, int64_t promised_bytes,
                   uint64_t began_us, bool *waited) {
  THD *const thd = mine->thd;
  const uint64_t longest_us =
      uint64_t{__atomic_load_n(&admission::wait_ms, __ATOMIC_RELAXED)} * 1000;
  self->waiting.append(mine);
  bool in_vain = false;
  for (;;) {
    const bool first = self->waiting.first == mine;
    if (first && (self->running.count == 0 || has_room(promised_bytes))) break;
    if (mode.load() == Target::off || !started) break;
    *waited = true;
    if (!acts()) break;
    in_vain = thd->killed || monotonic_us() - began_us >= longest_us;
    if (in_vain) break;
    wait_at_gate(self, thd);
  }
  self->waiting.remove(mine);
  mysql_cond_broadcast(&self->changed);
  return in_vain;
}

/** The thread's statement was let through. */
void note_let_through();

bool refuses(void *session, const sessions::Digest &digest) {
  auto *const thd = static_cast<THD *>(session);
  if (exempt::never_waits(thd)) return false;
  State &self = state();
  Running &mine = running_of_thread();
  mine.thd = thd;
  mine.digest = digest;
  mine.taker = nullptr;
  mine.may_end = exempt::may_end(thd->lex->sql_command);
  const int64_t promised = self.small.is_small(hash_of(digest))
                               ? 0
                               : promise_of_beginner(self.average_bytes.load(
                                     std::memory_order_relaxed));
  const uint64_t began_us = monotonic_us();
  Done done = begun(Action::wait);
  bool waited = false;
  bool in_vain = false;
  {
    const Locked locked(&self);
    if (!exempt::holds_what_others_wait_for(thd))
      in_vain = waits_in_vain(&self, &mine, promised, began_us, &waited);
    if (!in_vain) {
      mine.taker = begin(promised);
      self.running.append(&mine);
    }
    if (waited) {
      done.processlist_id = thd->thread_id();
      done.digest = digest;
      if (in_vain && !thd->killed) done.action = Action::refuse;
      finish(&done, began_us, static_cast<uint64_t>(promised));
      self.log.add(done);
    }
  }
  if (!in_vain) {
    thd->push_internal_handler(&mine.handler);
    note_let_through();
    return false;
  }
  if (thd->killed) {
    thd->send_kill_message();
    return true;
  }
  counters.refused.fetch_add(1);
  try {
    my_printf_error(ER_CAPACITY_EXCEEDED, "%s", MYF(0),
                    text_of_refusal(monotonic_us() - began_us).c_str());
  } catch (const std::bad_alloc &) {
    my_error(ER_OUT_OF_RESOURCES, MYF(0));
  }
  return true;
}

/** A statement that was let through has ended. */
void leave() {
  State &self = state();
  Running &mine = running_of_thread();
  THD *const thd = mine.thd;
  const int64_t grown = mine.taker->grown_bytes.load(std::memory_order_relaxed);
  {
    const Locked locked(&self);
    self.running.remove(&mine);
    mysql_cond_broadcast(&self.changed);
  }
  // From here on the giver does not know it.
  if (thd->get_internal_handler() == &mine.handler) thd->pop_internal_handler();
  if (mine.taker->told_to_end.load(std::memory_order_acquire)) {
    // It may have ended before it saw that it was to end. The next statement
    // must not end in its place.
    mysql_mutex_lock(&thd->LOCK_thd_data);
    if (thd->killed == THD::KILL_QUERY) thd->killed = THD::NOT_KILLED;
    mysql_mutex_unlock(&thd->LOCK_thd_data);
  }
  mine.taker = nullptr;
  end();
  self.small.note(hash_of(mine.digest), grown);
  // Two threads may lose one statement of the average.
  self.average_bytes.store(
      next_average(self.average_bytes.load(std::memory_order_relaxed), grown),
      std::memory_order_relaxed);
}

constexpr statement_gate::Gate gate{refuses, leave};

void note_let_through() { statement_gate::note_below_ceiling(&gate); }

void warn_of_balloon() {
  if (locked_in_memory || balloon::state() == balloon::State::large_pages)
    error_log::warn(
        "the ceiling gives no memory of the buffer pool back: it is locked in "
        "memory or in large pages (memdiag_memory_target)");
  else if (balloon::state() == balloon::State::small_frames)
    error_log::warn(
        "the ceiling gives no memory of the buffer pool back: a page of the "
        "system is larger than innodb_page_size (memdiag_memory_target)");
}

}  // namespace

bool is_target(std::string_view text) { return parse_target(text).has_value(); }

void start() {
  started = true;
  const std::string_view text = wish == nullptr ? "" : wish;
  if (!is_target(text)) {
    error_log::warn(
        "memdiag_memory_target stays OFF: it is neither OFF, "
        "WATCH, AUTO nor a number of bytes from 16M on");
    return;
  }
  if (const int error = changed(text); error != 0)
    error_log::warn("memdiag_memory_target stays OFF (" + reason(error) + ")");
}

int changed(std::string_view text) {
  const std::optional<Target> target = parse_target(text);
  if (!started || !target) return 0;
  if (target->mode == Target::off && mode.load() == Target::off) return 0;
  State &self = state();
  wanted_bytes.store(target->target_bytes);
  if (target->mode == Target::off) {
    statement_gate::set_ceiling(nullptr);
    mode.store(Target::off);
    switch_off();
    self.worker.wake();
    return 0;
  }
  if (mode.load() == Target::off) {
    if (const int error = switch_on(call_giver); error != 0) return error;
    const int error = self.worker.start("memdiag_ceiling", run);
    if (error != 0 && error != EALREADY) {
      switch_off();
      return error;
    }
    warn_of_balloon();
  }
  mode.store(target->mode);
  statement_gate::set_ceiling(&gate);
  self.worker.wake();
  return 0;
}

void stop() {
  if (!started.exchange(false)) return;
  if (mode.exchange(Target::off) == Target::off && balloon::parked_bytes() == 0)
    return;
  State &self = state();
  statement_gate::set_ceiling(nullptr);
  switch_off();
  self.worker.stop();
  const std::lock_guard<std::mutex> guard(self.round);
  (void)balloon::give_back(UINT64_MAX);
  note_parked_total();
}

std::vector<Row> actions() {
  const Locked locked(&state());
  return state().log.rows();
}

}  // namespace memdiag::ceiling
