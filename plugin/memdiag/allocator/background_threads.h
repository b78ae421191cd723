/*
  jemalloc's background threads across the fork of --daemonize. A forked child
  has none of its parent's threads, and jemalloc does not make new ones by
  itself.
*/

#ifndef MEMDIAG_BACKGROUND_THREADS_H
#define MEMDIAG_BACKGROUND_THREADS_H

namespace memdiag::background_threads {

/** Start the threads if the options ask for them and they do not run. May be
called from any thread, after the last fork.
@return 0, or the errno of the control that failed */
int ensure();

}  // namespace memdiag::background_threads

#endif  // MEMDIAG_BACKGROUND_THREADS_H
