#include "plugin/memdiag/history/black_box.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "plugin/memdiag/base/reason.h"

namespace memdiag::black_box {
namespace {

uint64_t fnv1a(std::span<const std::byte> bytes,
               uint64_t hash = 14695981039346656037u) {
  for (const std::byte byte : bytes)
    hash = (hash ^ static_cast<uint64_t>(byte)) * 1099511628211u;
  return hash;
}

/** What a file of this build begins with. */
struct Header {
  char magic[8];
  uint32_t format;
  uint32_t record_bytes;
  /** A hash of the pools' names. */
  uint64_t pools;
};

static_assert(std::has_unique_object_representations_v<Record>);

constexpr size_t header_bytes = 4096;

constexpr size_t file_bytes(size_t capacity) {
  return header_bytes + capacity * file_bytes_per_sample;
}

Header this_build() {
  uint64_t pools = fnv1a({});
  for (const Pool_spec &spec : pool_specs)
    // The end counts too: names are not to run together.
    pools = fnv1a(
        {reinterpret_cast<const std::byte *>(spec.name), strlen(spec.name) + 1},
        pools);
  return {{'m', 'e', 'm', 'd', 'i', 'a', 'g', '\n'}, 2, sizeof(Record), pools};
}

uint64_t checksum_of(const Sample &sample) {
  return fnv1a(std::as_bytes(std::span{&sample, 1}));
}

/** Whether its moments can be shown: a TIMESTAMP ends in 2038. */
bool is_plausible(const Sample &sample) {
  constexpr uint64_t end_us = uint64_t{INT32_MAX} * 1000000;
  return sample.time_us < end_us && sample.run_us < end_us &&
         sample.rss_peak_us < end_us;
}

Contents collect(std::span<const std::byte> records) {
  static constexpr Record never_written{};
  Contents contents;
  for (; records.size() >= sizeof(Record);
       records = records.subspan(sizeof(Record))) {
    Record record;
    memcpy(&record, records.data(), sizeof record);
    if (memcmp(&record, &never_written, sizeof record) == 0) continue;
    if (record.checksum == checksum_of(record.sample) &&
        is_plausible(record.sample))
      contents.samples.push_back(record.sample);
    else
      ++contents.damaged;
  }
  std::stable_sort(
      contents.samples.begin(), contents.samples.end(),
      [](const Sample &a, const Sample &b) { return a.sequence < b.sequence; });
  return contents;
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

/** Whether a block that is written again is another one on disk: then a full
disk ends who writes into a mapping, however much was reserved. */
bool copies_on_write(int file) {
  constexpr unsigned btrfs = 0x9123683E;
  constexpr unsigned bcachefs = 0xCA451A4E;
  struct statfs system;
  if (fstatfs(file, &system) != 0) return false;
  const auto type = static_cast<unsigned>(system.f_type);
  return type == btrfs || type == bcachefs;
}

/** A new file, reserved and mapped. @return nullptr: errno says why */
std::byte *map_new_file(const char *path, size_t bytes) {
  if (unlink(path) != 0 && errno != ENOENT) return nullptr;
  const Descriptor file(
      ::open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640));
  if (file < 0) return nullptr;
  int error = copies_on_write(file)
                  ? ENOTSUP
                  : posix_fallocate(file, 0, static_cast<off_t>(bytes));
  if (error == 0) {
    void *const begin =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (begin != MAP_FAILED) return static_cast<std::byte *>(begin);
    error = errno;
  }
  (void)unlink(path);
  errno = error;
  return nullptr;
}

}  // namespace

bool parse(std::span<const std::byte> file, Contents *contents) {
  const Header expected = this_build();
  static_assert(std::has_unique_object_representations_v<Header>);
  if (file.size() < header_bytes ||
      memcmp(file.data(), &expected, sizeof expected) != 0)
    return false;
  *contents = collect(file.subspan(header_bytes));
  return true;
}

std::string load(const std::string &path, Contents *contents) {
  *contents = {};
  // O_NONBLOCK: it might be a pipe.
  const Descriptor file(
      ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (file < 0)
    return errno == ENOENT ? ""
                           : path + " cannot be read: error " + reason(errno);
  struct stat about;
  if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode) ||
      static_cast<size_t>(about.st_size) > file_bytes(max_capacity))
    return path + " is not a file of samples";
  std::vector<std::byte> bytes(static_cast<size_t>(about.st_size));
  size_t read_bytes = 0;
  while (read_bytes < bytes.size()) {
    const ssize_t count =
        read(file, bytes.data() + read_bytes, bytes.size() - read_bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return path + " cannot be read: error " + reason(errno);
    if (count == 0) break;
    read_bytes += static_cast<size_t>(count);
  }
  bytes.resize(read_bytes);
  if (!parse(bytes, contents))
    return path +
           " is not of this build: it may be of another version, or damaged";
  if (contents->damaged != 0)
    return path + ": " + std::to_string(contents->damaged) +
           " samples are half written or damaged";
  return "";
}

Box::~Box() {
  if (m_begin != nullptr) munmap(m_begin, file_bytes(m_capacity));
}

int Box::open(const std::string &path, size_t capacity,
              std::span<const Sample> former) {
  const std::string fresh = path + ".new";
  const size_t bytes = file_bytes(capacity);
  m_capacity = capacity;
  m_begin = map_new_file(fresh.c_str(), bytes);
  const int error = m_begin == nullptr ? errno : 0;
  if (m_begin == nullptr) {
    void *const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return error;
    m_begin = static_cast<std::byte *>(memory);
  }
  const Header header = this_build();
  memcpy(m_begin, &header, sizeof header);
  former = former.last(std::min(former.size(), capacity));
  for (const Sample &sample : former) {
    Record record{0, sample};
    record.sample.sequence = ++m_sequence;
    record.checksum = checksum_of(record.sample);
    memcpy(record_at(m_sequence - 1), &record, sizeof record);
  }
  if (error != 0 || rename(fresh.c_str(), path.c_str()) == 0) return error;
  // What is mapped remains, as memory.
  const int rename_error = errno;
  (void)unlink(fresh.c_str());
  return rename_error;
}

void Box::append(Sample sample) noexcept {
  if (m_begin == nullptr) return;
  sample.sequence = ++m_sequence;
  const Record record{checksum_of(sample), sample};
  memcpy(record_at(m_capacity + m_appended++ % m_capacity), &record,
         sizeof record);
}

std::byte *Box::record_at(size_t index) const {
  return m_begin + header_bytes + index * sizeof(Record);
}

std::vector<Sample> Box::former_runs() const {
  if (m_begin == nullptr) return {};
  return collect({record_at(0), m_capacity * sizeof(Record)}).samples;
}

std::vector<Sample> Box::this_run(uint64_t since_us) const {
  std::vector<Sample> samples;
  const size_t count = std::min(m_appended, m_capacity);
  for (size_t i = 1; i <= count; ++i) {
    Record record;
    memcpy(&record, record_at(m_capacity + (m_appended - i) % m_capacity),
           sizeof record);
    if (record.sample.time_us < since_us) break;
    // What this process wrote is whole; whoever can write the file is not
    // believed for that.
    if (is_plausible(record.sample)) samples.push_back(record.sample);
  }
  std::reverse(samples.begin(), samples.end());
  return samples;
}

}  // namespace memdiag::black_box
