/*
  The addresses of the process's code, and when it was there. With them a stack
  walk tells return addresses from other words, and a reader tells a library
  from another that has its place now.

  A library without frame pointers may leave any value in the register. The walk
  could then take ordinary data of the stack for return addresses, and these
  would differ from sample to sample.

  Time is counted in looks: each note_code() is one. A range has the look that
  found it and the last one at which its library certainly was there until the
  next look. A library that was unloaded and loaded again, at the same place and
  between two looks, counts as there all the time.

  Threads: any. note_code() takes the dynamic linker's lock, which serialises
  looks; the others take none. Nothing allocates. Ranges are only added: those
  of an unloaded library keep their places. Errors: ranges beyond
  max_code_ranges are left out and counted, so stacks end at them.
*/

#ifndef MEMDIAG_CODE_RANGES_H
#define MEMDIAG_CODE_RANGES_H

#include <link.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace memdiag::profiling {

/** mysqld has some 25 libraries and plugins. */
constexpr size_t max_code_ranges = 256;

/** dl_iterate_phdr(), or a test's. */
using Iterate_code = int (*)(int (*visit)(dl_phdr_info *, size_t, void *),
                             void *argument);

/** How many libraries were loaded and unloaded since the process began. */
struct Code_changes {
  unsigned long long loaded;
  unsigned long long unloaded;

  bool operator==(const Code_changes &) const = default;
};
/** It takes the dynamic linker's lock. */
Code_changes code_changes(Iterate_code iterate = dl_iterate_phdr) noexcept;

/** Remember the code of all libraries that are loaded now. */
void note_code(Iterate_code iterate = dl_iterate_phdr) noexcept;

/** The number of looks so far. What happens between two equal results happens
at that look. */
uint32_t code_looks() noexcept;

/** The look that found the code at an address; 0: not within code that was
there at the last look. */
uint32_t code_since(uintptr_t address) noexcept;

inline bool is_code(uintptr_t address) noexcept {
  return code_since(address) != 0;
}

/** Code_range::last of code that was there at the last look. */
constexpr uint32_t code_is_there = UINT32_MAX;

struct Code_range {
  uintptr_t begin;
  uintptr_t end;
  uint32_t first;
  uint32_t last;
};
/** Copies all ranges, also those that are gone, in the order in which they were
found. @return how many, at most the room of `to` */
size_t copy_code_ranges(std::span<Code_range> to) noexcept;

/** Ranges of the code that was there at the last look for which there was no
room. */
size_t code_ranges_left_out() noexcept;

}  // namespace memdiag::profiling

#endif  // MEMDIAG_CODE_RANGES_H
