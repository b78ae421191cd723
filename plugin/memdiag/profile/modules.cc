#include "plugin/memdiag/profile/modules.h"

#include <limits.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <string_view>

#include "plugin/memdiag/profile/elf_file.h"

namespace memdiag::profile {
namespace {

/** The smallest page of the machines that MySQL runs on. */
constexpr uint64_t page_bytes = 4096;

std::string path_of_program() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  if (length <= 0) return "";
  std::string_view name(path, static_cast<size_t>(length));
  // The kernel's mark of a file that was removed or replaced.
  constexpr std::string_view deleted = " (deleted)";
  if (name.ends_with(deleted)) name.remove_suffix(deleted.size());
  return std::string(name);
}

struct Collected {
  std::vector<Module> modules;
  bool no_memory{false};
};

Module module_of(const dl_phdr_info &info) {
  Module module{info.dlpi_name, "", UINT64_MAX, 0, info.dlpi_addr, 0};
  // The dynamic linker gives the program no name.
  if (module.path.empty()) module.path = path_of_program();
  for (const ElfW(Phdr) & segment :
       std::span{info.dlpi_phdr, info.dlpi_phnum}) {
    const uint64_t begin = info.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0) {
      // The kernel maps whole pages.
      const uint64_t before = begin % page_bytes;
      if (begin - before < module.begin) {
        module.begin = begin - before;
        module.file_offset =
            segment.p_offset - std::min(before, segment.p_offset);
      }
      module.end = std::max(module.end, begin + segment.p_memsz);
    } else if (segment.p_type == PT_NOTE && module.build_id.empty()) {
      module.build_id = build_id_in(
          {reinterpret_cast<const std::byte *>(begin), segment.p_memsz},
          segment.p_align);
    }
  }
  return module;
}

/** The linker is C: no exception may pass through it. */
int collect(dl_phdr_info *info, size_t, void *to) noexcept {
  auto *collected = static_cast<Collected *>(to);
  try {
    Module module = module_of(*info);
    if (module.begin < module.end)
      collected->modules.push_back(std::move(module));
  } catch (const std::bad_alloc &) {
    collected->no_memory = true;
    return 1;
  }
  return 0;
}

}  // namespace

std::vector<Module> modules_of_this_process() {
  Collected collected;
  (void)dl_iterate_phdr(collect, &collected);
  if (collected.no_memory) throw std::bad_alloc();
  return std::move(collected.modules);
}

}  // namespace memdiag::profile
