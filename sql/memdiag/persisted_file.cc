/*
  SET PERSIST writes the file of all persisted variables anew, from JSON objects
  that it copies. Below the ceiling, a copy breaks off for a statement that was
  told to end (patches/hooks/0055), and nothing there looks for the error: the
  file would lack the variables, and the next start would go without them. So
  the statement is not told while it writes. Nor does it wait, because it holds
  the mutex of the file.

  The linker redirects the server's calls of this function to this file (--wrap,
  in cmake/upstream/product.cmake). RESET PERSIST, which calls it elsewhere, is
  never told to end.

  Threads: the session's. Errors: as the replaced function.
*/

#include "mysys/memdiag/ceiling/sensor.h"
#include "sql/persisted_variable.h"

bool write_file(Persisted_variables_cache *variables) asm(
    "__real__ZN25Persisted_variables_cache13flush_to_fileEv");
bool write_whole_file(Persisted_variables_cache *variables) asm(
    "__wrap__ZN25Persisted_variables_cache13flush_to_fileEv");

bool write_whole_file(Persisted_variables_cache *variables) {
  const memdiag::ceiling::No_wait no_wait;
  return write_file(variables);
}
