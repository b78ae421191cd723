/*
  Admission: makes a session wait while memory is short for its statement.
  advice/admission_gate.h decides, by what statements of the digest took before,
  which memdiag_sessions counts.

  Exempt are replication and all other system threads, sessions with the
  privilege CONNECTION_ADMIN or MEMDIAG_ADMIN, statements within stored
  programs, whose caller has been asked, and statements that end something, as
  COMMIT and KILL do. A statement that waits has opened no table, but its
  session may hold locks of an open transaction.

  KILL ends the wait, and so does max_execution_time of a SELECT, which begins
  anew when the statement runs.

  Threads: a session's own thread asks; the rest from any thread.
  Errors: where a figure is unknown, or there is no memory for the question,
  statements run.
*/

#ifndef MEMDIAG_ADMISSION_H
#define MEMDIAG_ADMISSION_H

#include <vector>

#include "plugin/memdiag/advice/admission.h"

namespace memdiag::admission {

enum Mode : unsigned long { off, watch, on };

/** Values of the server's variables. */
extern unsigned long mode;
extern unsigned wait_ms;
extern unsigned long long reserve_bytes;

/** Statements are asked from now on, if the mode says so. */
void start();
/** The mode or the reserve has changed. */
void changed();
/** No statement is asked any more. */
void stop();

/** A statement has waited for a second: reclaim costs less than its error. */
bool somebody_waits_long();

/** As shown in MEMDIAG_ADMISSIONS. @throws std::bad_alloc */
std::vector<Row> decisions();

}  // namespace memdiag::admission

#endif  // MEMDIAG_ADMISSION_H
