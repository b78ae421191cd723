#include <algorithm>
#include <cstring>
#include <functional>
#include <iterator>
#include <new>
#include <optional>
#include <string_view>
#include <utility>

#include "mutex_lock.h"
#include "my_sys.h"
#include "my_systime.h"
#include "mysql/psi/mysql_stage.h"
#include "mysqld_error.h"
#include "mysys/memdiag/upstream/scope_hooks.h"
#include "mysys_err.h"
#include "plugin/memdiag/server/threads/ceiling_state.h"
#include "plugin/memdiag/server/threads/exempt.h"
#include "plugin/memdiag/server/threads/spilling.h"
#include "sql/auth/sql_security_ctx.h"
#include "sql/current_thd.h"
#include "sql/error_handler.h"
#include "sql/sp_head.h"
#include "sql/sp_rcontext.h"
#include "sql/sql_class.h"
#include "sql/sql_lex.h"
#include "storage/innobase/memdiag/innodb.h"

namespace memdiag::ceiling {

namespace {

/** A waiting statement looks again after so long, without a round. */
constexpr uint64_t gate_look_us = 20'000;
/** The text of a statement that takes little to parse. */
constexpr size_t short_text_bytes = 64 << 10;
/** It takes a step itself when there was no round for so long. */
constexpr uint64_t help_after_us = 5'000;

PSI_stage_info waits_for_room = {
    0, "Waiting for memory (memdiag_memory_target)", 0, ""};

/** Errors of a statement that got no memory after it was told to end. */
constexpr uint consequences[] = {ER_QUERY_INTERRUPTED, ER_OUTOFMEMORY,
                                 ER_OUT_OF_RESOURCES,  ER_OUT_OF_SORTMEMORY,
                                 EE_OUTOFMEMORY,       ER_RECORD_FILE_FULL,
                                 ER_CAPACITY_EXCEEDED, ER_ENGINE_OUT_OF_MEMORY};

/** Puts the ceiling's error in the place of KILL's. */
class Told_to_end final : public Internal_error_handler {
 public:
  bool handle_condition(THD *, uint error, const char *,
                        Sql_condition::enum_severity_level *level,
                        const char *) override;
};

/** The calling thread's statement. */
struct Own {
  Running running;
  Spilling spilling;
  Told_to_end handler;
  /** The handler was pushed for the statement. */
  bool has_handler{false};
  /** The session that has the handler from its begin to its end. */
  my_thread_id session_with_handler{0};
  /** The gate has let its statement through without counting it. */
  bool exempt{false};
  /** `running` may be in the list of those that wait. A thread that waits takes
  steps of the giver, and may grow by them. */
  bool at_gate{false};
  /** It is a COM_QUERY that began with the copy of its text, and was not seen
  in the parser. */
  bool copies_text{false};
  /** The ceiling's error is being raised. */
  bool raises{false};
};

Own &own() {
  thread_local Own mine;
  return mine;
}
/** The same, of a thread whose session has the handler. */
constinit thread_local Own *own_of_session = nullptr;

void raise_end(Own *mine, THD *thd) {
  // Locks of rows stay until the transaction ends: to end the statement alone
  // would not give their memory back. While it is parsed, it took no lock.
  const bool with_transaction =
      mine->running.passed_gate.load() &&
      innodb::lock_bytes(thd) >= mine->running.grown_bytes / 2;
  if (with_transaction) thd->mark_transaction_to_rollback(true);
  mine->raises = true;
  try {
    my_printf_error(
        ER_CAPACITY_EXCEEDED, "%s", MYF(ME_FATALERROR),
        text_of_end(mine->running.target_bytes, mine->running.grown_bytes,
                    mine->running.of_statements, with_transaction)
            .c_str());
  } catch (const std::bad_alloc &) {
    my_error(ER_OUT_OF_RESOURCES, MYF(ME_FATALERROR));
  }
  mine->raises = false;
}

bool is_told_to_end(const Running &running) {
  return running.taker != nullptr &&
         running.taker->told_to_end.load(std::memory_order_acquire);
}

bool Told_to_end::handle_condition(THD *thd, uint error, const char *,
                                   Sql_condition::enum_severity_level *level,
                                   const char *) {
  Own &mine = own();
  if (mine.raises || *level != Sql_condition::SL_ERROR ||
      !is_told_to_end(mine.running) ||
      std::find(std::begin(consequences), std::end(consequences), error) ==
          std::end(consequences))
    return false;
  raise_end(&mine, thd);
  return true;
}

uint64_t hash_of(const unsigned char *digest) {
  uint64_t hash;
  memcpy(&hash, digest, sizeof hash);
  return hash;
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
  // The giver may be starved of the CPU. Helping needs no mutex of the gate.
  if (monotonic_us() - self->round_us.load(std::memory_order_relaxed) >=
      help_after_us)
    (void)round(self);
  mysql_mutex_lock(&self->mutex);
}

/** What the statement will take, as far as its digest tells. */
struct Expectation {
  int64_t bytes;
  bool known;
};

Expectation expectation_of(State *self, const Running &running) {
  const uint64_t hash = running.hash;
  const std::optional<int64_t> peak = peaks.peak_bytes(hash);
  const THD *const thd = running.thd;
  // SELECT 1 and SET are small, unless there is room to see what they take.
  if (!peak && thd->lex->query_tables == nullptr &&
      thd->query().length < short_text_bytes &&
      (hash == 0 ||
       account.left_for_beginners_bytes() < 2 * account.marks().plenty_bytes))
    return {0, hash == 0};
  return {
      expected_of_beginner(hash != 0, peak,
                           self->average_bytes.load(std::memory_order_relaxed),
                           account.marks().plenty_bytes),
      hash == 0 || peak.has_value()};
}

/** Caller holds the mutex if the statement has waited.
@param waited_us  so long */
bool has_room(State *self, const Running &running, const Expectation &expected,
              uint64_t waited_us) {
  if (account.level() == Level::unknown) return true;
  const Marks marks = account.marks();
  if (expected.bytes == 0)
    return self->small_pace.may_begin(
        {.left_bytes = account.left_bytes(),
         .reserve_bytes = marks.reserve_bytes,
         .waited_us = waited_us,
         .known = expected.known,
         .may_keep = running.may_keep,
         .holds = exempt::holds_what_others_wait_for(running.thd)},
        monotonic_us());
  return account.left_for_beginners_bytes() - expected.bytes >=
         (waited_us < patient_us ? marks.plenty_bytes : marks.reserve_bytes);
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
  const uint64_t wait_us =
      std::min(uint64_t{__atomic_load_n(&wait_ms, __ATOMIC_RELAXED)} * 1000,
               holds ? longest_ask_us : UINT64_MAX);
  const uint64_t limit_us = time_limit_us(thd);
  return limit_us == 0 ? wait_us : std::min(wait_us, limit_us);
}

/** Caller holds the mutex. A statement of a session that others may wait for
waits only if it is small and may keep what it takes.
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
    if (holds && !is_small) break;
    if (!is_small && !queues) {
      queues = true;
      self->waiting.append(mine);
      self->waiters.store(self->waiting.count, std::memory_order_relaxed);
    }
    const uint64_t waited_us = monotonic_us() - began_us;
    const bool in_turn = is_small || self->waiting.first == mine;
    const bool alone =
        !is_small && self->running.count == 0 && self->events == 0;
    if (in_turn && (alone || has_room(self, *mine, *expected, waited_us)))
      break;
    // Running ones may never take what is expected of them.
    const bool waits_long = in_turn && waited_us >= long_patient_us;
    const int64_t bytes = expected->known ? expected->bytes : 0;
    if ((!expected->known || waits_long) && !is_small &&
        self->pace.may_begin({.left_bytes = account.left_bytes() - bytes,
                              .left_for_beginners_bytes =
                                  account.left_for_beginners_bytes() - bytes,
                              .reserve_bytes = account.marks().reserve_bytes,
                              .waited_us = waited_us},
                             monotonic_us()))
      break;
    if (mode.load() == Target::off || !started) break;
    *waited = true;
    if (!acts()) break;
    in_vain = thd->killed ||
              ((!is_small || mine->may_keep) && waited_us >= longest_us);
    if (in_vain) break;
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

/** Caller holds the mutex. */
void list(State *self, Running *mine) {
  mine->number = ++self->last_number;
  self->running.append(mine);
  mine->listed = true;
}

/** The giver does not know it from here on. */
void unlist(State *self, Running *mine) {
  if (!mine->listed) return;
  MUTEX_LOCK(locked, &self->mutex);
  self->running.remove(mine);
  mine->listed = false;
  if (self->waiting.count != 0) mysql_cond_broadcast(&self->changed);
}

void let_through(Own *mine, int64_t expected_bytes) {
  if (mine->running.taker == nullptr)
    mine->running.taker = begin(expected_bytes);
  if (mine->session_with_handler != mine->running.thd->thread_id()) {
    mine->running.thd->push_internal_handler(&mine->handler);
    mine->has_handler = true;
  }
  mine->running.passed_gate.store(true);
  if (state().spills.load(std::memory_order_relaxed) &&
      mine->spilling.begin(mine->running.thd)) {
    Done done = begun(Action::spill);
    done.processlist_id = mine->running.thd->thread_id();
    done.digest = mine->running.digest;
    finish(&done, monotonic_us(), static_cast<uint64_t>(expected_bytes));
    note(done);
  }
  // A thread that holds the lock of this one has it for a moment.
  while (is_told_to_end(mine->running) && !kill(&mine->running)) pause_us(10);
}

void raise_refusal(uint64_t waited_us) {
  try {
    my_printf_error(ER_CAPACITY_EXCEEDED, "%s", MYF(0),
                    text_of_refusal(waited_us).c_str());
  } catch (const std::bad_alloc &) {
    my_error(ER_OUT_OF_RESOURCES, MYF(0));
  }
}

bool refuse(Running *mine, uint64_t began_us) {
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
  raise_refusal(waited_us);
  return true;
}

/** There is room now, and no other waits for it. */
bool has_room_at_once(State *self, const Running &running,
                      const Expectation &expected) {
  return has_room(self, running, expected, 0) &&
         (expected.bytes == 0 ||
          self->waiters.load(std::memory_order_relaxed) == 0);
}

/** Waits for room.
@param[in,out] expected  others of its digest may tell meanwhile what it takes
@return true: the statement must not begin */
bool queue(State *self, Own *mine, Expectation *expected) {
  Running *const running = &mine->running;
  THD *const thd = running->thd;
  const uint64_t began_us = monotonic_us();
  Done done = begun(Action::wait);
  bool waited = false;
  bool in_vain = false;
  {
    MUTEX_LOCK(locked, &self->mutex);
    mine->at_gate = true;
    in_vain = waits_in_vain(self, running, expected, began_us, &waited);
    mine->at_gate = false;
    if (!in_vain) {
      running->taker = begin(expected->bytes);
      if (!exempt::is_of_system(thd)) list(self, running);
    }
    if (waited) {
      done.processlist_id = thd->thread_id();
      done.digest = running->digest;
      if (in_vain && !thd->killed) done.action = Action::refuse;
      finish(&done, began_us, static_cast<uint64_t>(expected->bytes));
      self->log.add(done);
    }
  }
  return in_vain && refuse(running, began_us);
}

/** The event of the event scheduler that the calling thread runs, once it has
begun. No hook sees its end: the thread ends with it. */
class Event {
 public:
  Event() = default;
  ~Event() {
    if (!m_began) return;
    peaks.note(own().running.hash, end());
    State &self = state();
    MUTEX_LOCK(locked, &self.mutex);
    --self.events;
    mysql_cond_broadcast(&self.changed);
  }
  Event(const Event &) = delete;
  Event &operator=(const Event &) = delete;

  bool has_begun() const { return m_began; }
  void begins(State *self) {
    MUTEX_LOCK(locked, &self->mutex);
    ++self->events;
    m_began = true;
  }

 private:
  bool m_began{false};
};

/** The first statement of an event that names a table waits, for all of them.
The event is never told to end: its session is gone before the thread, and no
hook is between. @return true: the statement must not run */
[[gnu::noinline]] bool event_is_refused(THD *thd) {
  if (thd->system_thread != SYSTEM_THREAD_EVENT_WORKER) return false;
  Own *const mine = &own();  // is destroyed after the event
  thread_local Event event;
  if (event.has_begun() || thd->lex->query_tables == nullptr ||
      exempt::holds_what_others_wait_for(thd))
    return false;
  State &self = state();
  Running *const running = &mine->running;
  running->thd = thd;
  const LEX_STRING name = thd->sp_runtime_ctx->sp->m_qname;
  running->hash = std::hash<std::string_view>{}({name.str, name.length});
  Expectation expected = expectation_of(&self, *running);
  if (!has_room_at_once(&self, *running, expected) &&
      queue(&self, mine, &expected))
    return true;
  if (running->taker == nullptr) running->taker = begin(expected.bytes);
  event.begins(&self);
  return false;
}

/** Most statements: while there is room, one that is known to be small passes
without being counted. If it grows large even so, is_large() counts it. */
bool passes_as_small(THD *thd, const unsigned char *digest) {
  Own *const mine = own_of_session;
  if (mine == nullptr || mine->session_with_handler != thd->thread_id() ||
      !peaks.is_small(hash_of(digest)) || !begin_small())
    return false;
  static constexpr statement_gate::Gate nothing_ends{};
  statement_gate::note_let_through(&nothing_ends, false);
  return true;
}

[[gnu::noinline]] bool refuses(THD *thd, const unsigned char *digest) {
  State &self = state();
  Own &mine = own();
  Running *const running = &mine.running;
  running->thd = thd;
  {
    // The giver reads it of those that are listed.
    MUTEX_LOCK(locked, running->listed ? &self.mutex : nullptr);
    memcpy(running->digest.data(), digest, running->digest.size());
  }
  running->hash = hash_of(digest);
  const bool began_early = running->taker != nullptr;
  // EXECUTE is exempt, and its statement asks again.
  statement_gate::note_let_through(&gate, true);
  mine.exempt = exempt::is_exempt(thd) || exempt::administers(thd);
  if (mine.exempt) {
    if (began_early) {
      unlist(&self, running);
      running->taker = nullptr;
      (void)end();
    }
    exempt_thread(true);
    return false;
  }
  running->may_end = exempt::may_end(thd->lex->sql_command);
  running->may_keep = exempt::may_keep(*thd->lex);
  Expectation expected = expectation_of(&self, *running);
  if (!began_early && !has_room_at_once(&self, *running, expected) &&
      queue(&self, &mine, &expected))
    return true;
  let_through(&mine, expected.bytes);
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
  if (running->taker == nullptr) {
    (void)end();
    // The packet of the session's next statement may be large.
    if (was_exempt && !exempt::is_of_system(running->thd)) exempt_thread(false);
    return;
  }
  THD *const thd = running->thd;
  mine.spilling.end(thd);
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
  peaks.note(running->hash, peak);
  // Two threads may lose one statement of the average.
  const int64_t average = self.average_bytes.load(std::memory_order_relaxed);
  const int64_t next = next_average(average, peak);
  if (next != average)
    self.average_bytes.store(next, std::memory_order_relaxed);
}

/** @param thd  of the calling thread; nullptr: it has none */
void raise_end_once(THD *thd) {
  Own &mine = own();
  if (thd != nullptr && !mine.raises && !thd->is_error()) raise_end(&mine, thd);
}

/** Before its gate: commands whose texts may be large. */
bool may_begin_early(const THD *thd) {
  const enum_server_command command = thd->get_command();
  return command == COM_QUERY || command == COM_STMT_PREPARE ||
         command == COM_STMT_EXECUTE;
}

}  // namespace

constexpr statement_gate::Gate gate{asks, leave};

void register_stage() {
  PSI_stage_info *stages[] = {&waits_for_room};
  mysql_stage_register("memdiag", stages, 1);
}

bool is_large() {
  THD *const thd = current_thd;
  if (thd == nullptr || running_statements != 1 || exempt::is_of_system(thd))
    return false;
  Own &mine = own();
  Running *const running = &mine.running;
  if (mine.exempt || running->listed) return true;
  if (mine.at_gate) return false;
  State &self = state();
  const bool late = running->taker == nullptr;
  // It passed as a small one.
  const bool runs = late && statement_gate::is_let_through();
  if (runs && exempt::is_exempt(thd)) {
    exempt_thread(true);
    return true;
  }
  if (late && !runs && !may_begin_early(thd)) return false;
  // The thread may hold the mutex, or a lock that its holder waits for.
  if (mysql_mutex_trylock(&self.mutex) != 0) return false;
  if (late) {
    running->thd = thd;
    running->digest = {};
    if (runs)
      memcpy(running->digest.data(),
             thd->m_digest_state.m_digest_storage.m_hash,
             running->digest.size());
    running->hash = hash_of(running->digest.data());
    running->may_end = !runs || exempt::may_end(thd->lex->sql_command);
    // The parser has not filled the LEX. The statement may be a PREPARE, and
    // the session keeps the memory of that.
    running->may_keep = !runs || exempt::may_keep(*thd->lex);
    running->taker = begin_late(!runs);
    running->passed_gate.store(runs);
    mine.copies_text =
        !runs && thd->get_command() == COM_QUERY && thd->query().str == nullptr;
    statement_gate::note_let_through(&gate, !runs);
  }
  list(&self, running);
  mysql_mutex_unlock(&self.mutex);
  return true;
}

bool new_session() {
  own_of_session = nullptr;
  THD *const thd = current_thd;
  if (thd == nullptr || exempt::is_of_system(thd)) return false;
  Own *const mine = &own();
  // No statement runs, so the handler is the outermost of each that will.
  if (thd->get_internal_handler() == nullptr) {
    thd->push_internal_handler(&mine->handler);
    mine->session_with_handler = thd->thread_id();
    own_of_session = mine;
  }
  return true;
}

bool is_parsing() {
  THD *const thd = current_thd;
  if (thd != nullptr && thd->m_parser_state != nullptr)
    own().copies_text = false;
  return thd != nullptr && thd->m_parser_state != nullptr &&
         !thd->m_parser_state->m_lip.eof();
}

bool is_in_parser() {
  const THD *const thd = current_thd;
  return thd != nullptr && thd->m_parser_state != nullptr;
}

bool text_comes() {
  if (statement_gate::is_let_through()) return false;
  statement_gate::note_let_through(&gate, true);
  return true;
}

bool goes_on() {
  THD *const thd = current_thd;
  return thd == nullptr || thd->killed != THD::NOT_KILLED ||
         exempt::holds_what_others_wait_for(thd);
}

bool is_killed() {
  const THD *const thd = current_thd;
  return thd != nullptr && thd->killed != THD::NOT_KILLED;
}

bool is_executing() { return own().running.passed_gate.load(); }

bool keeps_value() {
  const THD *const thd = current_thd;
  return thd != nullptr &&
         (thd->get_command() == COM_STMT_SEND_LONG_DATA ||
          // In a routine, the whole CALL grows, and goes on to its end.
          (is_executing() && thd->sp_runtime_ctx == nullptr &&
           thd->lex->sql_command == SQLCOM_SET_OPTION));
}

bool is_before_parser() {
  const THD *const thd = current_thd;
  const Own &mine = own();
  return thd != nullptr && mine.running.taker != nullptr &&
         mine.running.thd == thd && mine.copies_text &&
         thd->m_parser_state == nullptr && !mine.running.passed_gate.load();
}

bool ends_at_once() {
  THD *const thd = current_thd;
  const Running &running = own().running;
  // The parser looks for this error, and not at KILL. Behind the gate, what is
  // parsed is a trigger, a routine or a view. It would be taken for a wrong one
  // and kept as such.
  if (thd == nullptr || !is_told_to_end(running) ||
      running.passed_gate.load() || thd->m_parser_state == nullptr ||
      thd->get_stmt_da() != thd->get_parser_da())
    return false;
  raise_end_once(thd);
  return thd->is_error();
}

void refused() {
  if (is_told_to_end(own().running)) {
    raise_end_once(current_thd);
  } else if (is_killed()) {
    current_thd->send_kill_message();
  } else {
    counters.refused.fetch_add(1);
    raise_refusal(longest_ask_us);
  }
}

void went_on(uint64_t waited_us, int64_t left_before_bytes) {
  const Running &running = own().running;
  if (running.thd == nullptr) return;
  Done done = begun(Action::went_on);
  done.time_us -= std::min(done.time_us, waited_us);
  done.processlist_id = running.thd->thread_id();
  done.digest = running.digest;
  done.duration_us = waited_us;
  done.left_before_bytes = left_before_bytes;
  done.left_after_bytes = account.left_bytes();
  // The thread may hold a lock that the holder of the mutex waits for.
  State &self = state();
  if (mysql_mutex_trylock(&self.mutex) != 0) return;
  self.log.add(done);
  mysql_mutex_unlock(&self.mutex);
}

}  // namespace memdiag::ceiling
