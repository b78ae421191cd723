/*
  Admission makes a session wait while memory is short for its statement.
  admission/admission_gate.h decides, by the memory of earlier statements of the
  digest. memdiag_sessions counts that memory.

  These never wait:
  - replication and all other system threads
  - sessions with the privilege CONNECTION_ADMIN, GROUP_REPLICATION_ADMIN,
    PROCESS, REPLICATION SLAVE, REPLICATION_SLAVE_ADMIN, SHUTDOWN, SUPER or
    SYSTEM_VARIABLES_ADMIN
  - statements within stored programs: the calling statement has passed the gate
  - statements that end something, such as COMMIT, KILL and SHUTDOWN

  A waiting statement has opened no table, but its session may hold locks of an
  open transaction.

  KILL ends the wait, and so does max_execution_time of a SELECT. That time
  begins anew when the statement runs.

  Threads: a session's own thread asks; the rest from any thread. stop() does
  not wait: it wakes the waiting statements, and they run. Locks: all functions
  here, and a statement that asks, take one mutex. It is held while the kernel's
  figures and the pools' unused pages are read, but not while a statement waits
  or purges. Errors: a statement runs if a figure is unknown, or if there is no
  memory for the decision.
*/

#ifndef MEMDIAG_ADMISSION_H
#define MEMDIAG_ADMISSION_H

#include <vector>

#include "plugin/memdiag/admission/admission_log.h"

namespace memdiag::admission {

enum Mode : unsigned long { off, watch, on };

/** Values of the server's variables. */
extern unsigned long mode;
extern unsigned wait_ms;
extern unsigned long long reserve_bytes;

/** From now on statements pass the gate, if the mode says so. */
void start();
/** The mode or the reserve has changed. */
void changed();
/** No statement passes the gate any more. */
void stop();

/** True if a statement has waited for a second: shrinking caches costs less
than its error. */
bool statement_waits_long();

/** As shown in MEMDIAG_ADMISSIONS. @throws std::bad_alloc */
std::vector<Row> decisions();

}  // namespace memdiag::admission

#endif  // MEMDIAG_ADMISSION_H
