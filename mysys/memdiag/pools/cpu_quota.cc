#include "mysys/memdiag/pools/cpu_quota.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace memdiag::pools {
namespace {

using std::string_view;

/** Text on the stack. What does not fit makes it bad for good. */
class Path {
 public:
  Path &operator<<(string_view text) {
    if (text.size() >= sizeof m_text - m_size) {
      m_is_bad = true;
    } else if (!text.empty()) {
      memcpy(m_text + m_size, text.data(), text.size());
      m_size += text.size();
    }
    m_text[m_size] = '\0';
    return *this;
  }
  void cut(size_t size) {
    m_size = size;
    m_text[size] = '\0';
  }
  bool is_bad() const { return m_is_bad; }
  size_t size() const { return m_size; }
  string_view text() const { return {m_text, m_size}; }
  const char *c_str() const { return m_text; }

 private:
  char m_text[PATH_MAX] = "";
  size_t m_size = 0;
  bool m_is_bad = false;
};

/** A file, one line after the other. */
class Lines {
 public:
  explicit Lines(const Path &path)
      : m_file(path.is_bad() ? -1 : open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~Lines() {
    if (m_file >= 0) close(m_file);
  }
  Lines(const Lines &) = delete;
  Lines &operator=(const Lines &) = delete;

  /** A line that is longer than the buffer is left out. */
  bool next(string_view *line) {
    for (bool is_too_long = false;;) {
      const string_view rest{m_buffer + m_begin, m_end - m_begin};
      const size_t end = rest.find('\n');
      if (end != rest.npos) {
        *line = rest.substr(0, end);
        m_begin += end + 1;
        if (!is_too_long) return true;
        is_too_long = false;
        continue;
      }
      if (rest.size() == sizeof m_buffer) {
        is_too_long = true;
        m_begin = m_end = 0;
      } else {
        memmove(m_buffer, rest.data(), rest.size());
        m_begin = 0;
        m_end = rest.size();
      }
      const ssize_t got =
          m_file < 0 ? 0
                     : read(m_file, m_buffer + m_end, sizeof m_buffer - m_end);
      if (got <= 0) return false;
      m_end += static_cast<size_t>(got);
    }
  }

 private:
  const int m_file;
  size_t m_begin = 0;
  size_t m_end = 0;
  char m_buffer[4096];
};

/** The part before the separator, which goes from the text. */
string_view take(string_view *text, char separator) {
  const size_t end = std::min(text->find(separator), text->size());
  const string_view part = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  return part;
}

bool has_word(string_view list, string_view word) {
  while (!list.empty())
    if (take(&list, ',') == word) return true;
  return false;
}

/** @return empty: no number above 0 */
std::optional<uint64_t> positive(string_view text) {
  uint64_t number = 0;
  const char *const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stop != end || number == 0) return std::nullopt;
  return number;
}

/** @return false: the file does not begin with a line */
bool first_line(Path *folder, string_view name, Path *line) {
  const size_t size = folder->size();
  *folder << name;
  Lines lines(*folder);
  folder->cut(size);
  string_view text;
  if (!lines.next(&text)) return false;
  *line << text;
  return true;
}

/** @return no_quota: the group has none */
unsigned quota_of(Path *folder, int version) {
  Path quota, period;
  if (version == 2) {
    Path both;
    if (!first_line(folder, "/cpu.max", &both)) return no_quota;
    string_view rest = both.text();
    quota << take(&rest, ' ');
    period << rest;
  } else if (!first_line(folder, "/cpu.cfs_quota_us", &quota) ||
             !first_line(folder, "/cpu.cfs_period_us", &period)) {
    return no_quota;
  }
  // "max" and -1 are no quota.
  const auto quota_us = positive(quota.text());
  const auto period_us = positive(period.text());
  if (!quota_us || !period_us || *quota_us > UINT64_MAX / 4) return no_quota;
  const uint64_t twice =
      2 * *quota_us / *period_us + (2 * *quota_us % *period_us != 0);
  return static_cast<unsigned>(std::min<uint64_t>(twice, no_quota));
}

/** The group that the processor's controller has the process in.
@return its version; 0: none */
int find_group(const char *root, Path *group) {
  Path file;
  file << root << "/proc/self/cgroup";
  Lines lines(file);
  int version = 0;
  for (string_view line; lines.next(&line);) {
    const string_view id = take(&line, ':');
    const string_view controllers = take(&line, ':');
    const bool is_v1 = has_word(controllers, "cpu");
    if (!is_v1 && (id != "0" || !controllers.empty())) continue;
    group->cut(0);
    *group << line;
    version = is_v1 ? 1 : 2;
    if (is_v1) break;
  }
  return version;
}

/** @param group  becomes the part below the mount
@param point  the last mount that has the group, which covers earlier ones */
bool find_mount(const char *root, int version, Path *group, Path *point) {
  Path file;
  file << root << "/proc/self/mountinfo";
  Lines lines(file);
  std::optional<size_t> cut;
  for (string_view line; lines.next(&line);) {
    for (int field = 0; field < 3; ++field) take(&line, ' ');
    string_view top = take(&line, ' ');
    const string_view place = take(&line, ' ');
    const size_t separator = line.find(" - ");
    if (separator == line.npos) continue;
    line.remove_prefix(separator + 3);
    const string_view type = take(&line, ' ');
    take(&line, ' ');
    if (version == 2 ? type != "cgroup2"
                     : type != "cgroup" || !has_word(line, "cpu"))
      continue;
    if (top == "/") top = {};
    const string_view rest = group->text().substr(
        group->text().starts_with(top) ? top.size() : group->size());
    if (!group->text().starts_with(top) ||
        (!rest.empty() && !rest.starts_with('/')) || rest.starts_with("/.."))
      continue;
    cut = top.size();
    point->cut(0);
    *point << root << place;
  }
  if (!cut) return false;
  Path below;
  below << group->text().substr(*cut);
  group->cut(0);
  if (below.text() != "/") *group << below.text();
  return true;
}

}  // namespace

unsigned cpus_of_quota(const char *root) noexcept {
  Path group, folder;
  const int version = find_group(root, &group);
  if (version == 0 || !find_mount(root, version, &group, &folder))
    return no_quota;
  const size_t top = folder.size();
  folder << group.text();
  if (group.is_bad() || folder.is_bad()) return no_quota;
  unsigned lowest = quota_of(&folder, version);
  while (folder.size() > top) {
    folder.cut(std::max(folder.text().rfind('/'), top));
    lowest = std::min(lowest, quota_of(&folder, version));
  }
  return lowest;
}

}  // namespace memdiag::pools
