/*
  Events that are over when they have run, because they run once or for the last
  time. Upstream drops them then, but not after an error that is fatal. The
  ceiling ends an event with such an error, because no handler of the event may
  run. So the event would stay, and no replica would drop it. Upstream commits
  before it drops: the transaction that the event has open is rolled back, as
  behind a fatal error. An event that the ceiling told to end may fail by
  another error first: upstream commits what it did until then.

  The linker redirects the server's calls of sp_head::execute_procedure() to
  this file (--wrap, in cmake/upstream/product.cmake).

  Threads: the session's, or the event's. Errors: as the replaced function.
*/

#include "mutex_lock.h"
#include "mysys/memdiag/ceiling/taken.h"
#include "mysys/memdiag/upstream/private_member.h"
#include "sql/sp_head.h"
#include "sql/sql_class.h"
#include "sql/transaction.h"

bool execute(sp_head *program, THD *thd, mem_root_deque<Item *> *arguments) asm(
    "__real__ZN7sp_head17execute_procedureEP3THDP14mem_root_dequeIP4ItemE");
bool execute_and_forgive(sp_head *program, THD *thd, mem_root_deque<Item *> *arguments) asm(
    "__wrap__ZN7sp_head17execute_procedureEP3THDP14mem_root_dequeIP4ItemE");

namespace memdiag {

struct Fatal_error {
  using Member = bool THD::*;
  friend Member member_of(Fatal_error);
};
template struct Names<Fatal_error, &THD::m_is_fatal_error>;

}  // namespace memdiag

/** The event that the ceiling has ended gave its memory back. */
bool execute_and_forgive(sp_head *program, THD *thd,
                         mem_root_deque<Item *> *arguments) {
  const bool has_failed = execute(program, thd, arguments);
  if (program->m_type == enum_sp_type::EVENT &&
      memdiag::ceiling::thread.taker.told_to_end.load()) {
    if (has_failed && thd->is_fatal_error() &&
        thd->in_multi_stmt_transaction_mode())
      (void)trans_rollback(thd);
    thd->*member_of(memdiag::Fatal_error{}) = false;
    MUTEX_LOCK(locked, &thd->LOCK_thd_data);
    if (thd->killed == THD::KILL_QUERY) thd->killed = THD::NOT_KILLED;
  }
  return has_failed;
}
