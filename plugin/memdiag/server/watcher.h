/*
  The watcher: a thread that looks five times a second whether memory is short,
  and then frees memory that the server can do without, or only reports what it
  would free (advice/pressure_response.h, which decides; this file acts).

  Its steps are safe outside of a session:
  - Pools are purged as by memdiag_purge().
  - Full-text caches are written by InnoDB's own full-text thread, on request.
  - Unused tables are closed as by the server for flush_time: under the locks of
    all table caches and LOCK_open, some 20 microseconds for each table. No
    table can be opened meanwhile.
  - The buffer pool is made smaller as by SET GLOBAL innodb_buffer_pool_size,
    where memdiag_pressure_buffer_pool_min allows it. InnoDB does it in the
    background.
  Caches and the buffer pool are left alone while the server starts and shuts
  down.

  Each step and the end of the pressure are a line in the error log. A smaller
  buffer pool and the reports of WATCH are warnings; the other lines need
  log_error_verbosity=3. No line has a name that a user chose.

  The watcher is off by default: a drop-in server must not change its throughput
  by shrinking caches. Purging of quiet pools does not depend on it.

  Threads: start() and stop() as those of a Worker; changed() from any thread.
  Errors: a figure that cannot be read causes no step. Without memory for a few
  strings, a look is left out.
*/

#ifndef MEMDIAG_WATCHER_H
#define MEMDIAG_WATCHER_H

namespace memdiag::watcher {

enum Mode : unsigned long { off, watch, on };

/** Values of the server's variables. */
extern unsigned long mode;
extern unsigned limit_percent;
extern unsigned stall_percent;
/** The least size of the buffer pool, in bytes; 0: it is left alone. */
extern unsigned long long buffer_pool_min_bytes;

/** Begin to watch, now or when the mode says so.
@return 0, or an errno: there is no thread */
int start();

void stop();

/** A variable has changed: the thread looks at once, without the pause between
two rounds. @return as start() */
int changed();

}  // namespace memdiag::watcher

#endif  // MEMDIAG_WATCHER_H
