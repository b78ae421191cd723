#include "plugin/memdiag/allocator/preload.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <iterator>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

namespace memdiag {
namespace {

/** Libraries that define an allocator and are expected: jemalloc replaces the
C and C++ libraries' allocators, and a sanitizer is there on purpose. */
constexpr std::string_view expected[] = {
    "libc.so", "libc-",   "ld-",     "ld.so",    "libstdc++.so", "libc++.",
    "libasan", "liblsan", "libtsan", "libubsan", "libhwasan"};

std::string_view file_name(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

bool is_expected(std::string_view path) {
  const std::string_view name = file_name(path);
  return std::any_of(
      std::begin(expected), std::end(expected),
      [name](std::string_view prefix) { return name.starts_with(prefix); });
}

struct Loaded {
  std::vector<std::string> paths;
  /** Libraries loaded and unloaded since the process started. */
  unsigned long long loads{0};
  unsigned long long unloads{0};
};

int count_loads(dl_phdr_info *info, size_t, void *arg) {
  Loaded *const loaded = static_cast<Loaded *>(arg);
  loaded->loads = info->dlpi_adds;
  loaded->unloads = info->dlpi_subs;
  return 1;  // the same in every entry: the first is enough
}

int collect_path(dl_phdr_info *info, size_t size, void *arg) {
  Loaded *const loaded = static_cast<Loaded *>(arg);
  (void)count_loads(info, size, arg);
  // The executable has no name here, nor has the kernel's vdso a path.
  if (info->dlpi_name != nullptr && info->dlpi_name[0] == '/')
    loaded->paths.push_back(info->dlpi_name);
  return 0;
}

/** @return true: the library itself defines `symbol`. A library that it depends
on does not count. */
bool defines(void *library, const link_map *map, const char *symbol) {
  const void *const address = dlsym(library, symbol);
  Dl_info found;
  return address != nullptr && dladdr(address, &found) != 0 &&
         std::string_view{found.dli_fname} == map->l_name;
}

bool is_allocator(const std::string &path) {
  void *const library = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return false;
  const link_map *map = nullptr;
  // _Znwm is operator new(unsigned long). A plugin that contains the C++
  // library has one too, which calls malloc().
  const bool found = dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 &&
                     (defines(library, map, "malloc") ||
                      (defines(library, map, "_Znwm") &&
                       !defines(library, map, "__cxa_throw")));
  dlclose(library);
  return found;
}

}  // namespace

std::string other_allocators() {
  // Libraries are loaded rarely, and examining them is slow.
  static std::mutex mutex;
  static Loaded examined;
  static std::string names;

  const std::lock_guard<std::mutex> guard(mutex);
  Loaded now;
  dl_iterate_phdr(count_loads, &now);
  if (now.loads == examined.loads && now.unloads == examined.unloads)
    return names;
  // dl_iterate_phdr() holds the loader's lock, so its callback must not call
  // dlopen().
  dl_iterate_phdr(collect_path, &now);
  names.clear();
  for (const std::string &path : now.paths) {
    if (is_expected(path) || !is_allocator(path)) continue;
    if (!names.empty()) names += ',';
    names += file_name(path);
  }
  examined = std::move(now);
  return names;
}

}  // namespace memdiag
