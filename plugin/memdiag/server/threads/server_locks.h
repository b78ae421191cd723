/*
  Locks of the server that other sessions need at any time: to connect, to end,
  to read or set a variable, to be killed, or to be granted something. A thread
  that holds one must not wait for memory.

  Threads: about the calling one. Locks: none. Works within malloc(): it
  allocates nothing.
*/

#ifndef MEMDIAG_SERVER_LOCKS_H
#define MEMDIAG_SERVER_LOCKS_H

#include "mysql/components/services/bits/mysql_mutex_bits.h"

class THD;

namespace memdiag::server_locks {

/** The calling thread holds one of them. Where the owner of a mutex cannot be
read (another C library than glibc), those that are mutexes are not seen.
@param thd  of the calling thread */
bool holds_one(const THD &thd);

/** The calling thread holds the mutex. False where its owner cannot be read. */
bool is_mine(const mysql_mutex_t &mutex);

}  // namespace memdiag::server_locks

#endif  // MEMDIAG_SERVER_LOCKS_H
