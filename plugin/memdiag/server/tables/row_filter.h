/*
  Drops rows of a table before the server stores them: those that the WHERE
  clause would drop later. A table of history may have a million rows, and
  `WHERE RUN = 0` then needs none of their memory.

  Only simple terms are used: comparisons of the table's own columns with
  constants. Evaluating them once more has no effect that could be seen.

  Threads: the session's own. Lifetime: it refers to the condition's items,
  which belong to the statement. Errors: comparing may raise an error in the
  session. The caller asks the THD after accepts() has returned false.
*/

#ifndef MEMDIAG_ROW_FILTER_H
#define MEMDIAG_ROW_FILTER_H

#include <cstddef>
#include <vector>

class Item;
struct TABLE;

namespace memdiag {

class Row_filter {
 public:
  /** @param condition  what the server hands to a table's fill function, or
  nullptr @throws std::bad_alloc */
  Row_filter(Item *condition, const TABLE *table);

  /** The columns that accepts() reads, by their index in the table; each once.
   */
  const std::vector<size_t> &columns() const { return m_columns; }

  /** @return false: the condition is not true of the row in the table's record
  buffer, whatever its other columns hold */
  bool accepts() const;

 private:
  std::vector<Item *> m_terms;
  std::vector<size_t> m_columns;
};

}  // namespace memdiag

#endif  // MEMDIAG_ROW_FILTER_H
