/* A file that is loaded as a library, and its notes. */

#include "plugin/memdiag/profile/elf_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <span>

#include "plugin/memdiag/unittest/fuzz/fuzz.h"

using namespace memdiag::profile;
using memdiag_test::require;

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  static const int memory = memfd_create("fuzz", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(memory);
  static const uint64_t addresses[] = {0,      0xfff,    0x1000,    0x1008,
                                       0x1010, 0x1018,   0x1020,    0x1100,
                                       0x2000, 0x401000, UINT64_MAX};
  require(ftruncate(memory, 0) == 0 &&
          pwrite(memory, bytes, size, 0) == static_cast<ssize_t>(size));
  if (const auto file = Elf_file::open(path)) {
    require(file->build_id().size() <= 2 * size);
    require(file->functions_at(addresses).size() == std::size(addresses));
  }
  for (const size_t alignment : {4, 8})
    (void)build_id_in(std::as_bytes(std::span{bytes, size}), alignment);
  return 0;
}
