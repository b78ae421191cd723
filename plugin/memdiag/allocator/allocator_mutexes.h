/*
  Collector: how often jemalloc's own mutexes were taken and waited for
  (jemalloc(3), stats.mutexes.* and stats.arenas.<i>.mutexes.*). Each mutex's
  counters are copied while it is held, so they belong together. The mutexes of
  an arena's size classes are added up.

  Looking takes them too: a refresh of the statistics takes each mutex of each
  arena once or twice, and each control that is read takes the one called ctl.

  Cost: 2.6 ms with 100 arenas, measured; what follows from waiting is read only
  where there was any.
  Threads: as a Reader.
  Errors: as in control_reader.h.
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
  /** Empty for those that are not an arena's. */
  std::optional<unsigned> arena;
  std::optional<const char *> pool;
};

/** Those that jemalloc has once. Without any that was never taken. */
void append_global_mutexes(Reader *reader, std::vector<Mutex_row> *rows);

/** Those of an arena. Without any that was never taken.
@param bins  how many classes of small blocks there are */
void append_mutexes(Reader *reader, Arena_id arena, unsigned bins,
                    std::vector<Mutex_row> *rows);

}  // namespace memdiag

#endif  // MEMDIAG_ALLOCATOR_MUTEXES_H
