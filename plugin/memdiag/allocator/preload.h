/*
  Finds allocators beside our own in the process: libraries that define malloc()
  or operator new, such as a tcmalloc that a service file preloads.

  The server's jemalloc is linked into the executable, and the executable's
  symbols come before those of any library, so such a library serves nobody.
  But whoever preloaded it believes that it does, and it stays in memory.

  Threads: any. Errors: a library that cannot be examined is left out.
*/

#ifndef MEMDIAG_PRELOAD_H
#define MEMDIAG_PRELOAD_H

#include <string>

namespace memdiag {

/** File names, without folders, of the loaded libraries that define an
allocator, separated by commas; empty when there is none. The C and C++
libraries and the compiler's sanitizers do not count. */
std::string other_allocators();

}  // namespace memdiag

#endif  // MEMDIAG_PRELOAD_H
