#include "plugin/memdiag/host/kernel_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace memdiag::kernel_file {
namespace {
/** Larger than any such file: /proc/self/maps of a large server has 10 MB. */
constexpr size_t max_file_bytes = 64 << 20;
}  // namespace

int read(const std::string &path, std::string *text) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return errno;
  char buffer[16384];
  ssize_t bytes;
  int error = 0;
  try {
    while ((bytes = ::read(file, buffer, sizeof buffer)) != 0) {
      if (bytes > 0)
        text->append(buffer, bytes);
      else if (errno != EINTR)
        error = errno;
      if (text->size() > max_file_bytes) error = EFBIG;
      if (error != 0) break;
    }
  } catch (...) {
    close(file);
    throw;
  }
  close(file);
  return error;
}

}  // namespace memdiag::kernel_file
