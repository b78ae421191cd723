/*
  The SQL function memdiag_profile(format [, earlier]): the heap profile as text
  (tables/profile_formats.h), or its difference from an earlier
  memdiag_profile('folded'). It needs PROCESS. NULL while the profiler is off.

  Threads: as sql_function.h; calls from sessions' threads. KILL and
  max_execution_time end a call with an error.
*/

#ifndef MEMDIAG_PROFILE_FUNCTION_H
#define MEMDIAG_PROFILE_FUNCTION_H

namespace memdiag::profile_function {

/** @return whether SQL knows it now; false when the name is taken */
bool register_it();
void unregister_it();

}  // namespace memdiag::profile_function

#endif  // MEMDIAG_PROFILE_FUNCTION_H
