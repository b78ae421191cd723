/*
  Locks that are private to a file of upstream's. What takes and releases them
  is counted.

  A thread that looks up another session has that session's LOCK_thd_data until
  it releases it (THD_ptr). Performance Schema copies all variables of a session
  meanwhile. The session cannot set a variable then, close its tables, end, or
  be killed.

  Performance Schema copies the cache of host names below its mutex, which each
  login over TCP needs. The copy is of the cache's size. One that is larger than
  the ceiling's reserve waits even so.

  A time zone that is named for the first time is read from its tables below the
  mutex that SET of any time zone needs, and CONVERT_TZ().

  Threads: about the calling one. Locks: none. Works within malloc(): it
  allocates nothing.
*/

#ifndef MEMDIAG_COUNTED_LOCKS_H
#define MEMDIAG_COUNTED_LOCKS_H

namespace memdiag {

/** The calling thread has one of them. */
bool holds_counted_lock();

}  // namespace memdiag

#endif  // MEMDIAG_COUNTED_LOCKS_H
