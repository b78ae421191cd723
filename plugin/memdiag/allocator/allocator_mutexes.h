/*
  Collector: how often jemalloc's own mutexes were taken and waited for
  (jemalloc(3), stats.mutexes.* and stats.arenas.<i>.mutexes.*). jemalloc copies
  a mutex's counters while it holds that mutex, so they belong together. The
  mutexes of an arena's bins are added up.

  Reading takes these mutexes too: a refresh of the statistics takes each mutex
  of each arena once or twice, and each control that is read takes the mutex
  named ctl.

  Cost, measured: 2.6 ms with 100 arenas. Figures about waiting are read only
  for mutexes with waits.
  Threads: as a Control_reader. Errors: as in control_reader.h.
*/

#ifndef MEMDIAG_ALLOCATOR_MUTEXES_H
#define MEMDIAG_ALLOCATOR_MUTEXES_H

#include <cstdint>
#include <optional>
#include <vector>

#include "plugin/memdiag/allocator/control_reader.h"

namespace memdiag {

struct Mutex_figures {
  Reading locks;
  Reading spins;
  Reading waits;
  Reading owner_switches;
  Reading total_wait_ns;
  Reading max_wait_ns;
  Reading max_waiters;
};

/** One row of MEMDIAG_MUTEXES. */
struct Mutex_row : Mutex_figures {
  const char *name;
  /** Empty for a mutex that belongs to no arena. */
  std::optional<unsigned> arena;
  std::optional<const char *> pool;
};

/** Mutexes that jemalloc has once. A mutex that was never taken has no row. */
void append_global_mutexes(Control_reader *reader,
                           std::vector<Mutex_row> *rows);

/** Mutexes of an arena. A mutex that was never taken has no row.
@param bins  the number of size classes of small blocks */
void append_mutexes(Control_reader *reader, Arena_id arena, unsigned bins,
                    std::vector<Mutex_row> *rows);

}  // namespace memdiag

#endif  // MEMDIAG_ALLOCATOR_MUTEXES_H
