/* Tells that a thread sleeps, for tests of what waits and of what is locked. */

#ifndef MEMDIAG_UNITTEST_ASLEEP_H
#define MEMDIAG_UNITTEST_ASLEEP_H

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>

namespace memdiag_test {

/** True if the kernel lets this thread of the process sleep: it waits for a
mutex, a condition or a time. Nothing is allocated, because the caller may hold
what malloc() needs.
@param thread  of gettid(); 0: it has not begun */
inline bool is_asleep(pid_t thread) {
  if (thread == 0) return false;
  char text[512];
  snprintf(text, sizeof text, "/proc/self/task/%d/stat", thread);
  const int file = open(text, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const ssize_t size = read(file, text, sizeof text);
  close(file);
  const std::string_view stat(text, size < 0 ? 0 : static_cast<size_t>(size));
  // Its name is in brackets, and may have some of its own.
  const size_t name_end = stat.rfind(')');
  return name_end != stat.npos && stat.substr(name_end + 1).starts_with(" S");
}

}  // namespace memdiag_test

#endif  // MEMDIAG_UNITTEST_ASLEEP_H
