/*
  The SQL function memdiag_purge(): see purge_receipt.h for what it returns.

  Threads: as sql_function.h; calls from sessions' threads, each on its own, one
  purge at a time (mysys/memdiag/purging/purge.h).
*/

#ifndef MEMDIAG_PURGE_FUNCTION_H
#define MEMDIAG_PURGE_FUNCTION_H

namespace memdiag::purge_function {

/** @return whether SQL knows it now; false when the name is taken */
bool register_it();
void unregister_it();

}  // namespace memdiag::purge_function

#endif  // MEMDIAG_PURGE_FUNCTION_H
