#include "mysys/memdiag/profiling/code_ranges.h"

#include <link.h>

#include <atomic>

namespace memdiag::profiling {
namespace {

struct Range {
  uintptr_t begin;
  uintptr_t end;
};

/** The program's own comes first, because most addresses are its. */
constinit Range ranges[max_code_ranges];
constinit std::atomic<size_t> count{0};
/** dl_iterate_phdr() calls add() under the dynamic linker's lock, which thus
serialises the writers. */
void add(uintptr_t begin, uintptr_t end) {
  const size_t used = count.load(std::memory_order_relaxed);
  for (size_t i = 0; i < used; ++i)
    if (ranges[i].begin == begin && ranges[i].end == end) return;
  if (used == max_code_ranges) return;
  ranges[used] = {begin, end};
  count.store(used + 1, std::memory_order_release);
}

int add_module(dl_phdr_info *module, size_t, void *) {
  for (unsigned i = 0; i < module->dlpi_phnum; ++i) {
    const auto &header = module->dlpi_phdr[i];
    if (header.p_type != PT_LOAD || (header.p_flags & PF_X) == 0) continue;
    const uintptr_t begin = module->dlpi_addr + header.p_vaddr;
    add(begin, begin + header.p_memsz);
  }
  return 0;
}

int read_changes(dl_phdr_info *module, size_t, void *to) {
  *static_cast<Code_changes *>(to) = {module->dlpi_adds, module->dlpi_subs};
  return 1;  // the same in every entry: the first is enough
}

}  // namespace

Code_changes code_changes() noexcept {
  Code_changes changes{};
  (void)dl_iterate_phdr(read_changes, &changes);
  return changes;
}

void note_code() noexcept { (void)dl_iterate_phdr(add_module, nullptr); }

bool is_code(uintptr_t address) noexcept {
  const size_t used = count.load(std::memory_order_acquire);
  for (size_t i = 0; i < used; ++i)
    if (address >= ranges[i].begin && address < ranges[i].end) return true;
  return false;
}

}  // namespace memdiag::profiling
