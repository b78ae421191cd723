/*
  The server's switches for counting survivors of scopes and holdings of
  sessions. The server sets the options while it reads its command line.

  Threads: the server changes them under its lock of global variables. Threads
  may count meanwhile: a block or a statement of that moment may be left out.
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

namespace memdiag::sessions {

/** Begin to count bytes of threads (thread_bytes.h), digests (digests.h) and
intervals (intervals.h), with none, or end it: digests stay on show. */
void track(bool on);

}  // namespace memdiag::sessions

#endif  // MEMDIAG_TRACKING_H
