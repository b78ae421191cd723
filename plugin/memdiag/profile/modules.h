/*
  The executable and the libraries of the running process.
*/

#ifndef MEMDIAG_PROFILE_MODULES_H
#define MEMDIAG_PROFILE_MODULES_H

#include <vector>

#include "plugin/memdiag/profile/profile.h"

namespace memdiag::profile {

/** Every module with code, the program first. Build ids come from the notes in
memory, so they belong to the code that runs, even if a file was replaced. It
takes 0.1 ms and the dynamic linker's lock, so a sampling hook must not call it.
Threads: any. Errors: std::bad_alloc. */
std::vector<Module> modules_of_this_process();

}  // namespace memdiag::profile

#endif  // MEMDIAG_PROFILE_MODULES_H
