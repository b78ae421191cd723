/*
  What the kernel says of the process's memory: its size, its mappings
  (proc_pid_maps(5)) and, for mappings of files, whose pages are there
  (/proc/pid/pagemap).

  Errors: what cannot be read is empty, and errno says why. Lines of another
  form than expected are counted and left out; nothing that the text may hold is
  unsafe to parse.
  Threads: any. Units: bytes.
*/

#ifndef MEMDIAG_PROCESS_MEMORY_H
#define MEMDIAG_PROCESS_MEMORY_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mysys/memdiag/pages/presence.h"

namespace memdiag::process_memory {

/** As VmRSS, from the text of /proc/self/statm. */
std::optional<uint64_t> parse_statm(std::string_view text);
std::optional<uint64_t> resident_bytes();

enum class Backing : uint8_t {
  anonymous,
  /** malloc() of others than the allocator that is linked: brk(). */
  heap,
  program,
  library,
  /** Any other file, and shared memory. */
  file,
  /** The kernel's own: vdso and its like. */
  kernel
};

struct Mapping {
  Address_range range;
  Backing backing;
  bool writable;
  /** Anonymous memory right behind a program's or library's data: what it
  declares without a value (.bss). */
  bool bss;
};

struct Mappings {
  std::vector<Mapping> all;
  size_t bad_lines;
};

/** From the text of /proc/self/maps.
@param program  path of the running program, as it is in the text */
Mappings parse_maps(std::string_view text, std::string_view program);
std::optional<Mappings> mappings();

/** Pages of mappings of files that are there: the file's, and those that were
written and are the process's own since. */
struct File_pages {
  uint64_t file_bytes;
  uint64_t own_bytes;
};

/** Reads /proc/self/pagemap, of which an entry is a 64-bit number
(Documentation/ admin-guide/mm/pagemap.rst): 3 ms for 100 MB. */
class Page_map {
 public:
  Page_map();
  ~Page_map();
  Page_map(const Page_map &) = delete;
  Page_map &operator=(const Page_map &) = delete;

  std::optional<File_pages> pages(Address_range range) const;

 private:
  const int m_fd;
  /** Why it could not be opened. */
  const int m_error;
};

}  // namespace memdiag::process_memory

#endif  // MEMDIAG_PROCESS_MEMORY_H
