#include "plugin/memdiag/ledger/process_memory.h"

#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <iterator>
#include <set>
#include <utility>

#include "mysys/memdiag/ceiling/sensor.h"
#include "plugin/memdiag/host/kernel_file.h"
#include "plugin/memdiag/host/kernel_text.h"

namespace memdiag::process_memory {
namespace {

/** A file of /proc; empty if it cannot be read: see errno. */
std::optional<std::string> read_file(const char *path) {
  std::string text;
  errno = kernel_file::read(path, &text);
  return errno == 0 ? std::optional{std::move(text)} : std::nullopt;
}

/** Removes and returns the text before the separator. */
std::string_view take_until(std::string_view *text, char separator) {
  std::string_view part;
  (void)kernel_text::cut(text, separator, &part);
  return part;
}

std::optional<uintptr_t> address(std::string_view word) {
  uintptr_t value;
  const auto [end, error] =
      std::from_chars(word.data(), word.data() + word.size(), value, 16);
  return error == std::errc{} && end == word.data() + word.size()
             ? std::optional{value}
             : std::nullopt;
}

/** The end of the object in which the range begins; 0: it begins in none. */
uintptr_t end_of_object(const std::vector<Address_range> &objects,
                        Address_range range) {
  const auto next = std::upper_bound(
      objects.begin(), objects.end(), range.begin,
      [](uintptr_t at, const Address_range &one) { return at < one.begin; });
  if (next == objects.begin()) return 0;
  const Address_range &object = *std::prev(next);
  return range.begin < object.end ? object.end : 0;
}

/** A line of maps: "begin-end perms offset device inode   path". */
struct Line {
  Address_range range;
  std::string_view permissions;
  std::string_view device;
  uint64_t inode;
  std::string_view path;
};

std::optional<Line> parse_line(std::string_view text) {
  Line line{};
  const auto begin = address(take_until(&text, '-'));
  const auto end = address(take_until(&text, ' '));
  line.permissions = take_until(&text, ' ');
  (void)take_until(&text, ' ');
  line.device = take_until(&text, ' ');
  const auto inode = kernel_text::number<uint64_t>(take_until(&text, ' '));
  if (!begin || !end || *begin >= *end || line.permissions.size() != 4 ||
      !inode)
    return std::nullopt;
  line.range = {*begin, *end};
  line.inode = *inode;
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  line.path = text;
  return line;
}

Backing backing_of(const Line &line, std::string_view program) {
  // Neither VmRSS nor, by default, a control group counts such pages.
  if (line.path.starts_with("/anon_hugepage")) return Backing::kernel;
  if (line.inode != 0)
    return line.path == program ? Backing::program : Backing::file;
  if (line.path == "[heap]") return Backing::heap;
  // The main thread's stack and mappings named by prctl() are anonymous, too.
  if (line.path.empty() || line.path == "[stack]" ||
      line.path.starts_with("[anon"))
    return Backing::anonymous;
  return Backing::kernel;
}

}  // namespace

std::optional<uint64_t> parse_statm(std::string_view text) {
  (void)take_until(&text, ' ');
  const auto resident = kernel_text::number<uint64_t>(take_until(&text, ' '));
  constexpr uint64_t most = UINT64_MAX / 65536;
  if (!resident || *resident > most) {
    errno = EINVAL;
    return std::nullopt;
  }
  return *resident * page_size();
}

std::optional<uint64_t> resident_bytes() {
  const auto text = read_file("/proc/self/statm");
  return text ? parse_statm(*text) : std::nullopt;
}

std::vector<Address_range> loaded_objects() {
  // Within dl_iterate_phdr(), all wait who load a library.
  const ceiling::No_wait no_wait;
  std::vector<Address_range> found;
  const auto add = [](dl_phdr_info *object, size_t, void *to) {
    Address_range range{UINTPTR_MAX, 0};
    for (size_t i = 0; i < object->dlpi_phnum; ++i) {
      const auto &part = object->dlpi_phdr[i];
      if (part.p_type != PT_LOAD) continue;
      const uintptr_t begin = object->dlpi_addr + part.p_vaddr;
      range.begin = std::min(range.begin, begin / page_size() * page_size());
      range.end = std::max(range.end, (begin + part.p_memsz + page_size() - 1) /
                                          page_size() * page_size());
    }
    if (range.begin < range.end)
      static_cast<std::vector<Address_range> *>(to)->push_back(range);
    return 0;
  };
  (void)dl_iterate_phdr(add, &found);
  std::sort(found.begin(), found.end(),
            [](const Address_range &a, const Address_range &b) {
              return a.begin < b.begin;
            });
  return found;
}

uint64_t code_bytes() {
  uint64_t bytes = 0;
  const auto add = [](dl_phdr_info *object, size_t, void *to) {
    for (size_t i = 0; i < object->dlpi_phnum; ++i)
      if (const auto &part = object->dlpi_phdr[i];
          part.p_type == PT_LOAD && (part.p_flags & PF_W) == 0)
        *static_cast<uint64_t *>(to) += part.p_filesz;
    return 0;
  };
  (void)dl_iterate_phdr(add, &bytes);
  return bytes;
}

Mappings parse_maps(std::string_view text, std::string_view program,
                    const std::vector<Address_range> &objects) {
  Mappings found{};
  std::vector<Line> lines;
  /** Files with an executable mapping. */
  std::set<std::pair<std::string_view, uint64_t>> libraries;
  while (!text.empty()) {
    const auto line = parse_line(take_until(&text, '\n'));
    if (!line) {
      ++found.bad_lines;
      continue;
    }
    if (line->inode != 0 && line->permissions[2] == 'x')
      libraries.insert({line->device, line->inode});
    lines.push_back(*line);
  }
  for (const Line &line : lines) {
    Backing backing = backing_of(line, program);
    if (backing == Backing::file &&
        libraries.contains({line.device, line.inode}))
      backing = Backing::library;
    const bool writable = line.permissions[1] == 'w';
    Address_range rest = line.range;
    if (backing == Backing::anonymous && !found.all.empty()) {
      const Mapping &before = found.all.back();
      const Backing owner = before.backing;
      const uintptr_t end = std::min(end_of_object(objects, rest), rest.end);
      if (before.range.end == rest.begin && before.writable &&
          (owner == Backing::program || owner == Backing::library) &&
          end > rest.begin) {
        found.all.push_back({{rest.begin, end}, owner, writable, true});
        rest.begin = end;
      }
    }
    if (rest.bytes() != 0)
      found.all.push_back({rest, backing, writable, false});
  }
  return found;
}

std::optional<Mappings> mappings() {
  char program[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", program, sizeof program);
  // Its pages would count as a library's.
  if (length < 0) return std::nullopt;
  const auto text = read_file("/proc/self/maps");
  if (!text) return std::nullopt;
  return parse_maps(*text, {program, static_cast<size_t>(length)},
                    loaded_objects());
}

Page_map::Page_map()
    : m_fd(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)), m_error(errno) {}

Page_map::~Page_map() {
  if (m_fd >= 0) close(m_fd);
}

std::optional<File_pages> Page_map::pages(Address_range range) const {
  if (m_fd < 0) {
    errno = m_error;
    return std::nullopt;
  }
  constexpr uint64_t present = uint64_t{1} << 63;
  constexpr uint64_t of_file = uint64_t{1} << 61;
  const size_t page = page_size();
  uint64_t entries[512];
  File_pages found{0, 0};
  for (uintptr_t at = range.begin; at < range.end;) {
    const size_t count = std::min((range.end - at) / page, std::size(entries));
    const ssize_t got =
        pread(m_fd, entries, count * sizeof entries[0],
              static_cast<off_t>(at / page * sizeof entries[0]));
    if (got < static_cast<ssize_t>(sizeof entries[0])) {
      if (got >= 0) errno = EIO;
      return std::nullopt;
    }
    const size_t read = static_cast<size_t>(got) / sizeof entries[0];
    for (size_t i = 0; i < read; ++i)
      if (entries[i] & present)
        (entries[i] & of_file ? found.file_bytes : found.own_bytes) += page;
    at += read * page;
  }
  return found;
}

}  // namespace memdiag::process_memory
