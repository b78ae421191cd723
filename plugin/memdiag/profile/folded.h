/*
  A profile as folded stacks, the form that Brendan Gregg's flamegraph.pl,
  inferno and speedscope read: one line for each distinct stack, its functions
  from the outermost to the innermost, a space, live bytes.

    main;mysqld_main;handle_connection;...;THD::THD 81920

  Threads: any. Errors: std::bad_alloc.
*/

#ifndef MEMDIAG_FOLDED_H
#define MEMDIAG_FOLDED_H

#include <string>

#include "plugin/memdiag/profile/profile.h"
#include "plugin/memdiag/profile/stacks.h"
#include "plugin/memdiag/profile/symbols.h"

namespace memdiag::profile {

/** The lines in the order of their text. Sites whose functions are the same
share a line. Bytes are estimates, rounded; a line of 0 bytes is left out.
@param symbols  of this profile */
std::string folded(const Profile &profile, const Symbols &symbols,
                   First_frame first = First_frame::function);

}  // namespace memdiag::profile

#endif  // MEMDIAG_FOLDED_H
