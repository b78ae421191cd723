#include "plugin/memdiag/server/threads/ceiling_statement.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>

#include "my_sys.h"
#include "mysqld_error.h"
#include "mysys_err.h"
#include "sql/sql_class.h"
#include "storage/innobase/memdiag/innodb.h"

namespace memdiag::ceiling {
namespace {

/** Errors of a statement that got no memory after it was told to end. Where a
constraint could not be computed, upstream says that it is violated. Where an
end breaks off the making of MyISAM's indexes, it says that they need a repair
(ER_NOT_KEYFILE). */
constexpr uint consequences[] = {ER_QUERY_INTERRUPTED,
                                 ER_OUTOFMEMORY,
                                 ER_OUT_OF_RESOURCES,
                                 ER_OUT_OF_SORTMEMORY,
                                 EE_OUTOFMEMORY,
                                 ER_RECORD_FILE_FULL,
                                 ER_CAPACITY_EXCEEDED,
                                 ER_ENGINE_OUT_OF_MEMORY,
                                 ER_CHECK_CONSTRAINT_VIOLATED};

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

}  // namespace

Own &own() {
  thread_local Own mine;
  return mine;
}

bool is_told_to_end(const Running &running) {
  return running.taker != nullptr &&
         running.taker->told_to_end.load(std::memory_order_acquire);
}

bool Told_to_end::handle_condition(THD *thd, uint error, const char *,
                                   Sql_condition::enum_severity_level *level,
                                   const char *) {
  Own &mine = own();
  // A row whose documents were refused. It was not to be logged yet.
  if (error == ER_BINLOG_ROW_LOGGING_FAILED && thd->is_error() &&
      thd->get_stmt_da()->mysql_errno() == ER_CAPACITY_EXCEEDED)
    return true;
  if (mine.raises || *level != Sql_condition::SL_ERROR ||
      !is_told_to_end(mine.running) ||
      (std::find(std::begin(consequences), std::end(consequences), error) ==
           std::end(consequences) &&
       !(error == ER_NOT_KEYFILE && thd->killed)))
    return false;
  raise_end(&mine, thd);
  return true;
}

void raise_end_once(THD *thd) {
  Own &mine = own();
  if (thd != nullptr && !mine.raises && !thd->is_error()) raise_end(&mine, thd);
}

void raise_refusal(uint64_t waited_us, Refused what) {
  try {
    my_printf_error(ER_CAPACITY_EXCEEDED, "%s", MYF(0),
                    text_of_refusal(waited_us, what).c_str());
  } catch (const std::bad_alloc &) {
    my_error(ER_OUT_OF_RESOURCES, MYF(0));
  }
}

uint64_t hash_of(const unsigned char *digest) {
  uint64_t hash;
  memcpy(&hash, digest, sizeof hash);
  return hash;
}

}  // namespace memdiag::ceiling
