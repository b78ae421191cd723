/*
  The watcher: a thread that looks five times a second whether memory is short
  (pressure.h), and then gives back what the server can do without (relief.h),
  or only says what it would.

  What it does is safe for a thread that is no session's. Pages are purged as
  memdiag_purge() does it, and noted in MEMDIAG_PURGES. Full-text caches are
  written by InnoDB's own full-text thread, which is only asked to. Unused
  tables are closed as the server's own thread does it for flush_time: under the
  locks of all table caches and LOCK_open, so that nobody opens a table
  meanwhile; it takes some 20 microseconds for each. The buffer pool, where
  memdiag_pressure_buffer_pool_min allows it, is made smaller as by SET GLOBAL
  innodb_buffer_pool_size: InnoDB does it by itself. Caches and the buffer pool
  are left alone while the server starts and shuts down.

  Everything that is done, and the end of the pressure, is a line in the error
  log, with log_error_verbosity=3; no line has a name of a user's.

  It is off by default, because a server that is put in another's place is to do
  what that one did: caches that shrink by themselves are seen in its
  throughput. What costs nobody anything, purging pools that fell quiet, goes on
  without it.

  Threads: start() and stop() as of a Worker; changed() from any thread.
  Errors: what cannot be read is not acted on; without memory for the watcher's
  own few strings a look is left out.
*/

#ifndef MEMDIAG_WATCHER_H
#define MEMDIAG_WATCHER_H

namespace memdiag::watcher {

enum Mode : unsigned long { off, watch, on };

/** Values of the server's variables. */
extern unsigned long mode;
extern unsigned limit_percent;
extern unsigned stall_percent;
/** How small the buffer pool may be made; 0: it is left alone. */
extern unsigned long long buffer_pool_min_bytes;

/** Begin to watch, now or when the mode says so.
@return 0, or an errno: there is no thread */
int start();

void stop();

/** A variable has another value: to be heeded at once.
@return as start() */
int changed();

}  // namespace memdiag::watcher

#endif  // MEMDIAG_WATCHER_H
