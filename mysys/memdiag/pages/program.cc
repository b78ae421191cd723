#include "mysys/memdiag/pages/program.h"

#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "mysys/memdiag/pages/presence.h"

namespace memdiag::program {
namespace {

/** Bits of an entry of the page map:
Documentation/admin-guide/mm/pagemap.rst. */
constexpr uint64_t is_there = 1ULL << 63;
constexpr uint64_t is_swapped = 1ULL << 62;
constexpr uint64_t is_of_file = 1ULL << 61;

struct Work {
  int page_map;
  uint64_t given_bytes;
};

/** @param first, last  addresses of pages of the file that are next to each
other */
void give_back(Work *work, uintptr_t first, uintptr_t last, size_t present) {
  if (present != 0 && madvise(reinterpret_cast<void *>(first), last - first,
                              MADV_DONTNEED) == 0)
    work->given_bytes += present * page_size();
}

void give_back_segment(Work *work, uintptr_t at, uintptr_t end) {
  const size_t page = page_size();
  uint64_t entries[512];
  while (at < end) {
    const size_t count = std::min(std::size(entries), (end - at) / page);
    const ssize_t size = static_cast<ssize_t>(count * sizeof *entries);
    if (pread(work->page_map, entries, static_cast<size_t>(size),
              static_cast<off_t>(at / page * sizeof *entries)) != size)
      return;
    uintptr_t first = at;
    size_t present = 0;
    for (size_t i = 0; i < count; ++i, at += page) {
      const bool of_file = (entries[i] & is_of_file) != 0;
      if (!of_file && (entries[i] & (is_there | is_swapped)) != 0) {
        give_back(work, first, at, present);
        first = at + page;
        present = 0;
      } else if (of_file && (entries[i] & is_there) != 0) {
        ++present;
      }
    }
    give_back(work, first, at, present);
  }
}

int give_back_object(dl_phdr_info *object, size_t, void *work) {
  const size_t page = page_size();
  for (size_t i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr) &segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
    const uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
    give_back_segment(static_cast<Work *>(work), begin & ~(page - 1),
                      (begin + segment.p_filesz + page - 1) & ~(page - 1));
  }
  return 0;
}

/** Where the system's transparent huge pages are 'always', a page that is
written would keep 2 MB: 27 MB at start. It runs before most of them are. */
[[gnu::constructor(101)]] void keep_data_small() {
  // The program is the first object.
  (void)dl_iterate_phdr(
      [](dl_phdr_info *program, size_t, void *) {
        const size_t page = page_size();
        for (size_t i = 0; i < program->dlpi_phnum; ++i) {
          const ElfW(Phdr) &segment = program->dlpi_phdr[i];
          if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) == 0)
            continue;
          const uintptr_t begin = program->dlpi_addr + segment.p_vaddr;
          const uintptr_t first = begin & ~(page - 1);
          (void)madvise(reinterpret_cast<void *>(first),
                        begin + segment.p_memsz - first, MADV_NOHUGEPAGE);
        }
        return 1;
      },
      nullptr);
}

}  // namespace

uint64_t give_back_pages() noexcept {
  Work work{open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC), 0};
  if (work.page_map < 0) return 0;
  (void)dl_iterate_phdr(give_back_object, &work);
  close(work.page_map);
  return work.given_bytes;
}

}  // namespace memdiag::program
