/*
  Makes system calls of ours fail on demand. proof/calls.py preloads it into
  mysqld and steers it through a file that both map (MEMDIAG_CALLS).

  A call is ours if its return address lies in one of the file's ranges. Our
  code calls the functions below itself and not through the C++ library. Those
  that do not fail are the kernel's own: jemalloc calls some before dlsym()
  works.

  Threads: any. It allocates nothing.
*/

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>

namespace {

/** interposed.py has the same order. */
enum class Kind {
  // clang-format off
  open, read, pread, pwrite, fstat, stat, statfs, close, unlink, rename,
  readlink, realpath, posix_fallocate, ftruncate, fdatasync, mmap, munmap,
  madvise, mincore, ioctl, pthread_create
  // clang-format on
};

using Number = std::atomic<uint64_t>;

/** In place of an errno: half of what was asked for is read or written. */
constexpr uint64_t half = 1 << 20;

/** The file; interposed.py writes it. */
struct Control {
  Number ranges;
  /** So many fail, after so many others. */
  Number count;
  Number skip;
  /** A key of `sites`: only those fail; 0: all. */
  Number only;
  /** Out: those that could have failed, and those that did. */
  Number seen;
  Number failed;
  /** The errno that a call of each kind gets; 0: it does not fail. */
  Number error[32];
  /** Out: where it was called from. */
  struct {
    /** The return address, shifted by 8 bits, and the kind; 0: free. */
    Number key;
    Number seen;
    Number failed;
  } sites[512];
  /** The functions of ours: sorted addresses in the file of mysqld. */
  uint64_t range[][2];
};

constinit uint64_t base = 0;

Control *open_control() {
  const char *const path = getenv("MEMDIAG_CALLS");
  if (path == nullptr) return nullptr;
  const auto phdr = reinterpret_cast<const Elf64_Phdr *>(getauxval(AT_PHDR));
  base = reinterpret_cast<uint64_t>(phdr) - phdr->p_vaddr;  // PT_PHDR is first
  const long file = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
  struct stat about;
  if (file < 0 || syscall(SYS_fstat, file, &about) != 0) abort();
  const long at = syscall(SYS_mmap, nullptr, about.st_size,
                          PROT_READ | PROT_WRITE, MAP_SHARED, file, 0L);
  syscall(SYS_close, file);
  if (at == -1) abort();
  return reinterpret_cast<Control *>(at);
}

/** @return 0, or the errno of a call that has to fail; `bytes` may shrink */
int failure(Kind kind, const void *caller, long *bytes = nullptr) {
  static constinit std::atomic<int> looked{0};
  static constinit Control *control = nullptr;
  // The first call comes before there are threads.
  if (looked.exchange(1) == 0) control = open_control();
  if (control == nullptr) return 0;
  const uint64_t address = reinterpret_cast<uint64_t>(caller) - base;
  const auto end = control->range + control->ranges;
  const auto after = std::upper_bound(
      control->range, end, address,
      [](uint64_t at, const uint64_t(&range)[2]) { return at < range[0]; });
  // The return address of a call that ends a function is the next one's.
  if (after == control->range || address > after[-1][1]) return 0;
  const uint64_t key = address << 8 | static_cast<uint64_t>(kind) | 0x80;
  auto *site = control->sites;
  for (uint64_t free = 0;
       !site->key.compare_exchange_strong(free, key) && free != key; free = 0)
    if (++site == std::end(control->sites)) abort();
  ++site->seen;
  const uint64_t error = control->error[static_cast<size_t>(kind)];
  if (error == 0 || (control->only != 0 && control->only != key)) return 0;
  const uint64_t number = control->seen++;
  if (number < control->skip || number - control->skip >= control->count)
    return 0;
  if (error == half && (bytes == nullptr || *bytes < 2)) return 0;
  ++site->failed;
  ++control->failed;
  if (error != half) return static_cast<int>(error);
  *bytes /= 2;
  return 0;
}

}  // namespace

#define CALLER __builtin_return_address(0)
/** A function under the C library's name. Its parameters are registers. Most
return -1 and set errno; `half` counts for the third parameter. */
#define FUNCTION(name, label)                                  \
  extern "C" long name(long a, long b, long c, long d, long e, \
                       long f) asm(label);                     \
  long name([[maybe_unused]] long a, [[maybe_unused]] long b,  \
            [[maybe_unused]] long c, [[maybe_unused]] long d,  \
            [[maybe_unused]] long e, [[maybe_unused]] long f)
#define CALL(kind, label, ...)                                      \
  FUNCTION(kind##_##label, #label) {                                \
    const int error = failure(Kind::kind, CALLER, &c);              \
    return error == 0 ? syscall(__VA_ARGS__) : (errno = error, -1); \
  }
#define CALL_64(kind, ...) \
  CALL(kind, kind, __VA_ARGS__) CALL(kind, kind##64, __VA_ARGS__)

CALL_64(open, SYS_openat, AT_FDCWD, a, b, c)
CALL(read, read, SYS_read, a, b, c)
CALL_64(pread, SYS_pread64, a, b, c, d)
CALL_64(pwrite, SYS_pwrite64, a, b, c, d)
CALL_64(fstat, SYS_fstat, a, b)
CALL_64(stat, SYS_newfstatat, AT_FDCWD, a, b, 0)
CALL_64(statfs, SYS_statfs, a, b)
CALL(unlink, unlink, SYS_unlinkat, AT_FDCWD, a, 0)
CALL(rename, rename, SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, 0)
CALL(readlink, readlink, SYS_readlinkat, AT_FDCWD, a, b, c)
CALL_64(ftruncate, SYS_ftruncate, a, b)
CALL(fdatasync, fdatasync, SYS_fdatasync, a)
CALL_64(mmap, SYS_mmap, a, b, int(c), int(d), int(e), f)
CALL(munmap, munmap, SYS_munmap, a, b)
CALL(madvise, madvise, SYS_madvise, a, b, c)
CALL(mincore, mincore, SYS_mincore, a, b, c)
CALL(ioctl, ioctl, SYS_ioctl, a, b, c)

/** It closes even so, as the kernel does. */
FUNCTION(close_, "close") {
  const int error = failure(Kind::close, CALLER);
  const long result = syscall(SYS_close, a);
  return error == 0 ? result : (errno = error, -1);
}

#define FALLOCATE(label)                                        \
  FUNCTION(label##_, #label) {                                  \
    const int error = failure(Kind::posix_fallocate, CALLER);   \
    if (error != 0) return error;                               \
    return syscall(SYS_fallocate, a, 0, b, c) == 0 ? 0 : errno; \
  }
FALLOCATE(posix_fallocate)
FALLOCATE(posix_fallocate64)

using Function = long(long, long, long, long);

#define REALPATH(label)                                             \
  FUNCTION(label##_, #label) {                                      \
    static const auto real =                                        \
        reinterpret_cast<Function *>(dlsym(RTLD_NEXT, "realpath")); \
    const int error = failure(Kind::realpath, CALLER);              \
    return error == 0 ? real(a, b, 0, 0) : (errno = error, 0);      \
  }
REALPATH(realpath)
REALPATH(__realpath_chk)

FUNCTION(pthread_create_, "pthread_create") {
  static const auto real =
      reinterpret_cast<Function *>(dlsym(RTLD_NEXT, "pthread_create"));
  const int error = failure(Kind::pthread_create, CALLER);
  return error != 0 ? error : real(a, b, c, d);
}
