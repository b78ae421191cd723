#include "plugin/memdiag/profile/modules.h"

#include <limits.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <new>
#include <span>
#include <string_view>
#include <utility>

#include "mysys/memdiag/ceiling/sensor.h"
#include "mysys/memdiag/profiling/code_ranges.h"
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

/** The range of a module that is there; nullptr: there was no room for it. */
const profiling::Code_range *range_of(
    const Module &module, std::span<const profiling::Code_range> ranges) {
  const profiling::Code_range *found = nullptr;
  for (const profiling::Code_range &range : ranges)
    if (range.begin >= module.begin && range.end <= module.end &&
        range.last == profiling::code_is_there)
      found = &range;
  return found;
}

/** For a module that was there at an earlier call, and is gone. */
void set_end(Module *module, std::span<const profiling::Code_range> ranges) {
  for (const profiling::Code_range &range : ranges)
    if (range.begin >= module->begin && range.end <= module->end &&
        range.first == module->first_look)
      module->last_look = range.last;
}

bool is_in(const Module &module, uint64_t call) {
  return call >= module.begin && call < module.end;
}

}  // namespace

std::vector<Module> modules_of_this_process() {
  static std::mutex mutex;
  static std::vector<Module> known;

  // The recorder waits for the mutex. Within dl_iterate_phdr(), all wait who
  // load a library.
  const ceiling::No_wait no_wait;
  const std::lock_guard<std::mutex> guard(mutex);
  Collected collected;
  profiling::Code_changes changes;
  do {
    changes = profiling::code_changes();
    collected.modules.clear();
    (void)dl_iterate_phdr(collect, &collected);
    if (collected.no_memory) throw std::bad_alloc();
    profiling::note_code();
  } while (profiling::code_changes() != changes);
  std::array<profiling::Code_range, profiling::max_code_ranges> room;
  const std::span ranges{room.data(), profiling::copy_code_ranges(room)};
  std::vector<Module> &modules = collected.modules;
  for (Module &module : modules) {
    // Without a range no stack has its code.
    const profiling::Code_range *const range = range_of(module, ranges);
    module.first_look = range == nullptr ? module_is_there : range->first;
  }
  const size_t present = modules.size();
  for (Module former : known) {
    const auto same = [&former](const Module &module) {
      return module.begin == former.begin && module.path == former.path &&
             module.first_look == former.first_look;
    };
    if (std::any_of(modules.begin(),
                    modules.begin() + static_cast<ptrdiff_t>(present), same))
      continue;
    if (former.last_look == module_is_there) set_end(&former, ranges);
    if (former.first_look <= former.last_look &&
        former.last_look != module_is_there)
      modules.push_back(std::move(former));
  }
  // Those that were there at the last call come before those that were gone.
  if (modules.size() > present + kept_modules)
    modules.resize(present + kept_modules);
  known = modules;
  return std::move(modules);
}

void separate_modules(std::vector<Module> *modules,
                      const For_each_site &for_each_site) {
  // No process has addresses there.
  constexpr uint64_t first_place = uint64_t{1} << 63;
  constexpr uint64_t place_bytes = uint64_t{1} << 48;
  constexpr uint64_t unknown_place = uint64_t{1} << 62;
  const std::vector<Module> former = *modules;
  const auto shift_of = [](size_t i) { return first_place + i * place_bytes; };
  for_each_site([&](Site *site) {
    for (uint64_t &address : site->addresses) {
      bool is_taken = false;
      bool is_known = false;
      for (size_t i = 0; i < former.size() && !is_known; ++i) {
        if (!is_in(former[i], address - 1)) continue;
        is_taken = true;
        if (site->look < former[i].first_look ||
            site->look > former[i].last_look)
          continue;
        is_known = true;
        if (former[i].last_look != module_is_there) address += shift_of(i);
      }
      if (is_taken && !is_known) address |= unknown_place;
    }
  });
  for (size_t i = 0; i < modules->size(); ++i) {
    Module &module = (*modules)[i];
    if (module.last_look == module_is_there) continue;
    module.begin += shift_of(i);
    module.end += shift_of(i);
    module.load_bias += shift_of(i);
  }
}

}  // namespace memdiag::profile
