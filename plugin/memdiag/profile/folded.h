/*
  A profile as folded stacks, the form that Brendan Gregg's flamegraph.pl,
  inferno and speedscope read: one line for each distinct stack, its functions
  from the outermost to the innermost, a space, live bytes.

    main;mysqld_main;handle_connection;...;THD::THD 81920

  Threads: any. Errors: std::bad_alloc.
*/

#ifndef MEMDIAG_FOLDED_H
#define MEMDIAG_FOLDED_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "plugin/memdiag/profile/profile.h"
#include "plugin/memdiag/profile/stacks.h"
#include "plugin/memdiag/profile/symbols.h"

namespace memdiag::profile {

/** The lines in the order of their text. Sites whose functions are the same
share a line. Bytes are estimates, rounded; a line of 0 bytes is left out.
@param symbols  of this profile */
std::string folded(const Profile &profile, const Symbols &symbols,
                   First_frame first = First_frame::function);

/** Bytes of each line. */
using Folded_bytes = std::map<std::string, uint64_t, std::less<>>;

/** More different stacks are refused: a short text would take 50 times its
size. The profiler's default memory has room for half as many. */
constexpr size_t most_earlier_stacks = 100'000;
/** Reads what folded() wrote. Any text may come: it is untrusted. Empty lines
are ignored, and stacks that occur twice are added up.
@param wrong_line  gets the number (from 1) of the first line that is not a
stack, a space and a number below 2^63, or is one stack too many. A last line
without a line end is wrong, too, because the text was cut off
@return empty: a line is wrong */
std::optional<Folded_bytes> parse_folded(std::string_view text,
                                         size_t *wrong_line);

}  // namespace memdiag::profile

#endif  // MEMDIAG_FOLDED_H
