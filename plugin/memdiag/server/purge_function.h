/*
  The SQL function memdiag_purge(): see purge_receipt.h for what it returns.

  Known from the plugin's start to its end, without a row in mysql.func, so it
  works on a read-only server too. With --skip-grant-tables the server looks up
  no loadable function, and it is not there.
  Threads: register and unregister from the plugin's start and end; calls from
  sessions' threads, each on its own, one purge at a time
  (mysys/memdiag/pools/pools.h).
*/

#ifndef MEMDIAG_PURGE_FUNCTION_H
#define MEMDIAG_PURGE_FUNCTION_H

namespace memdiag::purge_function {

/** @return whether SQL knows it now; false when the name is taken */
bool register_it();
void unregister_it();

}  // namespace memdiag::purge_function

#endif  // MEMDIAG_PURGE_FUNCTION_H
