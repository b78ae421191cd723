/*
  The pages of the program and of its libraries.

  The kernel maps 64 KB of the file around each page that is touched, so a start
  leaves most of the program in RSS, although much of it runs only then. The
  program's data get no huge pages, from its first constructor on.

  Ownership: none. Threads: any. Locks: none. Allocates nothing. Errors: what
  the kernel does not tell stays. Units: bytes.
*/

#ifndef MEMDIAG_PROGRAM_H
#define MEMDIAG_PROGRAM_H

#include <cstdint>

namespace memdiag::program {

/** Takes the pages of code and constants out of the process. They stay in the
kernel's page cache, and come back when they are used: a call maps 64 KB again,
without I/O as long as the cache has them. A debugger or
a probe may have written a page. That page is not the file's any more, and
stays.
@return the bytes that have left the process. 0 where it may not read its page
map: one that has changed its user */
uint64_t give_back_pages() noexcept;

}  // namespace memdiag::program

#endif  // MEMDIAG_PROGRAM_H
