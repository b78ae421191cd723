/*
  jemalloc's own threads and the fork of --daemonize: a forked child has none of
  its parent's threads, and jemalloc then runs without until it is told to make
  new ones.
*/

#ifndef MEMDIAG_BACKGROUND_THREADS_H
#define MEMDIAG_BACKGROUND_THREADS_H

namespace memdiag::background_threads {

/** Start them if the options ask for them and they do not run. Any thread, any
time after the last fork.
@return 0, or the errno of the control that failed */
int ensure();

}  // namespace memdiag::background_threads

#endif  // MEMDIAG_BACKGROUND_THREADS_H
