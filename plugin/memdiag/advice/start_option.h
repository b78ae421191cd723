/*
  What an option was set to when the server started.

  A pure function. Errors: a text that the server would not take is empty.
*/

#ifndef MEMDIAG_START_OPTION_H
#define MEMDIAG_START_OPTION_H

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace memdiag::advisor {

/** The number that the last of these arguments gives to an option.
@param arguments  those of the option files, then those of the command line;
                  the first is the program
@param name       with dashes, as in option files
@return empty: the option is not among them, is wrong, or may be meant by an
abbreviation */
std::optional<uint64_t> last_number(std::span<const char *const> arguments,
                                    std::string_view name);

}  // namespace memdiag::advisor

#endif  // MEMDIAG_START_OPTION_H
