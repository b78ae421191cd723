#include "plugin/memdiag/profile_file/profile_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "plugin/memdiag/base/reason.h"
#include "plugin/memdiag/base/record_file.h"
#include "plugin/memdiag/profile_file/file_format.h"
#include "plugin/memdiag/profile_file/file_reader.h"

namespace memdiag::profile {
namespace {

using record_file::make_file;
using record_file::publish;
using record_file::read_all;
using record_file::write_at;

template <size_t size>
void set_text(std::string_view text, char (&to)[size]) {
  const size_t length = std::min(text.size(), size - 1);
  memcpy(to, text.data(), length);
  memset(to + length, 0, size - length);
}

/** Sets the checksum and writes. @return 0 or an errno */
template <typename Record>
int write_record(int file, size_t offset, Record *record) {
  record->checksum = checksum_of(*record);
  return write_at(file, offset, std::as_bytes(std::span{record, 1}));
}

int reserve(int file) {
  return posix_fallocate(file, 0, static_cast<off_t>(file_bytes));
}

}  // namespace

struct Profile_file::Buffers {
  /** A site of this run in the file. */
  struct Slot {
    uint64_t since_us;
    /** 0: free. */
    uint32_t number;
    /** The last snapshot that used it. */
    uint64_t used;
    /** A bit for each snapshot of the ramps that needs it. */
    uint64_t needed;
  };
  /** The bit for `low`. */
  static constexpr size_t low_bit = file_ramps * snapshots_of_ramp;
  static_assert(low_bit < 64);

  /** A ramp of this run in the file. */
  struct Ramp {
    uint64_t since_us;
    /** 0: free. */
    uint32_t number;
    /** The first snapshot. */
    uint64_t sequence;
    uint64_t peak_bytes;
    uint64_t highs;
  };

  std::array<Slot, file_sites> slots{};
  std::array<Ramp, file_ramps> ramps{};
  size_t modules{0};
  std::array<Module_record, file_modules> module{};
  Site_record site{};
  Ramp_record snapshot{};
  /** The newest record with the mark of Record_decision::is_low. */
  Ramp_record low{};
  History_record history{};
  std::array<std::byte, 65536> zeros{};
};

Profile_file::Profile_file() = default;

Profile_file::~Profile_file() {
  if (m_file >= 0) (void)close(m_file);
}

Profile_file::Opened Profile_file::open(const std::string &path,
                                        const Run_id &run,
                                        const Profile_file *nameless) {
  const std::lock_guard<std::mutex> guard(m_mutex);
  m_buffers = std::make_unique<Buffers>();
  m_run = run;

  Opened opened{0, ""};
  std::vector<std::byte> old;
  int unread;
  opened.remark = load_bytes(path, run.server, &old, &unread);
  Contents contents;
  (void)parse(old, &contents);
  std::span<const std::byte> former;
  if (const Recorded_run *const run = contents.run_to_keep(); run != nullptr)
    former = part_of(old, contents.latest && run == &*contents.latest
                              ? this_part
                              : header_bytes);
  std::vector<std::byte> former_bytes;
  if (Contents found; former.empty() && nameless != nullptr &&
                      nameless->read_bytes(&former_bytes) == 0 &&
                      parse(former_bytes, &found))
    former = part_of(former_bytes, header_bytes);
  if (opened.remark.empty())
    opened.remark = remark_on_damage(path, contents.damaged);

  const std::string fresh = path + ".new";
  m_file = make_file(fresh.c_str(), file_bytes);
  if (m_file < 0) {
    opened.error = errno;
    return opened;
  }
  const Header header = this_build(m_run.server);
  opened.error = write_at(m_file, 0, std::as_bytes(std::span{&header, 1}));
  if (opened.error == 0) opened.error = write_at(m_file, header_bytes, former);
  if (opened.error == 0) opened.error = write_run();
  if (opened.error == 0) {
    opened.remark += record_file::keep_unread(unread, path);
    opened.error = publish(m_file, fresh.c_str(), path.c_str());
  }
  if (opened.error == 0) return opened;
  (void)unlink(fresh.c_str());
  (void)close(m_file);
  m_file = -1;
  return opened;
}

bool Profile_file::has_name(const std::string &path) const {
  const std::lock_guard<std::mutex> guard(m_mutex);
  struct stat own;
  struct stat named;
  return m_file >= 0 && fstat(m_file, &own) == 0 &&
         lstat(path.c_str(), &named) == 0 && own.st_dev == named.st_dev &&
         own.st_ino == named.st_ino;
}

int Profile_file::write_run() noexcept {
  Run_record record{0, m_run.started_us, m_ended_us, m_run.process,
                    m_run.version};
  return write_record(m_file, this_part + run_offset, &record);
}

int Profile_file::write_modules() noexcept {
  for (size_t i = 0; i < m_buffers->modules; ++i)
    if (const int error = write_record(
            m_file, this_part + modules_offset + i * sizeof(Module_record),
            &m_buffers->module[i]);
        error != 0)
      return error;
  // Those that are no longer there.
  constexpr size_t end = modules_offset + file_modules * sizeof(Module_record);
  for (size_t at = modules_offset + m_buffers->modules * sizeof(Module_record);
       at < end;) {
    const size_t count = std::min(end - at, m_buffers->zeros.size());
    if (const int error = write_at(m_file, this_part + at,
                                   std::span{m_buffers->zeros}.first(count));
        error != 0)
      return error;
    at += count;
  }
  return 0;
}

/** Makes a damaged file anew: all records of it are removed, because another
file may have been copied over this one. @return 0 or an errno */
int Profile_file::make_intact() noexcept {
  const Header header = this_build(m_run.server);
  if (record_file::is_intact(m_file, file_bytes, header)) return 0;
  if (ftruncate(m_file, static_cast<off_t>(file_bytes)) != 0) return errno;
  if (const int error = reserve(m_file); error != 0) return error;
  m_buffers->slots = {};
  m_buffers->ramps = {};
  m_history_written = 0;
  // The header comes last: until then, the file is not whole.
  for (size_t at = 0; at < file_bytes;) {
    const size_t count = std::min(file_bytes - at, m_buffers->zeros.size());
    if (const int error =
            write_at(m_file, at, std::span{m_buffers->zeros}.first(count));
        error != 0)
      return error;
    at += count;
  }
  if (const int error = write_run(); error != 0) return error;
  if (const int error = write_modules(); error != 0) return error;
  return write_at(m_file, 0, std::as_bytes(std::span{&header, 1}));
}

int Profile_file::take_modules(std::span<const Module> modules) noexcept {
  m_buffers->modules = std::min(modules.size(), file_modules);
  for (size_t i = 0; i < m_buffers->modules; ++i) {
    Module_record &record = m_buffers->module[i];
    const Module &module = modules[i];
    record.begin = module.begin;
    record.end = module.end;
    record.load_bias = module.load_bias;
    record.file_offset = module.file_offset;
    record.first_look = module.first_look;
    record.last_look = module.last_look;
    set_text(module.build_id, record.build_id);
    set_text(module.path, record.path);
  }
  if (const int error = make_intact(); error != 0) return error;
  return write_modules();
}

int Profile_file::begin_profile(uint64_t since_us, uint64_t sample_bytes,
                                std::span<const Module> modules) noexcept {
  const std::lock_guard<std::mutex> guard(m_mutex);
  if (m_file < 0) return EBADF;
  m_since_us = since_us;
  m_sample_bytes = sample_bytes;
  // The low is another profile's: a ramp is not to be compared with it.
  m_buffers->low = {};
  mark_used(&m_buffers->low, Buffers::low_bit);
  return take_modules(modules);
}

int Profile_file::set_modules(std::span<const Module> modules) noexcept {
  const std::lock_guard<std::mutex> guard(m_mutex);
  return m_file < 0 ? EBADF : take_modules(modules);
}

bool Profile_file::has_site(uint32_t number) const noexcept {
  const std::lock_guard<std::mutex> guard(m_mutex);
  if (m_file < 0) return false;
  return std::any_of(m_buffers->slots.begin(), m_buffers->slots.end(),
                     [this, number](const Buffers::Slot &slot) {
                       return slot.number == number &&
                              slot.since_us == m_since_us;
                     });
}

/** @return file_sites: all are needed */
size_t Profile_file::slot_for_site() const noexcept {
  size_t found = file_sites;
  for (size_t i = 0; i < file_sites; ++i) {
    const Buffers::Slot &slot = m_buffers->slots[i];
    if (slot.number == 0) return i;
    // One that was added for the next snapshot has not been used yet.
    if (slot.needed != 0 || slot.used > m_sequence) continue;
    if (found == file_sites || slot.used < m_buffers->slots[found].used)
      found = i;
  }
  return found;
}

int Profile_file::add_site(uint32_t number, std::string_view pool,
                           std::string_view route,
                           std::span<const uint64_t> addresses,
                           uint32_t look) noexcept {
  if (number == 0) return EINVAL;
  const std::lock_guard<std::mutex> guard(m_mutex);
  if (m_file < 0) return EBADF;
  if (const int error = make_intact(); error != 0) return error;
  const size_t index = slot_for_site();
  if (index == file_sites) return ENOSPC;
  Site_record &record = m_buffers->site;
  record.since_us = m_since_us;
  record.number = number;
  record.frames =
      static_cast<uint32_t>(std::min(addresses.size(), file_frames));
  record.look = look;
  set_text(pool, record.pool);
  set_text(route, record.route);
  std::fill(std::copy_n(addresses.begin(), record.frames, record.addresses),
            std::end(record.addresses), 0);
  // If the write fails half-way, the slot has neither site.
  m_buffers->slots[index] = {};
  const int error = write_record(
      m_file, this_part + sites_offset + index * sizeof record, &record);
  if (error == 0)
    m_buffers->slots[index] = {m_since_us, number, m_sequence + 1, 0};
  return error;
}

/** The sites of a snapshot are used.
@param bit  of the place that keeps the snapshot; the former snapshot of that
place needs no site any more. 64: none */
void Profile_file::mark_used(const void *record, size_t bit) noexcept {
  const auto &snapshot = *static_cast<const Ramp_record *>(record);
  const uint64_t mask = bit < 64 ? uint64_t{1} << bit : 0;
  for (Buffers::Slot &slot : m_buffers->slots) {
    slot.needed &= ~mask;
    if (slot.number == 0 || slot.since_us != snapshot.since_us ||
        std::none_of(snapshot.amount, snapshot.amount + snapshot.count,
                     [&slot](const Site_amount &amount) {
                       return amount.site == slot.number;
                     }))
      continue;
    slot.used = std::max(slot.used, snapshot.sequence);
    slot.needed |= mask;
  }
}

/** The place of a ramp, or its future place. */
size_t Profile_file::slot_for_ramp(uint32_t ramp) const noexcept {
  const auto &ramps = m_buffers->ramps;
  size_t highest = 0;
  for (size_t i = 0; i < file_ramps; ++i) {
    if (ramps[i].number == ramp && ramps[i].since_us == m_since_us) return i;
    if (ramps[i].peak_bytes > ramps[highest].peak_bytes) highest = i;
  }
  size_t found = file_ramps;
  for (size_t i = 0; i < file_ramps; ++i) {
    if (ramps[i].number == 0) return i;
    if (i != highest &&
        (found == file_ramps || ramps[i].sequence < ramps[found].sequence))
      found = i;
  }
  return found;
}

/** Writes a snapshot to its place in a ramp; none: the place becomes empty.
@return 0 or an errno */
int Profile_file::write_of_ramp(size_t ramp, size_t place,
                                void *record) noexcept {
  const size_t number = ramp * snapshots_of_ramp + place;
  const size_t offset = this_part + ramps_offset + number * sizeof(Ramp_record);
  if (record != nullptr) {
    mark_used(record, number);
    return write_record(m_file, offset, static_cast<Ramp_record *>(record));
  }
  for (Buffers::Slot &slot : m_buffers->slots)
    slot.needed &= ~(uint64_t{1} << number);
  static_assert(sizeof(Ramp_record) <= sizeof(Buffers::zeros));
  return write_at(m_file, offset,
                  std::span{m_buffers->zeros}.first(sizeof(Ramp_record)));
}

/** Writes the snapshot as a high of its ramp; before the first one, what lived
before. @return 0 or an errno */
int Profile_file::write_high(uint32_t ramp_number) noexcept {
  const size_t index = slot_for_ramp(ramp_number);
  Buffers::Ramp &ramp = m_buffers->ramps[index];
  Ramp_record &snapshot = m_buffers->snapshot;
  if (ramp.number != ramp_number || ramp.since_us != m_since_us) {
    ramp = {m_since_us, ramp_number, snapshot.sequence, 0, 0};
    for (size_t place = 1; place < snapshots_of_ramp; ++place)
      if (const int error = write_of_ramp(index, place, nullptr); error != 0)
        return error;
    Ramp_record &low = m_buffers->low;
    low.ramp = ramp_number;
    low.is_before_ramp = 1;
    if (const int error =
            write_of_ramp(index, 0, low.reason != 0 ? &low : nullptr);
        error != 0)
      return error;
  }
  ramp.peak_bytes = std::max(ramp.peak_bytes, snapshot.moment.rss_bytes);
  const size_t place = 1 + ramp.highs % file_highs;
  ++ramp.highs;
  return write_of_ramp(index, place, &snapshot);
}

int Profile_file::append(const Moment &moment, const Record_decision &decision,
                         std::span<const Site_amount> amounts) noexcept {
  if (decision.reason == Record_reason::none) return 0;
  const std::lock_guard<std::mutex> guard(m_mutex);
  if (m_file < 0) return EBADF;
  if (const int error = make_intact(); error != 0) return error;

  Ramp_record &snapshot = m_buffers->snapshot;
  snapshot.sequence = ++m_sequence;
  snapshot.moment = moment;
  snapshot.since_us = m_since_us;
  snapshot.sample_bytes = m_sample_bytes;
  snapshot.reason = static_cast<uint32_t>(decision.reason);
  snapshot.ramp = decision.ramp;
  snapshot.is_before_ramp = 0;
  const auto is_larger = [](const Site_amount &a, const Site_amount &b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.site < b.site;
  };
  Site_amount *const end = std::partial_sort_copy(
      amounts.begin(), amounts.end(), std::begin(snapshot.amount),
      std::end(snapshot.amount), is_larger);
  snapshot.count = static_cast<uint32_t>(end - snapshot.amount);
  std::fill(end, std::end(snapshot.amount), Site_amount{});
  mark_used(&snapshot, 64);
  if (decision.is_low) {
    m_buffers->low = snapshot;
    mark_used(&snapshot, Buffers::low_bit);
  }
  if (decision.reason == Record_reason::new_high)
    return write_high(decision.ramp);
  History_record &history = m_buffers->history;
  history.sequence = snapshot.sequence;
  history.moment = snapshot.moment;
  history.since_us = snapshot.since_us;
  history.sample_bytes = snapshot.sample_bytes;
  history.reason = snapshot.reason;
  history.ramp = snapshot.ramp;
  history.is_before_ramp = 0;
  history.count = std::min<uint32_t>(snapshot.count, history_amounts);
  std::copy_n(snapshot.amount, history_amounts, history.amount);
  const int error =
      write_record(m_file,
                   this_part + history_offset +
                       m_history_written % file_history * sizeof history,
                   &history);
  if (error == 0) ++m_history_written;
  return error;
}

int Profile_file::end(uint64_t time_us) noexcept {
  const std::lock_guard<std::mutex> guard(m_mutex);
  if (m_file < 0) return EBADF;
  m_ended_us = time_us;
  if (const int error = make_intact(); error != 0) return error;
  return write_run();
}

/** @return 0 or an errno @throws std::bad_alloc */
int Profile_file::read_bytes(std::vector<std::byte> *bytes) const {
  // The recorder waits for the mutex. So read_all() shall need no memory.
  bytes->reserve(file_bytes);
  const std::lock_guard<std::mutex> guard(m_mutex);
  return m_file < 0 ? EBADF : read_all(m_file, file_bytes, bytes);
}

std::string Profile_file::read(Contents *contents) const {
  *contents = {};
  std::vector<std::byte> bytes;
  const int error = read_bytes(&bytes);
  if (error != 0)
    return "the file of profiles cannot be read: error " + reason(error);
  if (!parse(bytes, contents))
    return "the file of profiles was truncated or overwritten";
  return remark_on_damage("the file of profiles", contents->damaged);
}

}  // namespace memdiag::profile
