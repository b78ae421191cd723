/*
  The columns of INFORMATION_SCHEMA.MEMDIAG_STACKS.
*/

#ifndef MEMDIAG_STACKS_TABLE_H
#define MEMDIAG_STACKS_TABLE_H

#include "plugin/memdiag/profile/profile_rows.h"
#include "plugin/memdiag/tables/column.h"

namespace memdiag {

inline constexpr Table stacks_table = [] {
  using Row = profile::Stack_row;
  return Table{
      "MEMDIAG_STACKS",
      "One row for each frame of each stack of the profile. Empty while "
      "memdiag_profile is OFF.",
      0x0101,
      std::array{
          column<Row, &Row::stack>("STACK", Unit::none,
                                   "Number of the stack. It is not used again "
                                   "before the profiler is switched off."),
          column<Row, &Row::frame>(
              "FRAME", Unit::none,
              "Position in the stack, from 1. The allocation comes first."),
          text_column<Row, &Row::address>(
              "ADDRESS", 18,
              "Return address in the process. NULL: MODULE is known, and "
              "MODULE_ADDRESS is the address in it."),
          text_column<Row, &Row::function>(
              "FUNCTION", 512,
              "Function, from the symbol table. NULL: not known."),
          text_column<Row, &Row::file>(
              "FILE", 512,
              "Source file. NULL: the server reads no line numbers; the "
              "program memdiag adds them from the debug package."),
          column<Row, &Row::line>("LINE", Unit::none, "Line in FILE."),
          text_column<Row, &Row::module>(
              "MODULE", 512, "Executable or library that has the function."),
          text_column<Row, &Row::module_address>(
              "MODULE_ADDRESS", 18,
              "Address of the call in MODULE, as addr2line takes it."),
          text_column<Row, &Row::build_id>("BUILD_ID", 64,
                                           "Build ID of MODULE.")}};
}();

static_assert(fingerprint(stacks_table) == 2976848988u,
              "columns changed: raise the table's version, then set this");

}  // namespace memdiag

#endif  // MEMDIAG_STACKS_TABLE_H
