/*
  The server's switches for counting survivors of scopes and holdings of
  sessions. The server sets them while it reads its command line.

  Threads: the server changes them under its lock of global variables.
*/

#ifndef MEMDIAG_TRACKING_H
#define MEMDIAG_TRACKING_H

namespace memdiag::tracking {

struct Options {
  bool survivors;
  bool sessions;
};
extern Options options;

/** Begin to count what the options ask for, at start-up. */
void apply_options();

}  // namespace memdiag::tracking

#endif  // MEMDIAG_TRACKING_H
