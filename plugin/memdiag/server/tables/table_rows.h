/*
  The rows of each table: one function for each type of row in tables.h. The
  function collects what the rows are made from, and gives each row to a sink.

  Threads: the session's own. Errors: what could not be read is empty in the row
  and a warning of the statement. @throws std::bad_alloc
*/

#ifndef MEMDIAG_TABLE_ROWS_H
#define MEMDIAG_TABLE_ROWS_H

#include "plugin/memdiag/tables/tables.h"

namespace memdiag {

class Statement;

/** The receiver of a table's rows. */
template <typename Row>
class Sink {
 public:
  /** @param row  used during the call only, with its texts
  @return false: no more rows are wanted, because the statement was killed or an
  error was raised */
  virtual bool add(const Row &row) = 0;

 protected:
  ~Sink() = default;
};

#define DECLARE(name) \
  void add_rows(Statement *, Sink<decltype(name##_table)::Row> *);
MEMDIAG_TABLES(DECLARE)
#undef DECLARE

}  // namespace memdiag

#endif  // MEMDIAG_TABLE_ROWS_H
