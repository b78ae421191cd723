/*
  The executable and the libraries of the running process, and which of them an
  address of a site belongs to.
*/

#ifndef MEMDIAG_PROFILE_MODULES_H
#define MEMDIAG_PROFILE_MODULES_H

#include <cstdint>
#include <functional>
#include <vector>

#include "plugin/memdiag/profile/profile.h"

namespace memdiag::profile {

/** Every module with code, the program first. Behind them those that were
unloaded since an earlier call, the newest `kept_modules`. It is a look
(code_ranges.h). Build ids come from the notes in
memory, so they belong to the code that runs, even if a file was replaced. It
takes 0.1 ms and the dynamic linker's lock, so a sampling hook must not call it.
Threads: any. Errors: std::bad_alloc. */
std::vector<Module> modules_of_this_process();

constexpr size_t kept_modules = 64;

/** Sites whose addresses may change. */
using For_each_site =
    std::function<void(const std::function<void(Site *)> &visit)>;

/** Makes addresses unambiguous: a module that was unloaded, and whose place
another may have now, gets a place of its own, and so do the addresses of the
sites that were made while it was there. An address that belonged to none of the
modules, but lies in one of them, gets a place that no module has. So a look-up
by address alone never finds a module that came later.
Errors: std::bad_alloc, and then the addresses of some sites are separate. */
void separate_modules(std::vector<Module> *modules,
                      const For_each_site &for_each_site);

}  // namespace memdiag::profile

#endif  // MEMDIAG_PROFILE_MODULES_H
