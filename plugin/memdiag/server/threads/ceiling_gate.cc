#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "mutex_lock.h"
#include "my_systime.h"
#include "mysql/psi/mysql_stage.h"
#include "mysqld_error.h"
#include "mysys/memdiag/upstream/scope_hooks.h"
#include "plugin/memdiag/server/threads/ceiling_state.h"
#include "plugin/memdiag/server/threads/ceiling_statement.h"
#include "plugin/memdiag/server/threads/exempt.h"
#include "plugin/memdiag/server/threads/kept_programs.h"
#include "sql/sp_head.h"
#include "sql/sp_rcontext.h"
#include "sql/sql_class.h"
#include "sql/sql_lex.h"

namespace memdiag::ceiling {

namespace {

/** A waiting statement looks again after so long, without a round. */
constexpr uint64_t gate_look_us = 20'000;
/** The text of a statement that takes little to parse. */
constexpr size_t short_text_bytes = 64 << 10;
/** A shorter wait of a small statement is in no row. */
constexpr uint64_t worth_a_row_us = 1'000'000;
/** It takes a step itself when there was no round for so long. */
constexpr uint64_t help_after_us = 5'000;

PSI_stage_info waits_for_room = {
    0, "Waiting for memory (memdiag_memory_target)", 0, ""};

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
  if (self->spills.load(std::memory_order_relaxed))
    (void)kept_programs::drop(thd);
  // The giver may be starved of the CPU. Helping needs no mutex of the gate.
  if (monotonic_us() >=
      self->round_us.load(std::memory_order_relaxed) + help_after_us) {
    // An event asks again while it runs, and its thread waits for memory then.
    const No_wait step;
    (void)round(self);
  }
  mysql_mutex_lock(&self->mutex);
}

/** A table that a statement names is opened for this name alone. With a handle
of Performance Schema's it takes 60 to 110 KB (bench/per_object.py). */
constexpr int64_t open_table_bytes = 64 << 10;

/** What the statement will take, as far as its digest tells. */
struct Expectation {
  int64_t bytes;
  bool known;
};

/** Such statements come by the thousand. A row for each would leave the log
with nothing else. */
bool is_known_small(const Expectation &expected) {
  return expected.bytes == 0 && expected.known;
}

/** So much for the tables that it names, up to the most. */
int64_t bytes_of_tables(const THD *thd, int64_t most_bytes) {
  int64_t bytes = 0;
  for (const Table_ref *table = thd->lex->query_tables;
       table != nullptr && bytes < most_bytes; table = table->next_global)
    bytes += open_table_bytes;
  return bytes;
}

Expectation expectation_of(State *self, const Running &running) {
  if (running.takes_little) return {0, true};
  const uint64_t hash = running.hash;
  const std::optional<int64_t> peak =
      peaks.expected_bytes(hash, self->spills.load(std::memory_order_relaxed));
  THD *const thd = running.thd;
  if (!peak && exempt::deletes_all(thd)) return {0, true};
  // SELECT 1, SET and an INSERT of short values are small, unless there is room
  // to see what they take.
  const auto guess_is_small = [&] {
    const bool sets_system_variables =
        thd->lex->sql_command == SQLCOM_SET_OPTION && !running.may_keep;
    return account.left_for_beginners_bytes() <
               2 * account.marks().plenty_bytes &&
           (sets_system_variables || self->guess.is_small(monotonic_us()));
  };
  const auto is_short = [thd] {
    return thd->lex->query_tables == nullptr
               ? thd->query().length < short_text_bytes
               : exempt::inserts_little(thd);
  };
  const bool is_known = hash == 0 && thd->lex->query_tables == nullptr;
  if (!peak && is_short() && (is_known || guess_is_small()))
    return {0, is_known};
  const int64_t plenty = account.marks().plenty_bytes;
  const int64_t expected = expected_of_beginner(
      hash != 0, peak, self->average_bytes.load(std::memory_order_relaxed),
      plenty);
  const int64_t tables = peak ? 0 : bytes_of_tables(thd, 4 * plenty);
  // A crowd that names thousands of tables would open them before the first
  // one shows what they take.
  if (tables > plenty) return {std::max(expected, tables), true};
  return {expected, hash == 0 || peak.has_value()};
}

/** Caller holds the mutex if the statement has waited.
@param waited_us  so long */
bool has_room(State *self, const Running &running, const Expectation &expected,
              uint64_t waited_us, uint64_t now_us) {
  if (account.level() == Level::unknown) return true;
  const Marks marks = account.marks();
  if (expected.bytes == 0)
    return self->small_pace.may_begin(
        {.left_bytes = account.left_bytes(),
         .reserve_bytes = marks.reserve_bytes,
         .beyond_bytes = marks.beyond_bytes,
         .running_bytes = self->running_bytes.load(std::memory_order_relaxed),
         .waited_us = waited_us,
         .known = expected.known,
         .may_keep = running.may_keep,
         .holds = exempt::holds_what_others_wait_for(running.thd)},
        now_us);
  return account.left_for_beginners_bytes() - expected.bytes >=
         (waited_us < patient_us ? marks.plenty_bytes : marks.reserve_bytes);
}

/** No room is left for statements that may keep what they take. */
bool room_is_used_up(const State &self) {
  if (account.level() == Level::unknown) return false;
  const Marks marks = account.marks();
  return Room_to_keep{account.left_bytes(), marks.reserve_bytes,
                      marks.beyond_bytes,
                      self.running_bytes.load(std::memory_order_relaxed)}
      .is_used_up();
}

bool would_keep_too_much(const State &self, const Running &running) {
  return running.may_keep && room_is_used_up(self);
}

/** It does not keep too much, and each one before it in the list would: such a
one does not begin although nothing runs, and keeps no other from beginning.
Caller holds the mutex, and the statement is in the list. */
bool is_in_turn(const State &self, const Running *mine) {
  const List &waiting = self.waiting;
  return mine ==
         (room_is_used_up(self) ? waiting.first_of_others : waiting.first);
}

/** max_execution_time of a SELECT. 0: none. */
uint64_t time_limit_us(const THD *thd) {
  if (thd->lex->sql_command != SQLCOM_SELECT) return 0;
  return uint64_t{thd->lex->max_execution_time != 0
                      ? thd->lex->max_execution_time
                      : thd->variables.max_execution_time} *
         1000;
}

/** The longest wait before the statement begins.
@param holds  others may wait for what its session holds */
uint64_t longest_wait_us(const THD *thd, bool holds) {
  const uint64_t longest_us =
      std::min(wait_us(), holds ? longest_ask_us : UINT64_MAX);
  const uint64_t limit_us = time_limit_us(thd);
  return limit_us == 0 ? longest_us : std::min(longest_us, limit_us);
}

/** No statement runs that may take much. Caller holds the mutex. */
bool nothing_large_runs(const State &self) {
  for (const Running *each = self.running.first; each != nullptr;
       each = each->next)
    if (!each->waits_to_keep && each->may_take_much()) return false;
  return true;
}

/** Caller holds the mutex. A statement of a session that others may wait for
waits only if it may keep what it takes, and that would be too much.
@param expected  others of its digest may tell meanwhile what it takes
@return true: the statement must not begin */
bool waits_in_vain(State *self, Running *mine, Expectation *expected,
                   uint64_t began_us, bool *waited) {
  THD *const thd = mine->thd;
  const bool holds = exempt::holds_what_others_wait_for(thd);
  const uint64_t longest_us = longest_wait_us(thd, holds);
  bool queues = false;
  bool in_vain = false;
  for (;;) {
    const bool is_small = expected->bytes == 0;
    if (holds && !is_small && !would_keep_too_much(*self, *mine)) break;
    if (!is_small && !queues) {
      queues = true;
      self->waiting.append(mine);
      self->waiters.store(self->waiting.count, std::memory_order_relaxed);
    }
    const uint64_t now_us = monotonic_us();
    const uint64_t waited_us = now_us - began_us;
    const bool in_turn = is_small || is_in_turn(*self, mine);
    const auto is_alone = [&] {
      return !is_small && !would_keep_too_much(*self, *mine) &&
             nothing_large_runs(*self);
    };
    if (in_turn &&
        (has_room(self, *mine, *expected, waited_us, now_us) || is_alone()))
      break;
    // Running ones may never take what is expected of them.
    const bool waits_long = in_turn && waited_us >= long_patient_us;
    const int64_t bytes = expected->known ? expected->bytes : 0;
    // One of which more is known must not wait for longer than others.
    const bool is_modest = bytes < account.marks().reserve_bytes;
    if ((is_modest || waits_long) && !is_small &&
        self->pace.may_begin({.left_bytes = account.left_bytes() - bytes,
                              .left_for_beginners_bytes =
                                  account.left_for_beginners_bytes() - bytes,
                              .reserve_bytes = account.marks().reserve_bytes,
                              .waited_us = waited_us},
                             now_us))
      break;
    if (mode.load() == Target::off || !started) break;
    *waited = true;
    if (!acts()) break;
    // A small one that keeps nothing begins then.
    const bool is_over = waited_us >= longest_us;
    in_vain = thd->killed || (is_over && (!is_small || mine->may_keep));
    if (in_vain || is_over) break;
    wait_at_gate(self, thd);
    *expected = expectation_of(self, *mine);
  }
  if (queues) {
    self->waiting.remove(mine);
    self->waiters.store(self->waiting.count, std::memory_order_relaxed);
    mysql_cond_broadcast(&self->changed);
  }
  return in_vain;
}

/** The session would keep what the statement takes, and that would be too much.
It was listed while it was parsed, and stays so: the giver sees what it has
taken, and may end it. Caller holds the mutex.
@return true: the statement must not begin */
bool keeps_in_vain(State *self, Running *mine, uint64_t began_us,
                   bool *waited) {
  THD *const thd = mine->thd;
  std::atomic<bool> &waits = mine->taker->waits;
  mine->waits_to_keep = true;
  mine->changes_for_good.store(false);
  bool in_vain = false;
  while (mode.load() != Target::off && started &&
         would_keep_too_much(*self, *mine)) {
    *waited = true;
    if (!acts()) break;
    in_vain = thd->killed || is_told_to_end(*mine) ||
              monotonic_us() - began_us >=
                  longest_wait_us(thd, exempt::holds_what_others_wait_for(thd));
    if (in_vain) break;
    waits.store(true, std::memory_order_relaxed);
    wait_at_gate(self, thd);
  }
  waits.store(false, std::memory_order_relaxed);
  mine->waits_to_keep = false;
  return in_vain;
}

/** The giver does not know it from here on. */
void unlist(State *self, Running *mine) {
  if (!mine->listed) return;
  MUTEX_LOCK(locked, &self->mutex);
  self->running.remove(mine);
  mine->listed = false;
  if (self->waiting.count != 0) mysql_cond_broadcast(&self->changed);
}

/** @param in_log  such statements are few enough for a row */
void spill_if_short(Own *mine, bool in_log, int64_t expected_bytes) {
  Running &running = mine->running;
  if (!state().spills.load(std::memory_order_relaxed) ||
      !mine->spilling.begin(running.thd))
    return;
  running.spills.store(true, std::memory_order_relaxed);
  if (!in_log) return;
  Done done = begun(Action::spill);
  done.processlist_id = running.thd->thread_id();
  done.digest = running.digest;
  finish(&done, monotonic_us(), static_cast<uint64_t>(expected_bytes));
  note(done);
}

void let_through(Own *mine, const Expectation &expected) {
  if (mine->running.taker == nullptr) {
    mine->running.taker = begin(expected.bytes);
    mine->running.expects_much = expected.bytes != 0;
  }
  if (mine->session_with_handler != mine->running.thd->thread_id()) {
    mine->running.thd->push_internal_handler(&mine->handler);
    mine->has_handler = true;
  }
  mine->running.passed_gate.store(true);
  spill_if_short(mine, !is_known_small(expected), expected.bytes);
  // A thread that holds the lock of this one has it for a moment.
  while (is_told_to_end(mine->running) && !kill(&mine->running)) pause_us(10);
}

bool refuse(Running *mine, uint64_t began_us, Refused what) {
  if (mine->taker != nullptr && is_told_to_end(*mine)) {
    raise_end_once(mine->thd);
    return true;
  }
  if (mine->thd->killed) {
    mine->thd->send_kill_message();
    return true;
  }
  counters.refused.fetch_add(1);
  const uint64_t waited_us = monotonic_us() - began_us;
  const uint64_t limit_us = time_limit_us(mine->thd);
  if (limit_us != 0 && limit_us <= waited_us) {
    my_error(ER_QUERY_TIMEOUT, MYF(0));
    return true;
  }
  raise_refusal(waited_us, what);
  return true;
}

/** The scheduler begins an event anew although its last run waits. More of them
would fill the memory that they wait for. Caller holds the mutex. */
bool waits_already(const State &self, const Running &event) {
  for (const Running *each = self.waiting.first; each != nullptr;
       each = each->next)
    if (each->hash == event.hash &&
        each->thd->system_thread == SYSTEM_THREAD_EVENT_WORKER)
      return true;
  return false;
}

/** There is room now, and no other waits for it. */
bool has_room_at_once(State *self, const Running &running,
                      const Expectation &expected) {
  return has_room(self, running, expected, 0, monotonic_us()) &&
         (expected.bytes == 0 ||
          self->waiters.load(std::memory_order_relaxed) == 0);
}

/** Waits for room. A statement that is listed waits only for what its session
would keep.
@param[in,out] expected  others of its digest may tell meanwhile what it takes
@param for_text_us  so long its packet waited: the client waits for its answer
                    since it sent that
@return true: the statement must not begin */
bool queue(State *self, Own *mine, Expectation *expected,
           uint64_t for_text_us) {
  Running *const running = &mine->running;
  THD *const thd = running->thd;
  const uint64_t began_us = monotonic_us() - for_text_us;
  Done done = begun(Action::wait);
  done.time_us -= std::min(done.time_us, for_text_us);
  const bool listed = running->listed;
  bool waited = false;
  bool in_vain = false;
  Refused what = Refused::statement;
  {
    MUTEX_LOCK(locked, &self->mutex);
    mine->at_gate = true;
    if (exempt::is_of_system(thd) && acts() && waits_already(*self, *running)) {
      what = Refused::run_of_event;
      in_vain = waited = true;
    } else {
      in_vain = listed
                    ? keeps_in_vain(self, running, began_us, &waited)
                    : waits_in_vain(self, running, expected, began_us, &waited);
    }
    mine->at_gate = false;
    if (!in_vain && !listed) {
      running->taker = begin(expected->bytes);
      running->expects_much = expected->bytes != 0;
      if (!exempt::is_of_system(thd)) self->list(running);
    }
    const bool is_worth_a_row = in_vain || !is_known_small(*expected) ||
                                monotonic_us() - began_us >= worth_a_row_us;
    if (waited && is_worth_a_row) {
      done.processlist_id = thd->thread_id();
      done.digest = running->digest;
      if (in_vain && !thd->killed && !(listed && is_told_to_end(*running)))
        done.action = Action::refuse;
      finish(&done, began_us, static_cast<uint64_t>(expected->bytes));
      self->log.add(done);
    }
  }
  if (!in_vain) return false;
  // The client sends the statement again, and it waits again.
  (void)value_dropped();
  if (listed) {
    unlist(self, running);
    running->hash = 0;  // what it took is not what its digest takes
  }
  return refuse(running, began_us, what);
}

/** The event of the event scheduler that the calling thread runs, once it has
begun. No hook sees its end: the thread ends with it. */
class Event {
 public:
  Event() = default;
  ~Event() {
    pauses(&state());
    const Running &running = own().running;
    if (running.taker != nullptr) peaks.note(running.hash, end(), false);
  }
  Event(const Event &) = delete;
  Event &operator=(const Event &) = delete;

  /** @param names_table  so does the statement that is next */
  bool has_passed(bool names_table) const {
    return m_began && (m_passed_with_table || !names_table);
  }
  void begins(State *self, Running *mine, bool names_table) {
    m_began = true;
    m_passed_with_table = names_table;
    mine->may_end = mine->of_event = true;
    mine->passed_gate.store(true);
    MUTEX_LOCK(locked, &self->mutex);
    self->list(mine);
  }
  /** It asks again, or has ended. */
  void pauses(State *self) {
    if (!std::exchange(m_began, false)) return;
    Running *const mine = &own().running;
    mine->passed_gate.store(false);
    unlist(self, mine);
  }

 private:
  bool m_began{false};
  bool m_passed_with_table{false};
};

/** The first statement of an event waits, and the first one that names a table,
for all of them. @return true: the statement must not run */
[[gnu::noinline]] bool event_is_refused(THD *thd) {
  if (thd->system_thread != SYSTEM_THREAD_EVENT_WORKER ||
      thd->sp_runtime_ctx == nullptr || thd->sp_runtime_ctx->sp == nullptr)
    return false;
  Own *const mine = &own();  // is destroyed after the event
  thread_local Event event;
  const bool names_table = thd->lex->query_tables != nullptr;
  if (event.has_passed(names_table) || exempt::holds_what_others_wait_for(thd))
    return false;
  State &self = state();
  event.pauses(&self);
  Running *const running = &mine->running;
  running->thd = thd;
  const LEX_STRING name = thd->sp_runtime_ctx->sp->m_qname;
  running->hash = std::hash<std::string_view>{}({name.str, name.length});
  Expectation expected = expectation_of(&self, *running);
  if (!has_room_at_once(&self, *running, expected) &&
      queue(&self, mine, &expected, waited_for_text_us()))
    return true;
  if (running->taker == nullptr) running->taker = begin(expected.bytes);
  event.begins(&self, running, names_table || expected.known);
  return false;
}

/** Most statements: while there is room, one that is known to be small passes
without being counted. If it grows large even so, is_large() counts it. */
bool passes_as_small(THD *thd, const unsigned char *digest) {
  Own *const mine = own_of_session;
  const enum_sql_command command = thd->lex->sql_command;
  // The statement of EXECUTE has a command of its own, and asks again. That of
  // an administrator may grow large where an application's was small.
  if (mine == nullptr || mine->session_with_handler != thd->thread_id() ||
      command == SQLCOM_EXECUTE || !peaks.is_small(hash_of(digest)) ||
      exempt::looks_at_server(*thd->lex) || !begin_small())
    return false;
  mine->command = command;
  mine->exempt = false;
  static constexpr statement_gate::Gate nothing_ends{};
  statement_gate::note_let_through(&nothing_ends, false);
  return true;
}

/** The statement was listed while it was read or parsed. It may have waited for
what its text takes then. That does not tell what its tables take, nor, of a
short text, what its digest took before. */
bool asks_behind_its_text(State *self, const Running &running,
                          const Expectation &expected) {
  if (text_waited_in_vain()) return true;
  const int64_t plenty = account.marks().plenty_bytes;
  return bytes_of_tables(running.thd, 4 * plenty) > plenty ||
         (!text_is_expected() &&
          expected.bytes >
              running.taker->grown_bytes.load(std::memory_order_relaxed) &&
          !has_room_at_once(self, running, expected));
}

/** @return false: it was told to end while it was listed */
bool begins_anew(State *self, Running *mine) {
  unlist(self, mine);
  // From here on no other tells it.
  if (is_told_to_end(*mine) && !own().exempt) {
    mine->hash = 0;  // what it took is not what its digest takes
    return false;
  }
  mine->taker = nullptr;
  (void)end();
  return true;
}

[[gnu::noinline]] bool refuses(THD *thd, const unsigned char *digest) {
  State &self = state();
  Own &mine = own();
  Running *const running = &mine.running;
  {
    // The giver reads these of those that are listed.
    MUTEX_LOCK(locked, running->listed ? &self.mutex : nullptr);
    running->thd = thd;
    memcpy(running->digest.data(), digest, running->digest.size());
    running->hash = hash_of(digest);
  }
  mine.command = thd->lex->sql_command;
  see_value(thd->get_command() == COM_STMT_EXECUTE);
  bool began_early = running->taker != nullptr;
  // EXECUTE is exempt, and its statement asks again.
  statement_gate::note_let_through(&gate, true);
  const bool looks = !exempt::is_exempt(thd) && exempt::administers(thd);
  mine.exempt = looks || exempt::is_exempt(thd);
  if (mine.exempt) {
    if (began_early) (void)begins_anew(&self, running);
    exempt_thread(true);
    if (looks) spill_if_short(&mine, true, 0);
    return false;
  }
  running->takes_little = exempt::takes_little(thd);
  const bool may_keep = exempt::may_keep(thd, running->takes_little);
  const bool logged_as_text = exempt::may_be_logged_as_text(thd);
  {
    // The giver reads these, too.
    MUTEX_LOCK(locked, running->listed ? &self.mutex : nullptr);
    running->may_end = exempt::may_end(mine.command);
    running->may_keep = may_keep;
    running->logged_as_text = logged_as_text;
  }
  Expectation expected = expectation_of(&self, *running);
  // The text is large. Others of its digest may have short ones.
  if (text_waited_in_vain())
    expected.bytes = std::max(expected.bytes, large_bytes);
  const uint64_t for_text_us = waited_for_text_us();
  if (began_early && asks_behind_its_text(&self, *running, expected)) {
    if (!begins_anew(&self, running)) {
      raise_end_once(thd);
      return true;
    }
    began_early = false;
  }
  const bool must_ask = began_early
                            ? would_keep_too_much(self, *running)
                            : !has_room_at_once(&self, *running, expected);
  if (must_ask && queue(&self, &mine, &expected, for_text_us)) {
    exempt_thread(false);  // EXECUTE was exempt
    return true;
  }
  if (began_early) {
    MUTEX_LOCK(locked, &self.mutex);
    running->expects_much = expected.bytes != 0;
  }
  running->guessed = expected.bytes == 0 && !expected.known;
  let_through(&mine, expected);
  statement_gate::note_let_through(&gate, false);
  return false;
}

bool asks(void *session, const unsigned char *digest) {
  auto *const thd = static_cast<THD *>(session);
  if (passes_as_small(thd, digest)) return false;
  return running_statements == 0 ? event_is_refused(thd) : refuses(thd, digest);
}

/** A statement that was let through has ended. */
void leave() {
  State &self = state();
  Own &mine = own();
  Running *const running = &mine.running;
  const bool was_exempt = std::exchange(mine.exempt, false);
  mine.spilling.end(running->thd);
  const bool has_spilled = running->spills.exchange(false);
  if (running->taker == nullptr) {
    (void)end();
    // Upstream has dropped the parameter with its statement.
    if (was_exempt && running->thd->get_command() == COM_STMT_EXECUTE)
      (void)value_dropped();
    // The packet of the session's next statement may be large.
    if (was_exempt && !exempt::is_of_system(running->thd)) exempt_thread(false);
    return;
  }
  THD *const thd = running->thd;
  unlist(&self, running);
  if (mine.has_handler && thd->get_internal_handler() == &mine.handler)
    thd->pop_internal_handler();
  mine.has_handler = false;
  running->passed_gate.store(false);
  if (is_told_to_end(*running)) {
    // It may have ended before it saw that it was to end. The next statement
    // must not end in its place.
    mysql_mutex_lock(&thd->LOCK_thd_data);
    if (thd->killed == THD::KILL_QUERY) thd->killed = THD::NOT_KILLED;
    mysql_mutex_unlock(&thd->LOCK_thd_data);
  }
  running->taker = nullptr;
  const int64_t peak = end();
  peaks.note(running->hash, peak, has_spilled);
  // Two threads may lose one statement of the average.
  const int64_t average = self.average_bytes.load(std::memory_order_relaxed);
  const int64_t next = next_average(average, peak);
  if (next != average)
    self.average_bytes.store(next, std::memory_order_relaxed);
}

}  // namespace

constexpr statement_gate::Gate gate{asks, leave};

void register_stage() {
  PSI_stage_info *stages[] = {&waits_for_room};
  mysql_stage_register("memdiag", stages, 1);
}

}  // namespace memdiag::ceiling
