/*
  Binds the heap profiler to the server: its system variables, the session and
  statement of a sample, and the thread of the flight recorder. That thread
  reads RSS four times a second while memdiag_profile is RECORD.

  Threads: start() and stop() from the plugin's start and end, end() when the
  process ends. Sessions call
  apply(), one at a time. It waits for the recorder's thread and for readers of
  the profile, so the caller releases LOCK_global_system_variables meanwhile.
  runs() from any thread, after start().
*/

#ifndef MEMDIAG_PROFILE_SWITCH_H
#define MEMDIAG_PROFILE_SWITCH_H

#include <string>

#include "plugin/memdiag/profile_file/profile_file.h"

namespace memdiag::profile_switch {

/** In the order of profile_modes (tables/variable_list.h). */
enum Mode : unsigned long { off, on, record };

inline constexpr const char *file_name = "memdiag_profile.bin";

struct Settings {
  unsigned long mode;
  unsigned long long sample_bytes;
  unsigned long long memory_bytes;
};
/** Values of the system variables. While clients run, they are read and written
with LOCK_global_system_variables. */
extern Settings settings;

/** Do what is wanted: switch the profiler on, anew if it is on already, or off.
@return why it could not be switched on, with what to do; it is off then. Empty:
done. Too little memory is such a reason, too. */
std::string apply(const Settings &wanted);

/** Give the profiler the server's sessions, and do what the variables ask for.
@param path    of the flight recorder's file; empty: nothing is recorded
@param server  Run_id::server
@return as apply(); the mode is off then, too */
std::string start(const std::string &path, uint64_t server);
void stop();
/** After stop(): the flight recorder's file says from now on that the run was
shut down. */
void end() noexcept;

/** As Flight_recorder::runs(). */
profile::Contents runs(std::string *remark);

}  // namespace memdiag::profile_switch

#endif  // MEMDIAG_PROFILE_SWITCH_H
