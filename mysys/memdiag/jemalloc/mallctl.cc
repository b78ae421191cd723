#include "mysys/memdiag/jemalloc/mallctl.h"

#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <string_view>

#include <jemalloc/jemalloc.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>

#include <algorithm>
#include <cstring>
#endif

#include "mysys/memdiag/jemalloc/internals.h"

// In sanitizer builds the sanitizer owns malloc(), and jemalloc is linked with
// prefixed names beside it. Everywhere else jemalloc is malloc().
#ifdef MEMDIAG_JEMALLOC_PREFIXED
#define MEMDIAG_JE(function) je_##function
#else
#define MEMDIAG_JE(function) function
#endif

namespace memdiag {
namespace {

constexpr size_t max_mib_length = 7;

/** The positions of indexes among a name's components; -1: none. */
struct Positions {
  int arena{-1};
  int index{-1};
};

/** An index is written 0 in mysys/memdiag/jemalloc/mallctl_names.h. The first
one is the arena's in names of arenas. */
constexpr Positions positions_in(std::string_view name) {
  Positions positions;
  const bool of_arena =
      name.starts_with("arena.") || name.starts_with("stats.arenas.");
  for (int at = 0;; ++at) {
    const size_t end = name.find('.');
    if (name.substr(0, end) == "0")
      (of_arena && positions.arena < 0 ? positions.arena : positions.index) =
          at;
    if (end == name.npos) return positions;
    name.remove_prefix(end + 1);
  }
}

struct Ctl_entry {
  const char *name;
  Positions positions;
};

constexpr Ctl_entry ctl_entries[] = {
#define MEMDIAG_CTL(id, name, type) {name, positions_in(name)},
#include "mysys/memdiag/jemalloc/mallctl_names.h"
#undef MEMDIAG_CTL
};
constexpr size_t ctl_count = static_cast<size_t>(Ctl::count);

/** A name translated once. Translation is idempotent, so two threads may do it
at the same time: each writes the same components, and length is published
last. Kept in atomics rather than behind a lock, so that fork() in one thread
cannot leave it locked. */
struct Mib {
  std::atomic<size_t> length{0};
  std::atomic<size_t> component[max_mib_length]{};
};
constinit Mib mibs[ctl_count];

/** True if an index is that of an arena. jemalloc takes some others, among them
the one past the last arena, for "all arenas": a wrong index must not purge
them all. */
bool is_arena(unsigned arena) {
  // There are never fewer than there were.
  static constinit std::atomic<unsigned> known{0};
  if (arena < known.load(std::memory_order_relaxed)) return true;
  const auto narenas = mallctl::read<Ctl::arenas_narenas>();
  if (!narenas) return false;
  known.store(narenas.value(), std::memory_order_relaxed);
  return arena < narenas.value();
}

/** Fill `mib` for a control. @return 0 or an errno */
int translate(Ctl ctl, unsigned arena, unsigned index,
              size_t (&mib)[max_mib_length], size_t *length) {
  const size_t i = static_cast<size_t>(ctl);
  if (i >= ctl_count) return ENOENT;
  Mib &cached = mibs[i];
  size_t n = cached.length.load(std::memory_order_acquire);
  if (n == 0) {
    n = max_mib_length;
    const int error =
        MEMDIAG_JE(mallctlnametomib)(ctl_entries[i].name, mib, &n);
    if (error != 0) return error;
    for (size_t c = 0; c < n; ++c)
      cached.component[c].store(mib[c], std::memory_order_relaxed);
    cached.length.store(n, std::memory_order_release);
  } else {
    for (size_t c = 0; c < n; ++c)
      mib[c] = cached.component[c].load(std::memory_order_relaxed);
  }
  const Positions positions = ctl_entries[i].positions;
  if (positions.arena >= 0) {
    if (!is_arena(arena)) return EFAULT;
    mib[positions.arena] = arena;
  }
  // jemalloc checks this one itself.
  if (positions.index >= 0) mib[positions.index] = index;
  *length = n;
  return 0;
}

}  // namespace

namespace mallctl {

const char *name(Ctl ctl) {
  const size_t i = static_cast<size_t>(ctl);
  return i < ctl_count ? ctl_entries[i].name : "";
}

int resolve(Ctl ctl) {
  size_t mib[max_mib_length];
  size_t length;
  return translate(ctl, 0, 0, mib, &length);
}

int read_raw(Ctl ctl, unsigned arena, void *value, size_t size,
             unsigned index) {
  size_t mib[max_mib_length];
  size_t length;
  int error = translate(ctl, arena, index, mib, &length);
  if (error != 0) return error;
  size_t actual = size;
  error = MEMDIAG_JE(mallctlbymib)(mib, length, value, &actual, nullptr, 0);
  if (error != 0) return error;
  // A shorter value than expected would leave part of `value` unset.
  return actual == size ? 0 : EINVAL;
}

int write_raw(Ctl ctl, unsigned arena, const void *value, size_t size) {
  size_t mib[max_mib_length];
  size_t length;
  const int error = translate(ctl, arena, 0, mib, &length);
  if (error != 0) return error;
  return MEMDIAG_JE(mallctlbymib)(mib, length, nullptr, nullptr,
                                  const_cast<void *>(value), size);
}

int arena_name(unsigned arena, char (&out)[arena_name_size]) {
  char *buffer = out;
  // jemalloc copies the name into the buffer that the pointer names.
  return read_raw(Ctl::arena_name, arena, &buffer, sizeof buffer);
}

int set_arena_name(unsigned arena, const char *name) {
  return write_raw(Ctl::arena_name, arena, &name, sizeof name);
}

Result<unsigned> arena_of(const void *pointer) {
  unsigned arena;
  return memdiag_arena_of(pointer, &arena) ? Result<unsigned>::ok(arena)
                                           : Result<unsigned>::failed(EINVAL);
}

Result<Arena_pages> arena_pages(unsigned arena) {
  Arena_pages pages;
  return memdiag_arena_pages(arena, &pages.resident_bytes, &pages.dirty_pages)
             ? Result<Arena_pages>::ok(pages)
             : Result<Arena_pages>::failed(EFAULT);
}

Result<const void *> keep_metadata_small(unsigned arena) {
  const void *const first = memdiag_arena_keep_metadata_small(arena);
  return first != nullptr ? Result<const void *>::ok(first)
                          : Result<const void *>::failed(EFAULT);
}

void keep_metadata_small() {
  const auto arenas = read<Ctl::arenas_narenas>();
  for (unsigned arena = 0; arena < arenas.value_or(0); ++arena)
    (void)keep_metadata_small(arena);
}

Result<bool> purge_arena(unsigned arena) {
  bool skipped;
  return memdiag_arena_purge(arena, &skipped) ? Result<bool>::ok(!skipped)
                                              : Result<bool>::failed(EFAULT);
}

int set_sample_interval(uint64_t bytes) {
  const auto is_there = read<Ctl::opt_prof>();
  if (!is_there) return is_there.error();
  if (!is_there.value()) return ENOENT;
  memdiag_set_sample_interval(static_cast<size_t>(std::countr_zero(bytes)));
  return 0;
}

Result<Extent> extent_at(const void *address) {
  memdiag_extent found;
  if (!memdiag_extent_at(address, &found))
    return Result<Extent>::failed(EINVAL);
  const Pages pages = found.pages == memdiag_pages_used    ? Pages::used
                      : found.pages == memdiag_pages_dirty ? Pages::dirty
                                                           : Pages::given_back;
  return Result<Extent>::ok(
      {found.arena, found.bytes, found.regions, found.free_regions, pages});
}

size_t no_extents_from(const void *address) {
  return memdiag_no_extents_from(address);
}

int refresh() {
  // Any write advances it; the value is not used.
  return write<Ctl::epoch>(1);
}

bool serves_malloc() {
#ifdef MEMDIAG_JEMALLOC_PREFIXED
  return false;
#else
  return true;
#endif
}

}  // namespace mallctl

namespace placed {

namespace {
int cache_flag(Cache cache) {
  return cache == no_cache ? MALLOCX_TCACHE_NONE : MALLOCX_TCACHE(cache);
}
}  // namespace

#ifdef __SANITIZE_ADDRESS__
/* These two functions tell the sanitizer which bytes of a pool are allocated.
A block in a cache counts as free. */
void *allocate(unsigned arena, Cache cache, size_t size, bool zero) noexcept {
  const size_t usable = usable_by_library(size);
  void *const block = MEMDIAG_JE(mallocx)(
      std::max<size_t>(size, 1), MALLOCX_ARENA(arena) | cache_flag(cache));
  if (block == nullptr) return nullptr;
  __asan_poison_memory_region(block, usable);
  __asan_unpoison_memory_region(block, size);
  if (zero) memset(block, 0, size);
  return block;
}

void free(void *block, Cache cache, size_t size) noexcept {
  __asan_poison_memory_region(block, usable_by_library(size));
  MEMDIAG_JE(sdallocx)(block, std::max<size_t>(size, 1), cache_flag(cache));
}
#else
void *allocate(unsigned arena, Cache cache, size_t size, bool zero) noexcept {
  if (size == 0) size = 1;
  if (cache != no_cache && !zero)
    if (void *const block = memdiag_cache_allocate(cache, size)) return block;
  return MEMDIAG_JE(mallocx)(size, MALLOCX_ARENA(arena) | cache_flag(cache) |
                                       (zero ? MALLOCX_ZERO : 0));
}

void free(void *block, Cache cache, size_t size) noexcept {
  if (size == 0) size = 1;
  if (cache != no_cache && memdiag_cache_free(block, cache, size)) return;
  MEMDIAG_JE(sdallocx)(block, size, cache_flag(cache));
}
#endif

size_t usable_by_library(size_t size) noexcept {
  return MEMDIAG_JE(nallocx)(size == 0 ? 1 : size, 0);
}

size_t size_of(const void *block) noexcept {
  return MEMDIAG_JE(sallocx)(block, 0);
}

void *general_allocate(size_t size, bool zero) noexcept {
  return zero ? std::calloc(1, size) : std::malloc(size);
}

void general_free(void *block) noexcept { std::free(block); }

}  // namespace placed
}  // namespace memdiag
