/*
  The columns of INFORMATION_SCHEMA.MEMDIAG_MUTEXES.
*/

#ifndef MEMDIAG_MUTEXES_TABLE_H
#define MEMDIAG_MUTEXES_TABLE_H

#include "plugin/memdiag/allocator/allocator_mutexes.h"
#include "plugin/memdiag/tables/column.h"

namespace memdiag {

inline constexpr Table mutexes_table = [] {
  using Row = Mutex_row;
  return Table{
      "MEMDIAG_MUTEXES",
      "One row for each mutex inside the allocator that was ever taken, with "
      "counts since the server started. Reading adds to the counts: each read "
      "of a table with the allocator's figures takes each mutex of each arena "
      "once or twice, and `ctl` once for each figure.",
      0x0100,
      std::array{
          text_column<Row, &Row::name>(
              "NAME", 32,
              "jemalloc's name. Of the allocator as a whole: ctl, "
              "background_thread, prof and so on; max_per_bg_thd has the "
              "highest figures of the background threads. Of an arena: large, "
              "extents_dirty, base and so on; `bins` are the mutexes of all "
              "its size classes of small blocks."),
          column<Row, &Row::arena>("ARENA", Unit::none,
                                   "jemalloc's arena number. NULL: none."),
          text_column<Row, &Row::pool>("POOL", 64,
                                       "The arena's pool. NULL: none."),
          column<Row, &Row::locks>("LOCKS", Unit::count,
                                   "Times that it was taken."),
          column<Row, &Row::spins>(
              "SPINS", Unit::count,
              "Times that another thread held it and released it before the "
              "waiting thread had to sleep."),
          column<Row, &Row::waits>("WAITS", Unit::count,
                                   "Times that a thread had to sleep."),
          column<Row, &Row::owner_switches>(
              "OWNER_SWITCHES", Unit::count,
              "Times that it went to a thread other than the last one."),
          column<Row, &Row::total_wait_ns>("TOTAL_WAIT_NS", Unit::nanoseconds,
                                           "Total duration of WAITS."),
          column<Row, &Row::max_wait_ns>("MAX_WAIT_NS", Unit::nanoseconds,
                                         "Longest wait."),
          column<Row, &Row::max_waiters>(
              "MAX_WAITERS", Unit::count,
              "Most threads that waited at a time.")}};
}();

static_assert(fingerprint(mutexes_table) == 1884979439u,
              "columns changed: raise the table's version, then set this");

}  // namespace memdiag

#endif  // MEMDIAG_MUTEXES_TABLE_H
