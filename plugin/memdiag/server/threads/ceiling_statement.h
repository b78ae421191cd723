/*
  The statement of the calling thread, as the ceiling knows it, and the errors
  that it gets. ceiling_gate.cc is what statements pass, and ceiling_owner.cc
  says about them what the sensor asks.

  Ownership: an Own is its thread's, and lives until the thread ends.
  Threads: all of it is about the calling thread. Units: bytes; microseconds.
*/

#ifndef MEMDIAG_CEILING_STATEMENT_H
#define MEMDIAG_CEILING_STATEMENT_H

#include <cstdint>

#include "my_sqlcommand.h"
#include "my_thread_local.h"
#include "plugin/memdiag/server/threads/ceiling_state.h"
#include "plugin/memdiag/server/threads/spilling.h"
#include "sql/error_handler.h"

class THD;

namespace memdiag::ceiling {

/** Puts the ceiling's error in the place of KILL's. */
class Told_to_end final : public Internal_error_handler {
 public:
  bool handle_condition(THD *, uint error, const char *,
                        Sql_condition::enum_severity_level *level,
                        const char *) override;
};

/** The calling thread's statement. */
struct Own {
  Running running;
  Spilling spilling;
  Told_to_end handler;
  /** The handler was pushed for the statement. */
  bool has_handler{false};
  /** The session that has the handler from its begin to its end. */
  my_thread_id session_with_handler{0};
  /** The gate has let its statement through without counting it. */
  bool exempt{false};
  /** The statement that passed the gate last has it. Later, the THD may have
  that of a routine's or a trigger's. */
  enum_sql_command command{SQLCOM_END};
  /** `running` may be in the list of those that wait. A thread that waits takes
  steps of the giver, and may grow by them. */
  bool at_gate{false};
  /** It is a COM_QUERY that began with the copy of its text, and was not seen
  in the parser. */
  bool copies_text{false};
  /** The ceiling's error is being raised. */
  bool raises{false};
};

Own &own();
/** The same, of a thread whose session has the handler. */
inline constinit thread_local Own *own_of_session = nullptr;

bool is_told_to_end(const Running &running);

/** Nothing is raised where there is an error already.
@param thd  of the calling thread; nullptr: it has none */
void raise_end_once(THD *thd);
/** See text_of_refusal(). */
void raise_refusal(uint64_t waited_us, Refused what = Refused::statement);

/** The part of a digest by which the ceiling learns. 0: there is none. */
uint64_t hash_of(const unsigned char *digest);

}  // namespace memdiag::ceiling

#endif  // MEMDIAG_CEILING_STATEMENT_H
