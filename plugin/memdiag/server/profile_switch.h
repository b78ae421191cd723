/*
  Binds the heap profiler to the server: its system variables, and the session
  and statement of a sample.

  Threads: start() and stop() from the plugin's start and end; set() by
  sessions, under the lock of global variables.
*/

#ifndef MEMDIAG_PROFILE_SWITCH_H
#define MEMDIAG_PROFILE_SWITCH_H

#include <string>

namespace memdiag::profile_switch {

/** In the order of profile_modes (tables/variable_list.h). */
enum Mode : unsigned long { off, on, record };

/** @name Values of the system variables @{ */
extern unsigned long mode;
extern unsigned long long sample_bytes;
extern unsigned long long memory_bytes;
/** @} */

/** Do what the variables ask for: switch the profiler on, anew if it is on
already, or off.
@return why it could not be switched on, with what to do; it is off then. Empty:
done. */
std::string apply();

/** Give the profiler the server's sessions, and apply() at start-up.
@return as apply() */
std::string start();
void stop();

}  // namespace memdiag::profile_switch

#endif  // MEMDIAG_PROFILE_SWITCH_H
