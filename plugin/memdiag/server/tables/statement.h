/*
  The running statement as the tables see it: its readings, its warnings, its
  end.

  The tables of a statement have readings in common: a snapshot of the
  allocator, the ledger, a report of the host, the routes, the facts of the
  budget, InnoDB's components, the largest session, and the counts of
  Performance Schema, which has some for each session. Each is taken when a
  table first needs it. Joined tables therefore agree. Statements of a read
  group (read_group.h) share them, too. A thread frees the readings some 200 ms
  after the last of these statements has ended. If it could not be started, the
  next statement that reads a table does.

  Threads: a Statement belongs to the session's thread.
  Errors: a reading that failed is empty in the value; the statement gets a
  warning for it, once. After the statement was killed a reading may be
  incomplete; forget_readings() then keeps it from later statements.
*/

#ifndef MEMDIAG_STATEMENT_H
#define MEMDIAG_STATEMENT_H

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mysys/memdiag/routes/routes.h"
#include "plugin/memdiag/allocator/allocator_snapshot.h"
#include "plugin/memdiag/budget/budget.h"
#include "plugin/memdiag/host/host.h"
#include "plugin/memdiag/ledger/instruments.h"
#include "plugin/memdiag/ledger/ledger_rows.h"
#include "plugin/memdiag/server/bridge/server_sessions.h"
#include "storage/innobase/memdiag/innodb.h"

class THD;

namespace memdiag {

class Statement_cache;

class Statement {
 public:
  /** The first use by a statement begins a read group or joins the session's
  last one. @throws std::bad_alloc */
  explicit Statement(THD *thd);
  ~Statement();
  Statement(const Statement &) = delete;
  Statement &operator=(const Statement &) = delete;

  /** Valid as long as this object, or until a call that asks for details which
  this snapshot does not have. The functions below ask for none.
  @param details  the rows that the snapshot must have
  @throws std::bad_alloc */
  const Snapshot &snapshot(Details details = 0);

  /** Valid as long as this object. @throws std::bad_alloc */
  const host::Report &host_report();

  /** As routes::all() has them. Valid as long as this object.
  @throws std::bad_alloc */
  const std::vector<routes::Row> &all_routes();

  /** The cheap form of the ledger, made from snapshot(). Valid as long as that
  is. @throws std::bad_alloc */
  const std::vector<ledger::Row> &ledger_rows();

  /** The rows of MEMDIAG_INSTRUMENTS, made from the above and from counted().
  Valid as long as snapshot() is. @throws std::bad_alloc */
  const std::vector<instruments::Row> &instrument_rows();

  /** As perfschema::counted() has all of them. Valid as long as this object.
  @throws std::bad_alloc */
  const std::vector<instruments::Counted> &counted();

  /** The same of some instruments at least: all, if they were read already.
  @throws std::bad_alloc */
  std::vector<instruments::Counted> counted_of(
      std::span<const char *const> names);

  /** As innodb::components() has them. Valid as long as this object.
  @throws std::bad_alloc */
  const std::vector<innodb::Component> &innodb_components();

  /** Without the peaks of instruments. Valid as long as this object.
  @throws std::bad_alloc */
  const budget::Facts &budget_facts();

  /** As sessions::largest_client() has it. Valid as long as this object.
  @throws std::bad_alloc */
  const std::optional<sessions::Client> &largest_client();

  /** KILL or MAX_EXECUTION_TIME has ended it. */
  bool is_killed() const;

  /** Adds a warning. */
  void warn(const std::string &text);

  /** No later statement gets these readings. What the functions above returned
  is no longer valid. */
  void forget_readings();

 private:
  THD *const m_thd;
  const std::shared_ptr<Statement_cache> m_cache;
};

namespace statement_readings {

/** No later statement of the session gets the readings that it has now. */
void end_group(THD *thd);

/** Start and stop the thread that frees readings.
@return as Worker::start() */
int start();
void stop();

/** Stop the clock of read groups, or let it go on: a test then need not be
faster than a group grows old. */
void stop_clock_for_test(bool stop);

}  // namespace statement_readings
}  // namespace memdiag

#endif  // MEMDIAG_STATEMENT_H
