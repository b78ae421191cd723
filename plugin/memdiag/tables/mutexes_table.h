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
      "One row for each mutex inside the allocator; those that were never "
      "taken are left out. Counted since the server started. Looking takes "
      "them too: any table of the allocator's figures takes each mutex of each "
      "arena once or twice, and `ctl` for each figure.",
      0x0100,
      std::array{
          text_column<Row, &Row::name>(
              "NAME", 32,
              "As jemalloc names it: of the allocator as a whole (ctl, "
              "background_thread, prof ...; max_per_bg_thd is the highest "
              "figures of its background threads), or of an arena (large, "
              "extents_dirty, base ...). `bins` are the mutexes of an arena's "
              "size classes of small blocks together."),
          column<Row, &Row::arena>("ARENA", Unit::none,
                                   "The allocator's number of the arena; NULL: "
                                   "none."),
          text_column<Row, &Row::pool>("POOL", 64,
                                       "The pool it belongs to; NULL: none."),
          column<Row, &Row::locks>("LOCKS", Unit::count,
                                   "How often it was taken."),
          column<Row, &Row::spins>(
              "SPINS", Unit::count,
              "How often it was held by another thread, and free again before "
              "one had to sleep."),
          column<Row, &Row::waits>("WAITS", Unit::count,
                                   "How often a thread had to sleep for it."),
          column<Row, &Row::owner_switches>(
              "OWNER_SWITCHES", Unit::count,
              "How often another thread took it than the time before."),
          column<Row, &Row::total_wait_ns>("TOTAL_WAIT_NS", Unit::nanoseconds,
                                           "How long all WAITS took."),
          column<Row, &Row::max_wait_ns>("MAX_WAIT_NS", Unit::nanoseconds,
                                         "How long the longest took."),
          column<Row, &Row::max_waiters>(
              "MAX_WAITERS", Unit::count,
              "The most threads that waited for it at a time.")}};
}();

static_assert(fingerprint(mutexes_table) == 1884979439u,
              "columns changed: raise the table's version, then set this");

}  // namespace memdiag

#endif  // MEMDIAG_MUTEXES_TABLE_H
