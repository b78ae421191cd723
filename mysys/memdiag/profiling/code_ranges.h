/*
  The addresses of the process's code. With them a stack walk tells return
  addresses from other words.

  A library without frame pointers may leave any value in the register. The walk
  could then take ordinary data of the stack for return addresses, and these
  would differ from sample to sample.

  Threads: any. note_code() takes the dynamic linker's lock; is_code() takes
  none and allocates nothing. Ranges are only added: those of an unloaded
  library stay. Errors: ranges beyond max_code_ranges are left out, so stacks
  end at them.
*/

#ifndef MEMDIAG_CODE_RANGES_H
#define MEMDIAG_CODE_RANGES_H

#include <cstddef>
#include <cstdint>

namespace memdiag::profiling {

/** mysqld has some 25 libraries and plugins. */
constexpr size_t max_code_ranges = 256;

/** How many libraries were loaded and unloaded since the process began. */
struct Code_changes {
  unsigned long long loaded;
  unsigned long long unloaded;

  bool operator==(const Code_changes &) const = default;
};
/** It takes the dynamic linker's lock. */
Code_changes code_changes() noexcept;

/** Remember the code of all libraries that are loaded now. */
void note_code() noexcept;

/** false: not within code that was there at the last note_code(). */
bool is_code(uintptr_t address) noexcept;

}  // namespace memdiag::profiling

#endif  // MEMDIAG_CODE_RANGES_H
