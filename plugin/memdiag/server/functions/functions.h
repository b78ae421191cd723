/*
  The SQL functions of this product.

  memdiag_purge(): tables/purge_receipt.h has what it returns. Each call is on
  its own, one purge at a time (mysys/memdiag/purging/purge.h).

  memdiag_profile(format [, earlier]): the heap profile as text
  (tables/profile_formats.h), or its difference from an earlier
  memdiag_profile('folded'). It needs PROCESS. NULL while the profiler is off.

  Threads: as sql_function.h; calls from sessions' threads. KILL and
  max_execution_time end a call with an error.
*/

#ifndef MEMDIAG_FUNCTIONS_H
#define MEMDIAG_FUNCTIONS_H

namespace memdiag::purge_function {

/** @return whether SQL knows it now; false when the name is taken */
bool register_it();
void unregister_it();

}  // namespace memdiag::purge_function

namespace memdiag::profile_function {

/** As for memdiag_purge(). */
bool register_it();
void unregister_it();

}  // namespace memdiag::profile_function

#endif  // MEMDIAG_FUNCTIONS_H
