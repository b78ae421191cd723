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
#include <pthread.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>

namespace {

/** calls.py has the same order. */
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

/** The file; calls.py writes it. */
struct Control {
  Number ranges;
  /** So many fail, after so many others. */
  Number count;
  Number skip;
  /** Out: those that could have failed, and those that did. */
  Number seen;
  Number failed;
  /** Of each kind; 0: it does not fail. */
  Number error[32];
  /** Out: where it was called from. */
  struct {
    /** The return address, shifted by 8 bits, and the kind; 0: free. */
    Number key;
    Number seen;
    Number failed;
  } sites[512];
  /** Of mysqld's file, in order. */
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
  if (at < 0 && at > -4096) abort();
  return reinterpret_cast<Control *>(at);
}

/** @return 0, or the errno of a call that has to fail; `bytes` may shrink */
int failure(Kind kind, const void *caller, size_t *bytes = nullptr) {
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
  if (error == 0) return 0;
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

template <typename Function>
Function *next(const char *name) {
  return reinterpret_cast<Function *>(dlsym(RTLD_NEXT, name));
}

}  // namespace

#define CALLER __builtin_return_address(0)
/** Those that return -1 and set errno. `size` may shrink. */
#define CALL(type, name, size, parameters, number, ...)                    \
  type name parameters {                                                   \
    if (const int error = failure(Kind::name, CALLER, size); error != 0) { \
      errno = error;                                                       \
      return -1;                                                           \
    }                                                                      \
    return static_cast<type>(syscall(number, __VA_ARGS__));                \
  }
#define SAME(type, name, like, ...) \
  type name(__VA_ARGS__) __attribute__((alias(like)));

extern "C" {

CALL(ssize_t, read, &bytes, (int file, void *to, size_t bytes), SYS_read, file,
     to, bytes)
CALL(ssize_t, pread, &bytes, (int file, void *to, size_t bytes, off_t at),
     SYS_pread64, file, to, bytes, at)
CALL(ssize_t, pwrite, &bytes,
     (int file, const void *from, size_t bytes, off_t at), SYS_pwrite64, file,
     from, bytes, at)
CALL(int, fstat, nullptr, (int file, struct stat *about) noexcept, SYS_fstat,
     file, about)
CALL(int, stat, nullptr, (const char *path, struct stat *about) noexcept,
     SYS_newfstatat, AT_FDCWD, path, about, 0)
CALL(int, statfs, nullptr, (const char *path, struct statfs *about) noexcept,
     SYS_statfs, path, about)
CALL(int, unlink, nullptr, (const char *path) noexcept, SYS_unlinkat, AT_FDCWD,
     path, 0)
CALL(int, rename, nullptr, (const char *from, const char *to) noexcept,
     SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0)
CALL(ssize_t, readlink, nullptr,
     (const char *path, char *to, size_t bytes) noexcept, SYS_readlinkat,
     AT_FDCWD, path, to, bytes)
CALL(int, ftruncate, nullptr, (int file, off_t bytes) noexcept, SYS_ftruncate,
     file, bytes)
CALL(int, fdatasync, nullptr, (int file), SYS_fdatasync, file)
CALL(int, munmap, nullptr, (void *at, size_t bytes) noexcept, SYS_munmap, at,
     bytes)
CALL(int, madvise, nullptr, (void *at, size_t bytes, int advice) noexcept,
     SYS_madvise, at, bytes, advice)
CALL(int, mincore, nullptr,
     (void *at, size_t bytes, unsigned char *present) noexcept, SYS_mincore, at,
     bytes, present)

int open(const char *path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const unsigned mode = va_arg(rest, unsigned);
  va_end(rest);
  if (const int error = failure(Kind::open, CALLER); error != 0)
    return errno = error, -1;
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

int ioctl(int file, unsigned long request, ...) noexcept {
  va_list rest;
  va_start(rest, request);
  void *const argument = va_arg(rest, void *);
  va_end(rest);
  if (const int error = failure(Kind::ioctl, CALLER); error != 0)
    return errno = error, -1;
  return static_cast<int>(syscall(SYS_ioctl, file, request, argument));
}

/** It closes even so, as the kernel does. */
int close(int file) {
  const int error = failure(Kind::close, CALLER);
  const auto result = static_cast<int>(syscall(SYS_close, file));
  return error == 0 ? result : (errno = error, -1);
}

int posix_fallocate(int file, off_t at, off_t bytes) {
  if (const int error = failure(Kind::posix_fallocate, CALLER); error != 0)
    return error;
  return syscall(SYS_fallocate, file, 0, at, bytes) == 0 ? 0 : errno;
}

void *mmap(void *at, size_t bytes, int access, int flags, int file,
           off_t from) noexcept {
  if (const int error = failure(Kind::mmap, CALLER); error != 0)
    return errno = error, MAP_FAILED;
  return reinterpret_cast<void *>(
      syscall(SYS_mmap, at, bytes, access, flags, file, from));
}

static char *real_path(const char *path, char *to, const void *caller) {
  static const auto real = next<char *(const char *, char *)>("realpath");
  if (const int error = failure(Kind::realpath, caller); error != 0)
    return errno = error, nullptr;
  return real(path, to);
}

char *realpath(const char *path, char *to) noexcept {
  return real_path(path, to, CALLER);
}

/** As _FORTIFY_SOURCE has it. */
char *__realpath_chk(const char *path, char *to, size_t) noexcept {
  return real_path(path, to, CALLER);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                   void *(*body)(void *), void *argument) noexcept {
  static const auto real = next<decltype(::pthread_create)>("pthread_create");
  const int error = failure(Kind::pthread_create, CALLER);
  return error != 0 ? error : real(thread, attributes, body, argument);
}

SAME(int, open64, "open", const char *, int, ...)
SAME(int, fstat64, "fstat", int, struct stat64 *)
SAME(int, stat64, "stat", const char *, struct stat64 *)
SAME(int, statfs64, "statfs", const char *, struct statfs64 *)
SAME(ssize_t, pread64, "pread", int, void *, size_t, off64_t)
SAME(ssize_t, pwrite64, "pwrite", int, const void *, size_t, off64_t)
SAME(int, posix_fallocate64, "posix_fallocate", int, off64_t, off64_t)
SAME(int, ftruncate64, "ftruncate", int, off64_t)
SAME(void *, mmap64, "mmap", void *, size_t, int, int, int, off64_t)
}
