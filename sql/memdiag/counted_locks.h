/*
  A thread that looks up another session has that session's LOCK_thd_data until
  it releases it (THD_ptr). Performance Schema copies all variables of a session
  meanwhile. The session cannot set a variable then, close its tables, end, or
  be killed.

  Threads: about the calling one. Locks: none. Works within malloc(): it
  allocates nothing.
*/

#ifndef MEMDIAG_COUNTED_LOCKS_H
#define MEMDIAG_COUNTED_LOCKS_H

namespace memdiag {

/** The calling thread has the lock of a session that it has looked up. */
bool holds_counted_lock();

}  // namespace memdiag

#endif  // MEMDIAG_COUNTED_LOCKS_H
