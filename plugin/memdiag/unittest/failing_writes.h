/*
  Writes to files that fail, for tests of the files of records. This header
  replaces the C library's pwrite() in the test that includes it.

  Threads: the test's own.
*/

#ifndef MEMDIAG_FAILING_WRITES_H
#define MEMDIAG_FAILING_WRITES_H

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>

namespace memdiag_test {

/** So many writes to files fail, each after it wrote half of its bytes, half of
the rest, and so on. */
struct Failing_writes {
  int error;
  unsigned errors;
};
inline Failing_writes failing_writes{};
/** Calls of pwrite(). */
inline unsigned writes = 0;

}  // namespace memdiag_test

/** In place of the C library's. */
extern "C" ssize_t pwrite(int file, const void *bytes, size_t count,
                          off_t offset) {
  using memdiag_test::failing_writes;
  ++memdiag_test::writes;
  if (failing_writes.errors != 0) {
    if (count > 1) {
      count /= 2;
    } else {
      --failing_writes.errors;
      errno = failing_writes.error;
      return -1;
    }
  }
  return syscall(SYS_pwrite64, file, bytes, count, offset);
}

#endif  // MEMDIAG_FAILING_WRITES_H
