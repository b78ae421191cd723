/*
  A thread that Performance Schema does not start begins here: its stack is a
  region.

  The linker redirects the server's calls of my_thread_init() to this file
  (--wrap, in cmake/upstream/product.cmake). Those of a plugin that is loaded
  are not redirected: a thread that such a plugin starts without Performance
  Schema has no region.

  Threads: the one that begins. Errors: as the replaced function.
*/

#include "mysys/memdiag/upstream/hooks.h"

bool begin_by_server() asm("__real__Z14my_thread_initv");
/** Hidden: group replication has a function of this name for its own calls. */
[[gnu::visibility("hidden")]] bool begin_with_stack() asm(
    "__wrap__Z14my_thread_initv");

bool begin_with_stack() {
  const bool failed = begin_by_server();
  if (!failed && memdiag_thread_begins != nullptr) memdiag_thread_begins();
  return failed;
}
