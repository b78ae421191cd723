/*
  Files of records, which a server keeps in its data directory:
  MEMDIAG_HISTORY's and the flight recorder's.

  Records may be half written when the server is killed, so each has a checksum.
  Others may truncate or replace the file at any time: nothing here maps it.

  Threads: any, each with its own descriptor. Units: bytes. Errors: an errno.
*/

#ifndef MEMDIAG_RECORD_FILE_H
#define MEMDIAG_RECORD_FILE_H

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace memdiag::record_file {

/** The checksum FNV-1a of 64 bits.
@param hash  of what comes before, if there is something */
inline uint64_t fnv1a(std::span<const std::byte> bytes,
                      uint64_t hash = 14695981039346656037u) {
  for (const std::byte byte : bytes)
    hash = (hash ^ static_cast<uint64_t>(byte)) * 1099511628211u;
  return hash;
}

/** Closes a file at the end of a block. */
class Descriptor {
 public:
  explicit Descriptor(int number) : m_number(number) {}
  ~Descriptor() {
    if (m_number >= 0) (void)close(m_number);
  }
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;
  operator int() const { return m_number; }

 private:
  const int m_number;
};

/** All of a file, or what can be read of it.
@return 0 or an errno; EFBIG: it is no file, or larger than `most` */
inline int read_all(int file, size_t most, std::vector<std::byte> *bytes) {
  struct stat about;
  if (fstat(file, &about) != 0) return errno;
  if (!S_ISREG(about.st_mode) || static_cast<size_t>(about.st_size) > most)
    return EFBIG;
  bytes->resize(static_cast<size_t>(about.st_size));
  size_t done = 0;
  while (done < bytes->size()) {
    const ssize_t count = pread(file, bytes->data() + done,
                                bytes->size() - done, static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  bytes->resize(done);
  return 0;
}

/** Reads the file of that name as read_all() does. Links are not followed.
@return 0 or an errno; ENOENT: there is no such file */
inline int read_path(const std::string &path, size_t most,
                     std::vector<std::byte> *bytes) {
  // O_NONBLOCK: it might be a pipe.
  const Descriptor file(
      ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  return file < 0 ? errno : read_all(file, most, bytes);
}

/** @return 0 or an errno */
inline int write_at(int file, size_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count =
        pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    if (count == 0) return EIO;
    bytes = bytes.subspan(static_cast<size_t>(count));
    offset += static_cast<size_t>(count);
  }
  return 0;
}

/** A new file of that size, mode 0640, whose blocks are reserved. A file that
has the name is removed first.
@return its descriptor, which the caller closes; -1: see errno */
inline int make_file(const char *path, size_t bytes) {
  if (unlink(path) != 0 && errno != ENOENT) return -1;
  const int file =
      ::open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);
  if (file < 0) return -1;
  const int error = posix_fallocate(file, 0, static_cast<off_t>(bytes));
  if (error == 0) return file;
  (void)close(file);
  (void)unlink(path);
  errno = error;
  return -1;
}

/** Gives a new file its name, and takes the name from an older one. The content
is written to disk before that: some file systems could otherwise show the new
name without it after a power failure. If that writing fails, the file is named
all the same. A power failure may leave the older file.
@return 0, or the errno of rename() */
inline int publish(int file, const char *fresh, const char *path) {
  (void)fdatasync(file);
  return rename(fresh, path) == 0 ? 0 : errno;
}

/** @return true: the file has that size and that header. Truncation and
overwriting from the beginning are noticed by these. */
template <typename Header>
bool is_intact(int file, size_t bytes, const Header &expected) {
  struct stat about;
  Header found;
  return fstat(file, &about) == 0 &&
         static_cast<size_t>(about.st_size) == bytes &&
         pread(file, &found, sizeof found, 0) == sizeof found &&
         memcmp(&found, &expected, sizeof found) == 0;
}

/** @param of, server  hashes of UUIDs; 0: not known */
inline bool is_of_another(uint64_t of, uint64_t server) {
  return of != 0 && server != 0 && of != server;
}
inline constexpr const char *of_another =
    " is of another server, whose data directory was copied";

/** A file that could not be read is kept under another name: a new one is about
to take its own, and the next attempt, or the build that wrote it, might have
read it. What is no regular file is not kept.
@param error  of reading it, or 0
@return what to add to a remark */
inline std::string keep_unread(int error, const std::string &path) {
  const std::string kept = path + ".unread";
  struct stat about;
  if (error == 0 || lstat(path.c_str(), &about) != 0 ||
      !S_ISREG(about.st_mode) || rename(path.c_str(), kept.c_str()) != 0)
    return "";
  return ". It is kept as " + kept;
}

}  // namespace memdiag::record_file

#endif  // MEMDIAG_RECORD_FILE_H
