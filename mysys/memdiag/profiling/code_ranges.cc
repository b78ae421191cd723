#include "mysys/memdiag/profiling/code_ranges.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <string_view>

#include "mysys/memdiag/base/hash.h"

namespace memdiag::profiling {
namespace {

/** Written under the dynamic linker's lock: begin to first before `count`
includes it, last at any time. */
struct Range {
  uintptr_t begin;
  uintptr_t end;
  /** The library's name, and its notes, which have the build id. */
  uint64_t identity;
  uint32_t first;
  std::atomic<uint32_t> last;
};

/** The program's own comes first, because most addresses are its. */
constinit Range ranges[max_code_ranges]{};
constinit std::atomic<size_t> count{0};
constinit std::atomic<size_t> left_out{0};
constinit std::atomic<uint32_t> looks{0};
/** At the last look. Protected by the dynamic linker's lock. */
constinit Code_changes noted{0, 0};

struct Found {
  uintptr_t begin;
  uintptr_t end;
  uint64_t identity;
};

struct Look {
  Code_changes changes{0, 0};
  size_t count{0};
  size_t left_out{0};
  std::array<Found, max_code_ranges> found;
};

uint64_t add_to_hash(uint64_t hash, std::string_view bytes) {
  for (const char byte : bytes)
    hash = mixed(hash ^ static_cast<unsigned char>(byte));
  return hash;
}

uint64_t identity_of(const dl_phdr_info &module) {
  uint64_t hash = add_to_hash(1, module.dlpi_name);
  for (unsigned i = 0; i < module.dlpi_phnum; ++i) {
    const auto &header = module.dlpi_phdr[i];
    if (header.p_type == PT_NOTE)
      hash = add_to_hash(
          hash,
          {reinterpret_cast<const char *>(module.dlpi_addr + header.p_vaddr),
           header.p_memsz});
  }
  return hash;
}

Code_changes changes_of(const dl_phdr_info &module) {
  return {module.dlpi_adds, module.dlpi_subs};
}

/** The results of dl_iterate_phdr(). */
constexpr int done = 1;
constexpr int not_done = 2;

int read_changes(dl_phdr_info *module, size_t, void *to) {
  *static_cast<Code_changes *>(to) = changes_of(*module);
  return done;  // the same in every entry: the first is enough
}

/** A look that finds the same code as the last. */
int look_again(dl_phdr_info *module, size_t, void *) {
  const uint32_t former = looks.load(std::memory_order_relaxed);
  if (former == 0 || changes_of(*module) != noted) return not_done;
  looks.store(former + 1, std::memory_order_release);
  return done;
}

int find_ranges(dl_phdr_info *module, size_t, void *to) {
  Look &look = *static_cast<Look *>(to);
  look.changes = changes_of(*module);
  const uint64_t identity = identity_of(*module);
  for (unsigned i = 0; i < module->dlpi_phnum; ++i) {
    const auto &header = module->dlpi_phdr[i];
    if (header.p_type != PT_LOAD || (header.p_flags & PF_X) == 0) continue;
    const uintptr_t begin = module->dlpi_addr + header.p_vaddr;
    if (look.count == look.found.size())
      ++look.left_out;
    else
      look.found[look.count++] = {begin, begin + header.p_memsz, identity};
  }
  return 0;
}

bool is_same(const Range &range, const Found &found) {
  return range.begin == found.begin && range.end == found.end &&
         range.identity == found.identity &&
         range.last.load(std::memory_order_relaxed) == code_is_there;
}

/** @return not_done: libraries came or went since find_ranges() */
int finish(dl_phdr_info *module, size_t, void *of) {
  const Look &look = *static_cast<const Look *>(of);
  if (changes_of(*module) != look.changes) return not_done;
  const uint32_t former = looks.load(std::memory_order_relaxed);
  const size_t before = count.load(std::memory_order_relaxed);
  const std::span found{look.found.data(), look.count};
  // Where nothing was loaded since the last look, nothing else can have had the
  // place of what is gone. Else all since then may be of another library.
  const uint32_t last =
      look.changes.loaded == noted.loaded || former == 0 ? former : former - 1;
  for (Range &range : std::span{ranges}.first(before))
    if (range.last.load(std::memory_order_relaxed) == code_is_there &&
        std::none_of(found.begin(), found.end(), [&range](const Found &one) {
          return is_same(range, one);
        }))
      range.last.store(last, std::memory_order_relaxed);
  size_t used = before;
  size_t missing = look.left_out;
  for (const Found &one : found) {
    if (std::any_of(ranges, ranges + before,
                    [&one](const Range &range) { return is_same(range, one); }))
      continue;
    if (used == max_code_ranges) {
      ++missing;
      continue;
    }
    Range &range = ranges[used++];
    range.begin = one.begin;
    range.end = one.end;
    range.identity = one.identity;
    range.first = former + 1;
    range.last.store(code_is_there, std::memory_order_relaxed);
  }
  left_out.store(missing, std::memory_order_relaxed);
  noted = look.changes;
  count.store(used, std::memory_order_release);
  looks.store(former + 1, std::memory_order_release);
  return done;
}

}  // namespace

Code_changes code_changes(Iterate_code iterate) noexcept {
  Code_changes changes{};
  (void)iterate(read_changes, &changes);
  return changes;
}

void note_code(Iterate_code iterate) noexcept {
  if (iterate(look_again, nullptr) == done) return;
  Look look;
  do {
    look.count = look.left_out = 0;
    (void)iterate(find_ranges, &look);
  } while (iterate(finish, &look) == not_done);
}

uint32_t code_looks() noexcept { return looks.load(std::memory_order_acquire); }

uint32_t code_since(uintptr_t address) noexcept {
  const size_t used = count.load(std::memory_order_acquire);
  for (size_t i = 0; i < used; ++i)
    if (address >= ranges[i].begin && address < ranges[i].end &&
        ranges[i].last.load(std::memory_order_relaxed) == code_is_there)
      return ranges[i].first;
  return 0;
}

size_t copy_code_ranges(std::span<Code_range> to) noexcept {
  const size_t copied =
      std::min(count.load(std::memory_order_acquire), to.size());
  for (size_t i = 0; i < copied; ++i)
    to[i] = {ranges[i].begin, ranges[i].end, ranges[i].first,
             ranges[i].last.load(std::memory_order_relaxed)};
  return copied;
}

size_t code_ranges_left_out() noexcept {
  return left_out.load(std::memory_order_relaxed);
}

}  // namespace memdiag::profiling
