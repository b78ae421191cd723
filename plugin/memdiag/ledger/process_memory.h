/*
  The kernel's figures of the process's memory: its size, its mappings
  (proc_pid_maps(5)), and the resident pages of file mappings
  (/proc/pid/pagemap).

  Errors: a figure that cannot be read is empty, and errno gives the reason. A
  line of another form is counted and left out. Any text is safe to parse.
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

/** VmRSS, from the text of /proc/self/statm. */
std::optional<uint64_t> parse_statm(std::string_view text);
std::optional<uint64_t> resident_bytes();

enum class Backing : uint8_t {
  anonymous,
  /** The brk() heap: malloc() calls that bypass jemalloc. */
  heap,
  program,
  library,
  /** Any other file, and shared memory. */
  file,
  /** VmRSS does not count these: vdso and the like, and huge pages of
  large_pages=ON. */
  kernel
};

struct Mapping {
  Address_range range;
  Backing backing;
  bool writable;
  /** Anonymous memory within a program or library: its variables without an
  initial value (.bss). */
  bool bss;
};

struct Mappings {
  std::vector<Mapping> all;
  size_t bad_lines;
};

/** From the text of /proc/self/maps.
@param program  the path of the running program, as in the text
@param objects  where the program and its libraries lie, in the order of their
                addresses. Memory of others may follow at once, so the text
                alone does not tell where .bss ends */
Mappings parse_maps(std::string_view text, std::string_view program,
                    const std::vector<Address_range> &objects);
/** As the dynamic linker knows them. */
std::vector<Address_range> loaded_objects();
std::optional<Mappings> mappings();
/** Code and constants of the program and its libraries, as large as their files
say. */
uint64_t code_bytes();

/** Resident pages of file mappings: the file's own pages, and private copies
that the process made by writing. */
struct File_pages {
  uint64_t file_bytes;
  uint64_t own_bytes;
};

/** Reads /proc/self/pagemap, which has 64 bits for each page
(Documentation/admin-guide/mm/pagemap.rst). Cost: 3 ms for 100 MB. */
class Page_map {
 public:
  Page_map();
  ~Page_map();
  Page_map(const Page_map &) = delete;
  Page_map &operator=(const Page_map &) = delete;

  std::optional<File_pages> pages(Address_range range) const;

 private:
  const int m_fd;
  /** The errno of opening it, or 0. */
  const int m_error;
};

}  // namespace memdiag::process_memory

#endif  // MEMDIAG_PROCESS_MEMORY_H
