/*
  The watcher: a thread that checks five times a second whether memory is short.
  If it is, the watcher frees memory that the server can do without, or only
  reports what it would free. pressure/pressure_response.h decides; this file
  acts.

  Its steps are safe outside of a session:
  - It purges pools as memdiag_purge() does.
  - It asks InnoDB's own full-text thread to write full-text caches.
  - It closes unused tables as the server does for flush_time. It holds the
    locks of all table caches and LOCK_open for some 20 microseconds for each
    table. No table can be opened meanwhile.
  - It shrinks the buffer pool as SET GLOBAL innodb_buffer_pool_size does, if
    memdiag_pressure_buffer_pool_min allows it. InnoDB does the work in the
    background.
  While the server starts and shuts down, the watcher changes neither caches
  nor the buffer pool.

  Each step and the end of the pressure are a line in the error log. A smaller
  buffer pool and the reports of WATCH are warnings; the other lines need
  log_error_verbosity=3. No line has a name that a user chose.

  The watcher is off by default: a drop-in server must not change its throughput
  by shrinking caches. Purging of quiet pools does not depend on it.

  Threads: start() and stop() as those of a Worker; changed() from any thread.
  Errors: a figure that cannot be read causes no step. Without memory for a few
  strings, the watcher skips a check.
*/

#ifndef MEMDIAG_WATCHER_H
#define MEMDIAG_WATCHER_H

namespace memdiag::watcher {

enum Mode : unsigned long { off, watch, on };

/** Values of the server's variables. */
extern unsigned long mode;
extern unsigned limit_percent;
extern unsigned stall_percent;
/** The least size of the buffer pool, in bytes; 0: it is never shrunk. */
extern unsigned long long buffer_pool_min_bytes;

/** Begin to watch, now or when the mode says so.
@return 0, or an errno: there is no thread */
int start();

void stop();

/** A variable has changed: the thread checks at once, without the pause between
two rounds. @return as start() */
int changed();

}  // namespace memdiag::watcher

#endif  // MEMDIAG_WATCHER_H
