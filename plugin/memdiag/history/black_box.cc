#include "plugin/memdiag/history/black_box.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "mysys/memdiag/base/interruption.h"
#include "plugin/memdiag/base/reason.h"
#include "plugin/memdiag/base/record_file.h"

namespace memdiag::black_box {
namespace {

using record_file::Descriptor;
using record_file::fnv1a;
using record_file::make_file;
using record_file::publish;
using record_file::read_path;
using record_file::write_at;

/** The beginning of a file of this build. */
struct Header {
  char magic[8];
  uint32_t format;
  uint32_t record_bytes;
  /** A hash of the pools' names. */
  uint64_t pools;
  /** The server that Box::open() was given. Files of earlier builds have 0. */
  uint64_t server;
};

static_assert(std::has_unique_object_representations_v<Record>);

constexpr size_t header_bytes = 4096;

constexpr size_t file_bytes(size_t capacity) {
  return header_bytes + capacity * file_bytes_per_sample;
}

Header this_build(uint64_t server) {
  uint64_t pools = fnv1a({});
  for (const Pool_spec &spec : pool_specs)
    // The end counts too: names are not to run together.
    pools = fnv1a(
        {reinterpret_cast<const std::byte *>(spec.name), strlen(spec.name) + 1},
        pools);
  return {{'m', 'e', 'm', 'd', 'i', 'a', 'g', '\n'},
          3,
          sizeof(Record),
          pools,
          server};
}

static_assert(std::has_unique_object_representations_v<Header>);

/** @return true: its layout is known, whatever the server */
bool is_of_this_build(const Header &found) {
  const Header expected = this_build(found.server);
  return memcmp(&found, &expected, sizeof expected) == 0;
}

uint64_t checksum_of(const Saved_sample &sample) {
  return fnv1a(std::as_bytes(std::span{&sample, 1}));
}

/** @return true: its moments can be shown; a TIMESTAMP ends in 2038 */
bool is_plausible(const Saved_sample &sample) {
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
      contents.samples.push_back({record.sample});
    else
      ++contents.damaged;
  }
  std::stable_sort(
      contents.samples.begin(), contents.samples.end(),
      [](const Sample &a, const Sample &b) { return a.sequence < b.sequence; });
  return contents;
}

Record record_of(const Saved_sample &sample) {
  return {checksum_of(sample), sample};
}

constexpr size_t offset_of(size_t index) {
  return header_bytes + index * sizeof(Record);
}

}  // namespace

bool parse(std::span<const std::byte> file, Contents *contents) {
  if (file.size() < header_bytes) return false;
  Header header;
  memcpy(&header, file.data(), sizeof header);
  if (!is_of_this_build(header)) return false;
  *contents = collect(file.subspan(header_bytes));
  contents->server = header.server;
  return true;
}

std::string load(const std::string &path, uint64_t server, Contents *contents) {
  *contents = {};
  std::vector<std::byte> bytes;
  const int error = read_path(path, file_bytes(max_capacity), &bytes);
  if (error == ENOENT) return "";
  contents->error = error;
  if (error == EFBIG) return path + " is not a file of samples";
  if (error != 0) return path + " cannot be read: error " + reason(error);
  const bool is_known = parse(bytes, contents);
  if (!is_known || record_file::is_of_another(contents->server, server)) {
    *contents = {};
    if (!bytes.empty()) contents->error = EBADMSG;
    return path + (is_known ? record_file::of_another
                            : " is not of this build: it may be of another "
                              "version, or damaged");
  }
  if (contents->damaged != 0)
    return path + ": " + std::to_string(contents->damaged) +
           " samples are half written or damaged";
  return "";
}

Box::~Box() {
  if (m_file >= 0) (void)close(m_file);
}

/** Writes a new file and gives it the name. @return 0 or an errno */
int Box::make() noexcept {
  m_file = make_file(m_fresh.c_str(), file_bytes(m_capacity));
  if (m_file < 0) return errno;
  int error = write_all();
  if (error == 0) error = publish(m_file, m_fresh.c_str(), m_path.c_str());
  if (error == 0) return 0;
  (void)unlink(m_fresh.c_str());
  (void)close(m_file);
  m_file = -1;
  return error;
}

/** Puts a sample of this run into the file of former runs, in the place of
their oldest, or of the last one that was put there. Its blocks are there, so
that a full disk does not prevent it. Errors leave the file as it is. */
void Box::mark_former_file(Sample sample) const noexcept {
  const Descriptor file(
      ::open(m_path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat about;
  if (file < 0 || fstat(file, &about) != 0 || !S_ISREG(about.st_mode)) return;
  Header found;
  if (pread(file, &found, sizeof found, 0) != sizeof found ||
      !is_of_this_build(found))
    return;
  size_t place = 0;
  uint64_t lowest = UINT64_MAX;
  uint64_t highest = 0;
  Record record;
  ssize_t size;
  for (size_t i = 0;
       (size = pread(file, &record, sizeof record,
                     static_cast<off_t>(offset_of(i)))) == sizeof record;
       ++i) {
    // Empty places count as the oldest, and so do damaged records.
    const bool is_whole = record.checksum == checksum_of(record.sample);
    const bool is_own = is_whole && record.sample.run_us == sample.run_us &&
                        record.sample.process == sample.process;
    const uint64_t age = is_whole && !is_own ? record.sample.sequence : 0;
    highest = std::max(highest, age);
    if (age < lowest || is_own) {
      lowest = age;
      place = i;
    }
  }
  // Newer ones may be where it could not be read.
  if (size < 0 || lowest == UINT64_MAX) return;
  sample.sequence = highest + 1;
  record = record_of(sample);
  (void)write_at(file, offset_of(place), std::as_bytes(std::span{&record, 1}));
}

int Box::open(const std::string &path, size_t capacity,
              std::span<const Sample> former, uint64_t server) {
  m_server = server;
  m_ring.reserve(capacity);
  former = former.last(std::min(former.size(), capacity));
  m_former.assign(former.begin(), former.end());
  for (Sample &sample : m_former) sample.sequence = ++m_sequence;
  m_capacity = capacity;
  m_path = path;
  m_fresh = path + ".new";
  const int error = make();
  if (error != 0) m_retry_in = retry_after_samples;
  return error;
}

int Box::append(Sample sample) noexcept {
  if (m_capacity == 0) return 0;
  sample.sequence = ++m_sequence;
  const size_t at = m_appended % m_capacity;
  {
    const std::lock_guard<std::mutex> guard(m_mutex);
    // There is room: open() has reserved it.
    if (m_ring.size() < m_capacity)
      m_ring.push_back(sample);
    else
      m_ring[at] = sample;
    ++m_appended;
  }
  return write_newest();
}

int Box::end() noexcept {
  if (m_appended == 0) return 0;
  {
    const std::lock_guard<std::mutex> guard(m_mutex);
    m_ring[(m_appended - 1) % m_capacity].ended = 1;
  }
  return write_newest();
}

/** Only the thread that appends calls this, so the ring does not change. */
int Box::write_newest() noexcept {
  const size_t at = (m_appended - 1) % m_capacity;
  const Sample &sample = m_ring[at];
  // The last sample says that the run was shut down: it does not wait.
  const bool waits = m_retry_in != 0 && --m_retry_in != 0 && sample.ended == 0;
  if (m_file < 0) {
    const int error = waits ? 0 : make();
    if (error != 0) m_retry_in = retry_after_samples;
    // Else the next start would take an older run for the last one.
    if (m_file < 0 && (m_appended == 1 || !waits)) mark_former_file(sample);
    return error;
  }
  if (waits) return 0;
  int error;
  if (m_is_behind || !record_file::is_intact(m_file, file_bytes(m_capacity),
                                             this_build(m_server))) {
    error = write_all();
  } else {
    const Record record = record_of(sample);
    error = write_at(m_file, offset_of(m_capacity + at),
                     std::as_bytes(std::span{&record, 1}));
  }
  m_is_behind = error != 0;
  if (error != 0) m_retry_in = retry_after_samples;
  return error;
}

/** Writes every record, also those that are empty: another file may have been
copied over this one. Its size is restored and its blocks are reserved first. */
int Box::write_all() const {
  const auto size = static_cast<off_t>(file_bytes(m_capacity));
  if (ftruncate(m_file, size) != 0) return errno;
  if (const int error = posix_fallocate(m_file, 0, size); error != 0)
    return error;
  const Header header = this_build(m_server);
  if (const int error =
          write_at(m_file, 0, std::as_bytes(std::span{&header, 1}));
      error != 0)
    return error;
  // Only the thread that appends calls this, so the ring does not change.
  for (size_t part = 0; part < 2; ++part) {
    const std::vector<Sample> &samples = part == 0 ? m_former : m_ring;
    std::array<Record, 64> chunk;
    for (size_t i = 0; i < m_capacity; i += chunk.size()) {
      const size_t count = std::min(chunk.size(), m_capacity - i);
      for (size_t j = 0; j < count; ++j)
        chunk[j] =
            i + j < samples.size() ? record_of(samples[i + j]) : Record{};
      if (const int error =
              write_at(m_file, offset_of(part * m_capacity + i),
                       std::as_bytes(std::span{chunk}.first(count)));
          error != 0)
        return error;
    }
  }
  return 0;
}

std::vector<Sample> Box::this_run(uint64_t since_us) const {
  std::vector<Sample> samples;
  // Room is made while the mutex is not held; more may have come meanwhile.
  // Growing step by step would take twice the memory of a long history.
  for (size_t room = 0;;) {
    samples.reserve(room);
    const std::lock_guard<std::mutex> guard(m_mutex);
    /** 1: the newest. */
    const auto newest = [this](size_t number) -> const Sample & {
      return m_ring[(m_appended - number) % m_capacity];
    };
    size_t count = 0;
    while (count < m_ring.size() && newest(count + 1).time_us >= since_us)
      ++count;
    if (count > samples.capacity()) {
      room = count;
      continue;
    }
    for (size_t i = count; i != 0 && !is_interrupted(); --i)
      if (is_plausible(newest(i))) samples.push_back(newest(i));
    return samples;
  }
}

}  // namespace memdiag::black_box
