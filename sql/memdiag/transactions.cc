/*
  What the ceiling promised to a transaction goes back when the transaction
  ends. In a CALL or an event, that is before the statement's end, and in a
  session that is reset, there is no statement. So it is seen where upstream
  tells the engines. A statement that is undone within its transaction
  gives back what it was promised beyond those before it.

  The linker redirects the server's calls of three functions to this file
  (--wrap, in cmake/upstream/product.cmake). Two of them call each other within
  their file, which is not redirected. XA PREPARE calls neither. It detaches the
  transaction or, where xa_detach_on_prepare is OFF, the end of the session
  does. XA COMMIT and XA ROLLBACK of what is prepared call none of the three:
  memdiag_statement_ended() sees their end.

  Threads: the session's. Errors: as the replaced functions.
*/

#include "mysys/memdiag/ceiling/sensor.h"
#include "mysys/memdiag/ceiling/taken.h"
#include "sql/sql_class.h"

int commit(THD *thd, bool all, bool ignore_global_read_lock) asm(
    "__real__Z15ha_commit_transP3THDbb");
int commit_and_tell(THD *thd, bool all, bool ignore_global_read_lock) asm(
    "__wrap__Z15ha_commit_transP3THDbb");
int roll_back(THD *thd, bool all) asm("__real__Z17ha_rollback_transP3THDb");
int roll_back_and_tell(THD *thd,
                       bool all) asm("__wrap__Z17ha_rollback_transP3THDb");
bool detach(Transaction_ctx *transaction) asm(
    "__real__ZN2xa17Transaction_cache6detachEP15Transaction_ctx");
bool detach_and_tell(Transaction_ctx *transaction) asm(
    "__wrap__ZN2xa17Transaction_cache6detachEP15Transaction_ctx");

namespace {

namespace ceiling = memdiag::ceiling;

/** Within the session's transaction, upstream reads its dictionary in another
one. A plugin may run statements in a session of its own, and end that. */
bool is_promised_to(const Transaction_ctx *transaction) {
  const ceiling::Thread &self = ceiling::thread;
  return (self.commit_bytes != 0 || self.commit_waited_us != 0) &&
         self.commit_of == transaction;
}

/** @param all  not the statement alone */
void tell_end(const THD *thd, bool all, bool undone) {
  // Upstream stores a GTID within the transaction.
  if (!is_promised_to(thd->get_transaction()) ||
      thd->is_operating_gtid_table_implicitly)
    return;
  if (all || !thd->in_active_multi_stmt_transaction())
    ceiling::transaction_ended();
  else
    ceiling::part_of_transaction_ended(undone);
}

}  // namespace

int commit_and_tell(THD *thd, bool all, bool ignore_global_read_lock) {
  const int error = commit(thd, all, ignore_global_read_lock);
  tell_end(thd, all, error != 0);
  return error;
}

int roll_back_and_tell(THD *thd, bool all) {
  const int error = roll_back(thd, all);
  tell_end(thd, all, true);
  return error;
}

bool detach_and_tell(Transaction_ctx *transaction) {
  const bool is_refused = detach(transaction);
  if (is_promised_to(transaction)) ceiling::transaction_ended();
  return is_refused;
}
