/*
  The ceiling keeps the server's memory below a target (memdiag_memory_target).
  docs/ceiling.md says how; mysys/memdiag/ceiling has the account and the
  sensor, ceiling/giving.h the policy; this file acts.

  A server that starts with OFF has no thread of it and no sensor before the
  first switch. After a switch to OFF the thread sleeps, the sensor returns at
  once, and there is no gate.

  The giver is a thread. Statements that wait before they begin take steps of
  the giver themselves: they hold no latch, and the giver may be starved of the
  CPU. It knows statements from 1 MB on, and those that began when room was
  short. Others cost it nothing: while the level is green, those of a digest
  that is known to be small are not counted, unless they grow large.

  A handler of errors on the session puts ER_CAPACITY_EXCEEDED in the place of
  ER_QUERY_INTERRUPTED when a statement was told to end. It is the server's own
  way to exchange an error, and needs neither a patch nor the linker, which
  link-time optimization defeats. A session has the handler from its begin to
  its end; one that began before the ceiling was switched on has it for each
  statement. Before its gate, while it is parsed, a statement is not killed: the
  parser is told by the error itself, and the copy of the text before it is
  refused.

  Threads: start() and stop() as those of a Worker; changed() and actions() from
  any. Locks: one mutex, which the caller of changed() must not hold; under it
  LOCK_thd_data and LOCK_query_plan of the session that is told to end, if they
  are free. stop() gives all frames of the buffer pool back. Errors: if a figure
  is unknown, nothing is done.
*/

#ifndef MEMDIAG_CEILING_H
#define MEMDIAG_CEILING_H

#include <string>
#include <string_view>
#include <vector>

#include "plugin/memdiag/ceiling/ceiling_log.h"

namespace memdiag::ceiling {

/** @name Values of the server's variables @{ */
extern char *wish;
extern unsigned wait_ms;
/** @} */

/** False: memdiag_memory_target cannot be set to it. */
bool is_target(std::string_view text);

/** From now on the variable counts. A wrong text in it is a warning, and OFF.
 */
void start();
/** Takes the text of the variable. @return 0, or an errno: the ceiling is OFF
 */
int changed(std::string_view text);
/** The server needed more at rest than the target when that was set. The caller
set it. @return "": it did not, or nothing is known */
std::string doubt();
/** The ceiling is OFF, and no frame is parked. */
void stop();

/** As shown in MEMDIAG_CEILING. @throws std::bad_alloc */
std::vector<Row> actions();

}  // namespace memdiag::ceiling

#endif  // MEMDIAG_CEILING_H
