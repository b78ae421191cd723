/*
  The facade over jemalloc: the only way the rest of the product talks to it.

  mysys/memdiag/jemalloc/mallctl.cc is the only file that includes jemalloc.h.
  Names are compile-time constants with a type each
  (mysys/memdiag/jemalloc/mallctl_names.h); a wrong type does not compile, a
  name the library does not know is an error value.

  Errors: every call returns a Result or an errno, never a default value that
  could be taken for a reading: ENOENT (name unknown to this library, or no such
  size class), EFAULT (no such arena), EINVAL (size or type mismatch), EAGAIN,
  EPERM, ENOTSUP (not linked). No call throws, logs or aborts.
  Threads: all calls may be made from any thread. jemalloc serialises its
  controls with one mutex, so read(), write() and refresh() do not belong on a
  hot path. `placed`, arena_of(), extent_at(), arena_pages(), purge_arena()
  and keep_metadata_small(arena) do not take that mutex. The last three take
  mutexes of the arena.
  Units: bytes, except where a name says otherwise.
  Ownership: strings that come back are jemalloc's own and static, except
  arena names, which are copied out.
  Works before main(), after fork() and at exit.
*/

#ifndef MEMDIAG_MALLCTL_H
#define MEMDIAG_MALLCTL_H

#include <sys/types.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "mysys/memdiag/base/result.h"
#include "mysys/memdiag/jemalloc/size_class.h"

namespace memdiag {

namespace mallctl {

/** @name Hooks of the heap profiler, as jemalloc declares them (prof_hook.h)
They run on the thread that allocates or frees, which may allocate meanwhile but
is not sampled. @{ */
/** (frames, count, room for frames) */
using Backtrace_hook = void (*)(void **, unsigned *, unsigned);
/** (block, bytes asked for, frames, count, bytes of its size class) */
using Sample_hook = void (*)(const void *, size_t, void **, unsigned, size_t);
/** (block, bytes of its size class); the block is not free yet */
using Sample_free_hook = void (*)(const void *, size_t);
/** @} */

/** An event of threads, as jemalloc declares it (user_hook_object_t). The
callback runs on the thread that allocates, after each `interval` bytes and
before the new block is written. The thread holds no mutex of jemalloc. It
cannot be taken back. */
struct Thread_event {
  /** (by an allocation, bytes that the thread has allocated and freed so far)
   */
  void (*callback)(bool, uint64_t, uint64_t);
  uint64_t interval;
  bool is_alloc_only;
};

}  // namespace mallctl

/** One enumerator for each control name. */
enum class Ctl : uint16_t {
#define MEMDIAG_CTL(id, name, type) id,
#include "mysys/memdiag/jemalloc/mallctl_names.h"
#undef MEMDIAG_CTL
  count
};

template <Ctl ctl>
struct Ctl_type;
#define MEMDIAG_CTL(id, name, type_) \
  template <>                        \
  struct Ctl_type<Ctl::id> {         \
    using type = type_;              \
  };
#include "mysys/memdiag/jemalloc/mallctl_names.h"
#undef MEMDIAG_CTL
template <Ctl ctl>
using ctl_type_t = typename Ctl_type<ctl>::type;

namespace mallctl {

/** The name of a control, with 0 for the indexes that it has. */
const char *name(Ctl ctl);

/** Looks a name up in the linked library. 0: it is known; or an errno. */
int resolve(Ctl ctl);

/** Untyped forms; use the templates below. `arena` and `index` are ignored by
names that hold no such index. All return 0 or an errno. */
int read_raw(Ctl ctl, unsigned arena, void *value, size_t size,
             unsigned index = 0);
int write_raw(Ctl ctl, unsigned arena, const void *value, size_t size);

/** Read a control.
@param arena  arena index, for names of an arena
@param index  index of a size class, for names of one
@return its value or the error */
template <Ctl ctl>
Result<ctl_type_t<ctl>> read(unsigned arena = 0, unsigned index = 0) {
  static_assert(!std::is_same_v<ctl_type_t<ctl>, char *>,
                "arena names are copied out: use arena_name()");
  ctl_type_t<ctl> value{};
  const int error = read_raw(ctl, arena, &value, sizeof value, index);
  return error == 0 ? Result<ctl_type_t<ctl>>::ok(value)
                    : Result<ctl_type_t<ctl>>::failed(error);
}

/** Write a control. @return 0 or an errno */
template <Ctl ctl>
[[nodiscard]] int write(ctl_type_t<ctl> value, unsigned arena = 0) {
  return write_raw(ctl, arena, &value, sizeof value);
}

/** Longest arena name, with its end (jemalloc's ARENA_NAME_LEN). */
constexpr size_t arena_name_size = 32;

/** Copy an arena's name. @return 0 or an errno */
int arena_name(unsigned arena, char (&out)[arena_name_size]);
/** Name an arena. @return 0 or an errno */
int set_arena_name(unsigned arena, const char *name);

/** The index of the arena that a block lies in.
EINVAL: not a block of this allocator. */
Result<unsigned> arena_of(const void *block);

/** An arena's pages as they are now. The statistics have them as of the last
refresh(). */
struct Arena_pages {
  size_t resident_bytes;
  size_t dirty_pages;
};

/** EFAULT: no such arena. */
Result<Arena_pages> arena_pages(unsigned arena);

/** The metadata of an arena gets no huge pages, unless those of blocks may have
them (opt.thp).
@return its first block. EFAULT: no such arena */
Result<const void *> keep_metadata_small(unsigned arena);
/** That of all arenas. Some are jemalloc's own. */
void keep_metadata_small();

/** Purge all unused pages of an arena.
@return false: nothing was done, because another thread is purging the arena,
        and that may be only the pages that are due. EFAULT: no such arena. */
Result<bool> purge_arena(unsigned arena);

/** The heap profiler samples a block for so many bytes from now on. Threads
finish the interval that they have begun.
@param bytes  a power of two
@return 0, or ENOENT: the profiler is not initialised */
int set_sample_interval(uint64_t bytes);

/** Pages that the allocator keeps for later are dirty until it gives them back:
lazily (muzzy), or at once, which leaves none resident. */
enum class Pages : uint8_t { used, dirty, given_back };

/** An extent as the allocator has it: a slab of equal regions, or (1 region) a
large block or pages that it keeps for later. */
struct Extent {
  unsigned arena;
  size_t bytes;
  size_t regions;
  size_t free_regions;
  Pages pages;
};

/** The extent that begins at an address, or the slab that the address is in.
EINVAL: none is known there. Safe for any address at any time. If others split
or free the extent meanwhile, the answer is a mixture of before and after. */
Result<Extent> extent_at(const void *address);

/** For any address but null, so many bytes from it on in which no extent
begins, by a look at one node of the allocator's map: up to a gigabyte, or 0. */
size_t no_extents_from(const void *address);

/** Take a new snapshot of all statistics. jemalloc's statistics do not change
between two calls of this, so everything read after one call and before the
next belongs together, unless another thread also calls it. */
int refresh();

/** True if jemalloc serves the process's malloc(). False in sanitizer builds:
the sanitizer serves it, and jemalloc serves our pools. */
bool serves_malloc();

}  // namespace mallctl

/** Allocation entry points with explicit placement. None but general_allocate()
and general_free() touches the calling thread's automatic cache, see
mysys/memdiag/README.md. */
namespace placed {

/** An explicit cache (jemalloc's tcache.create); no_cache bypasses them all. A
cache may be used by one thread at a time: its owner sees to that. */
using Cache = int;
constexpr Cache no_cache = -1;

/** Allocate in one arena.
@param cache  where the block may come from; filled from the arena
@param zero   whether the block is to be filled with zeros
@return the block, or nullptr when the system has no more memory */
void *allocate(unsigned arena, Cache cache, size_t size, bool zero) noexcept;

/** Free a block into the cache, or into the arena it came from.
@param block  of jemalloc, not nullptr
@param size  as asked for at allocation */
void free(void *block, Cache cache, size_t size) noexcept;

/** Bytes a block of `size` really takes, asked of the library. */
size_t usable_by_library(size_t size) noexcept;

/** The same. It is needed for every block of a pool, so the library is asked
for large blocks only. */
inline size_t usable(size_t size) noexcept {
  if (size > largest_fixed_class) [[unlikely]]
    return usable_by_library(size);
  return size_class(size);
}

/** Bytes of the pages that a block above largest_fixed_class takes anew.
jemalloc adds a page, so that blocks begin at different lines of the processors'
caches (opt.cache_oblivious). It takes a size class at once, or whole pages of 2
MB if these are fewer, and the rest waits among the unused pages
(pac_alloc_retained_batched_size). In pages that were used before, the block may
take less.
@param usable  of the block */
constexpr size_t extent_bytes(size_t usable) noexcept {
  constexpr size_t page_bytes = 4096;
  constexpr size_t huge_page_bytes = 2 << 20;
  const size_t needed = usable + page_bytes;
  return std::min(size_class(needed),
                  (needed + huge_page_bytes - 1) & ~(huge_page_bytes - 1));
}

/** The usable bytes of a block, asked of the allocator; enough to free it with.
 */
size_t size_of(const void *block) noexcept;

/** Allocate as malloc() or calloc() does. */
void *general_allocate(size_t size, bool zero) noexcept;
void general_free(void *block) noexcept;

}  // namespace placed
}  // namespace memdiag

#endif  // MEMDIAG_MALLCTL_H
