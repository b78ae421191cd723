/*
  What the sensor asks about the calling thread's statement, and tells it:
  Owner of mysys/memdiag/ceiling/sensor.h.
*/

#include <algorithm>
#include <cstring>
#include <functional>
#include <string_view>
#include <utility>

#include "my_sys.h"
#include "mysys/memdiag/pools/attention.h"
#include "mysys/memdiag/upstream/places.h"
#include "mysys/memdiag/upstream/scope_hooks.h"
#include "plugin/memdiag/server/threads/ceiling_state.h"
#include "plugin/memdiag/server/threads/ceiling_statement.h"
#include "plugin/memdiag/server/threads/exempt.h"
#include "plugin/memdiag/server/threads/kept_programs.h"
#include "plugin/memdiag/server/threads/server_locks.h"
#include "sql/current_thd.h"
#include "sql/protocol_classic.h"
#include "sql/rpl_rli.h"
#include "sql/sql_class.h"
#include "sql/sql_lex.h"
#include "storage/innobase/memdiag/innodb.h"

namespace memdiag::ceiling {
namespace {

/** Before its gate: commands whose texts may be large. */
bool may_begin_early(const THD *thd) {
  const enum_server_command command = thd->get_command();
  return command == COM_QUERY || command == COM_STMT_PREPARE ||
         command == COM_STMT_EXECUTE;
}

/** The calling thread parses its statement, and the parser looks for errors.
Behind the gate, what is parsed is a trigger, a routine or a view, and an error
would be taken for one of its text. */
bool parser_sees_errors(THD *thd) {
  return thd->m_parser_state != nullptr &&
         thd->get_stmt_da() == thd->get_parser_da();
}

/** It sends a part of its answer, or may read rows from its client. Without
memory for a packet, upstream closes the connection. */
bool is_at_packet(THD *thd) {
  return thd->lex->sql_command == SQLCOM_LOAD ||
         (thd->is_classic_protocol() &&
          thd->get_protocol_classic()->get_net()->reading_or_writing != 0);
}

/** The statement has changed a table without transactions, or may do so before
it looks for KILL: a row that is being computed is written all the same. */
bool changes_for_good(const THD *thd) {
  return exempt::has_changed_for_good(thd) || writes_for_good();
}

/** Ending what runs now undoes it. What is parsed would be taken for a wrong
text. An expression has SQLCOM_END: that of a routine, as in an IF, runs without
a plan, and that of a table's column is read for the statement that has one. */
bool may_end_now(const THD *thd) {
  if (thd->m_parser_state != nullptr) return false;
  enum_sql_command command = thd->lex->sql_command;
  if (command == SQLCOM_END) command = thd->query_plan.get_command();
  return command == SQLCOM_END || exempt::may_end(command);
}

/** Ends the event, if KILL may end the statement that it runs now. The giver
does not: see Running::thd. */
bool kill_event(const THD *thd, Running *running) {
  return thd->killed == THD::NOT_KILLED && may_end_now(thd) &&
         !(exempt::may_be_logged_as_text(thd) && changes_for_good(thd)) &&
         kill(running);
}

/** The calling thread asked before for a block of the event that it reads: for
its bytes. A Query event copies its text into a second one. */
bool has_bytes_of_event(Relay_log_info *rli) {
  static thread_local std::pair<size_t, my_off_t> last;
  const std::pair<size_t, my_off_t> now{
      std::hash<std::string_view>{}(rli->get_event_relay_log_name()),
      rli->get_event_start_pos()};
  return std::exchange(last, now) == now;
}

}  // namespace

int client_is_idle() {
  return kept_programs::when_idle(
      state().spills.load(std::memory_order_relaxed));
}

bool is_large() {
  THD *const thd = current_thd;
  if (thd == nullptr || running_statements != 1 || exempt::is_of_system(thd))
    return false;
  Own &mine = own();
  Running *const running = &mine.running;
  State &self = state();
  if (running->taker != nullptr && running->guessed &&
      running->taker->grown_bytes.load(std::memory_order_relaxed) >=
          large_bytes)
    self.guess.was_wrong(monotonic_us());
  if (mine.exempt || running->listed) return true;
  if (mine.at_gate) return false;
  const bool late = running->taker == nullptr;
  // It passed as a small one.
  const bool runs = late && statement_gate::is_let_through();
  // The first one of a group commit works for the sessions of the others.
  // Theirs may end before this statement does.
  if (runs && mine.session_with_handler != thd->thread_id()) return false;
  // In a routine or a trigger, the whole statement grows.
  if (runs && exempt::must_run(mine.command)) {
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
    running->expects_much = false;
    running->may_end = !runs || exempt::may_end(mine.command);
    running->logged_as_text = runs && exempt::may_be_logged_as_text(thd);
    // The parser has not filled the LEX. The statement may be a PREPARE, and
    // the session keeps the memory of that.
    running->may_keep = !runs || thd->lex->sql_command != mine.command ||
                        exempt::may_keep(thd, false);
    running->taker = begin_late(!runs);
    running->passed_gate.store(runs);
    mine.copies_text =
        !runs && thd->get_command() == COM_QUERY && thd->query().str == nullptr;
    statement_gate::note_let_through(&gate, !runs);
  }
  self.list(running);
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

bool never_waits() {
  const THD *const thd = current_thd;
  return thd == nullptr || exempt::is_of_system(thd) ||
         (!may_begin_early(thd) && thd->get_command() != COM_SLEEP &&
          thd->get_command() != COM_STMT_SEND_LONG_DATA);
}

Replica_block replica_block(pools::Account account) {
  const THD *const thd = current_thd;
  if (thd == nullptr || !thd->slave_thread ||
      thd->system_thread == SYSTEM_THREAD_SLAVE_IO)
    return Replica_block::other;
  // Without workers, the reader applies what it has read while tables are open.
  if (thd->system_thread != SYSTEM_THREAD_SLAVE_SQL ||
      thd->open_tables != nullptr)
    return Replica_block::applied;
  // Places come first among the accounts.
  if (account == static_cast<pools::Account>(Place::rows))
    return Replica_block::rows;
  if (account == 0 || account != pools::account_of_events.load())
    return Replica_block::other;
  return thd->rli_slave != nullptr && has_bytes_of_event(thd->rli_slave)
             ? Replica_block::rows
             : Replica_block::event;
}

/** Upstream reads events with this mutex, and gives it up in the same function
where it waits itself. SHOW REPLICA STATUS takes it behind the connection's,
which the receiver needs for each event that it has written: a query of a
monitor would stop the receiver. Nothing that the mutex protects is held over
the call that allocates the event. */
bool leaves_lock() {
  const THD *const thd = current_thd;
  if (thd == nullptr || thd->rli_slave == nullptr ||
      !server_locks::is_mine(thd->rli_slave->data_lock))
    return false;
  mysql_mutex_unlock(&thd->rli_slave->data_lock);
  return true;
}

void takes_lock() { mysql_mutex_lock(&current_thd->rli_slave->data_lock); }

bool text_comes() {
  if (statement_gate::is_let_through()) return false;
  statement_gate::note_let_through(&gate, true);
  return true;
}

bool is_killed() {
  const THD *const thd = current_thd;
  if (thd == nullptr) return false;
  if (Running &running = own().running; running.logged_as_text)
    running.changes_for_good.store(changes_for_good(thd));
  // STOP REPLICA does not kill the thread that reads the relay log.
  return thd->killed != THD::NOT_KILLED ||
         (thd->system_thread == SYSTEM_THREAD_SLAVE_SQL &&
          thd->rli_slave != nullptr && thd->rli_slave->abort_slave);
}

bool goes_on() {
  THD *const thd = current_thd;
  return thd != nullptr &&
         (is_killed() || exempt::holds_what_others_wait_for(thd));
}

bool has_account() {
  // A session of the X plugin is detached while an account is looked for, and
  // attached again by its first command.
  const THD *const thd = current_thd;
  return thd != nullptr && thd->m_main_security_ctx.user().length != 0 &&
         !exempt::is_of_system(thd);
}

bool nobody_waits() {
  THD *const thd = current_thd;
  return thd != nullptr && own().running.passed_gate.load() &&
         thd->lex->query_tables == nullptr && !goes_on();
}

bool is_executing() {
  THD *const thd = current_thd;
  return own().running.passed_gate.load() && thd != nullptr &&
         !is_at_packet(thd);
}

bool writes_for_good() {
  const THD *const thd = current_thd;
  if (thd == nullptr) return false;
  const auto is_written = [](const TABLE &table) {
    return table.reginfo.lock_type >= TL_WRITE_ALLOW_WRITE &&
           !table.file->has_transactions();
  };
  // LOCK TABLES, and a statement with routines or triggers, keep tables open
  // that other statements write. A statement marks those that it uses with its
  // number until it has ended, and so have those that it is a part of.
  // A routine's next instruction finds neither its mark nor upstream's note
  // that a table was changed, before the statement that it is a part of has
  // both.
  const bool in_routine = thd->in_sub_stmt != 0;
  const bool all = in_routine || thd->locked_tables_mode == LTM_NONE;
  for (const TABLE *table = thd->open_tables; table != nullptr;
       table = table->next)
    if ((all || table->query_id != 0) && is_written(*table)) return true;
  // These are locked for writing between statements. HANDLER keeps its number.
  // A routine may have written any of them. That matters to replicas alone.
  const bool all_temporary = in_routine && exempt::may_be_logged_as_text(thd);
  for (const TABLE *table = thd->temporary_tables; table != nullptr;
       table = table->next)
    if ((all_temporary || (table->query_id != 0 && !table->open_by_handler)) &&
        is_written(*table))
      return true;
  return false;
}

bool keeps_value() {
  const THD *const thd = current_thd;
  return thd != nullptr &&
         (thd->get_command() == COM_STMT_SEND_LONG_DATA ||
          // In a routine, the whole CALL grows, and goes on to its end.
          (is_executing() && thd->sp_runtime_ctx == nullptr &&
           thd->lex->sql_command == SQLCOM_SET_OPTION));
}

uint64_t drops_of_values() {
  const THD *const thd = current_thd;
  // A session that is reset drops them all. Its two counts begin again, but not
  // the counter of its statements: the next parameter needs another statement.
  return thd == nullptr ? 0
                        : (uint64_t{thd->statement_id_counter} << 32) +
                              thd->status_var.com_stmt_reset +
                              thd->status_var.com_stmt_close;
}

bool is_before_parser() {
  const THD *const thd = current_thd;
  const Own &mine = own();
  return thd != nullptr && mine.running.taker != nullptr &&
         mine.running.thd == thd && mine.copies_text &&
         thd->m_parser_state == nullptr && !mine.running.passed_gate.load();
}

const void *transaction() {
  const THD *const thd = current_thd;
  return thd == nullptr ? nullptr : thd->get_transaction();
}

bool must_succeed() {
  const THD *const thd = current_thd;
  return thd != nullptr &&
         (thd->kill_immunizer != nullptr || innodb::runs_sql() ||
          exempt::commits(thd) || innodb::rolls_back(thd));
}

bool ends_at_once() {
  THD *const thd = current_thd;
  Running &running = own().running;
  if (thd == nullptr || !is_told_to_end(running)) return false;
  if (running.of_event) {
    // The first one of a group commit works for the sessions of the others.
    if (thd == running.thd && !must_succeed() && kill_event(thd, &running))
      raise_end_once(thd);
    return false;
  }
  if (running.passed_gate.load() || !parser_sees_errors(thd)) return false;
  raise_end_once(thd);
  return thd->is_error();
}

bool holds_lock() {
  const THD *const thd = current_thd;
  return thd != nullptr && server_locks::holds_one(*thd);
}

bool breaks_off() {
  THD *const thd = current_thd;
  if (!is_executing() || must_succeed()) return false;
  // A CALL may contain what is never ended: what that reads may be kept.
  if (!may_end_now(thd)) return false;
  Running &running = own().running;
  // The caller of a step may not have looked at the error of the one before.
  if (thd->is_error()) return true;
  if (running.of_event && !kill_event(thd, &running)) return false;
  raise_end_once(thd);
  return thd->is_error();
}

bool gives_up() {
  THD *const thd = current_thd;
  if (thd == nullptr || thd->get_command() != COM_STMT_PREPARE ||
      !parser_sees_errors(thd) || thd->is_error())
    return false;
  // Its packet waited less, behind the parts of another's parameter.
  (void)value_dropped();
  if (waited_for_text_us() < wait_us()) return true;
  counters.refused.fetch_add(1);
  raise_refusal(waited_for_text_us());
  return true;
}

void refused(uint64_t waited_us) {
  if (is_told_to_end(own().running)) {
    raise_end_once(current_thd);
  } else if (is_killed()) {
    current_thd->send_kill_message();
  } else {
    counters.refused.fetch_add(1);
    raise_refusal(waited_us, keeps_value() ? Refused::value : Refused::block);
  }
}

void went_on(uint64_t waited_us, int64_t left_before_bytes) {
  // Before its first statement, `running` is of a session that has ended.
  const THD *const thd = current_thd;
  if (thd == nullptr) return;
  const Running &running = own().running;
  Done done = begun(Action::went_on);
  done.time_us -= std::min(done.time_us, waited_us);
  done.processlist_id = thd->thread_id();
  if (running.taker != nullptr) done.digest = running.digest;
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
