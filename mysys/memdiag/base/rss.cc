#include "mysys/memdiag/base/rss.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

namespace memdiag {

uint64_t process_rss() noexcept {
  const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char text[128];
  const ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  if (length <= 0) return 0;
  text[length] = '\0';
  unsigned long long pages = 0;
  if (sscanf(text, "%*u %llu", &pages) != 1) return 0;
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace memdiag
