/*
  Finds other allocators in the process: libraries that define malloc() or
  operator new, for example a tcmalloc that a service file preloads.

  Such a library serves no allocation: the server's jemalloc is part of the
  executable, whose symbols precede those of libraries. The library only takes
  memory, and the person who preloaded it believes that it is in use.

  Threads: any. A mutex is held while libraries are examined, and the loader's
  lock is taken, so it must not be called from a callback of dl_iterate_phdr().
  Cost: libraries are examined only when one was loaded or unloaded since the
  last call. Errors: a library that cannot be examined is left out.
*/

#ifndef MEMDIAG_PRELOAD_H
#define MEMDIAG_PRELOAD_H

#include <string>

namespace memdiag {

/** File names of the loaded libraries that define an allocator, without
folders, separated by commas; "" when there is none. The C and C++ libraries,
plugins that contain the C++ library and the compiler's sanitizers do not
count. */
std::string other_allocators();

}  // namespace memdiag

#endif  // MEMDIAG_PRELOAD_H
