#include "plugin/memdiag/host/kernel_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>
#include <type_traits>
#include <utility>

namespace memdiag::kernel_text {
namespace {

constexpr std::string_view blanks = " \t\n";

/** Larger numbers are refused, so that sums of some do not overflow. */
constexpr uint64_t largest = std::numeric_limits<uint64_t>::max() >> 8;

/** The kernel's own largest number of nodes (NODES_SHIFT). */
constexpr unsigned max_nodes = 1024;

/** Blanks and backslashes are written as \ooo there. */
std::string unescape(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned code = 0;
    if (text[i] == '\\' && i + 3 < text.size() &&
        std::from_chars(&text[i + 1], &text[i + 1] + 3, code, 8).ptr ==
            &text[i + 1] + 3) {
      plain += static_cast<char>(code);
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

}  // namespace

bool cut(std::string_view *text, char separator, std::string_view *part) {
  if (text->empty()) return false;
  const size_t end = text->find(separator);
  *part = text->substr(0, end);
  text->remove_prefix(end == text->npos ? text->size() : end + 1);
  return true;
}

std::string_view trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(blanks);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

template <typename T>
std::optional<T> number(std::string_view text) {
  text = trim(text);
  const char *const end = text.data() + text.size();
  T value;
  std::from_chars_result result;
  if constexpr (std::is_floating_point_v<T>)
    result = std::from_chars(text.data(), end, value, std::chars_format::fixed);
  else
    result = std::from_chars(text.data(), end, value);
  if (result.ec != std::errc{} || result.ptr != end) return std::nullopt;
  if constexpr (std::is_floating_point_v<T>)
    if (!std::isfinite(value)) return std::nullopt;
  return value;
}
template std::optional<uint64_t> number(std::string_view);
template std::optional<int64_t> number(std::string_view);
template std::optional<double> number(std::string_view);

std::optional<uint64_t> amount(std::string_view text) {
  text = trim(text);
  uint64_t factor = 1;
  if (text.ends_with(" kB")) {
    factor = 1024;
    text.remove_suffix(3);
  }
  const auto value = number<uint64_t>(text);
  if (!value || *value > largest / factor) return std::nullopt;
  return *value * factor;
}

std::optional<uint64_t> limit(std::string_view text) {
  if (trim(text) == "max") return unlimited;
  const auto value = number<uint64_t>(text);
  // Without a limit, version 1 writes LONG_MAX in whole pages; before Linux
  // 3.19, in bytes.
  if (value && *value > largest) return unlimited;
  return value;
}

std::optional<std::string_view> chosen(std::string_view text) {
  // A device without a queue has no alternatives and no brackets.
  if (trim(text) == "none") return trim(text);
  const size_t begin = text.find('[');
  if (begin == text.npos) return std::nullopt;
  text.remove_prefix(begin + 1);
  const size_t end = text.find_first_of(" \t\n[]");
  if (end == 0 || end == text.npos || text[end] != ']') return std::nullopt;
  return text.substr(0, end);
}

std::optional<std::string_view> value_of(std::string_view text,
                                         std::string_view key) {
  std::string_view line;
  while (cut(&text, '\n', &line)) {
    if (!line.starts_with(key)) continue;
    line.remove_prefix(key.size());
    if (line.find_first_of(": \t") == 0) return trim(line.substr(1));
  }
  return std::nullopt;
}

std::optional<uint64_t> amount_of(std::string_view text, std::string_view key) {
  return amount(value_of(text, key).value_or(""));
}

std::optional<std::string_view> field(std::string_view text,
                                      std::string_view name) {
  std::string_view word;
  while (cut(&text, ' ', &word))
    if (word.starts_with(name) && word.substr(name.size()).starts_with('='))
      return trim(word.substr(name.size() + 1));
  return std::nullopt;
}

std::optional<std::string_view> stat_field(std::string_view text, unsigned n) {
  const size_t name_end = text.rfind(") ");
  if (name_end == text.npos || n < 3) return std::nullopt;
  text.remove_prefix(name_end + 2);
  std::string_view word;
  for (unsigned i = 3; i <= n; ++i)
    if (!cut(&text, ' ', &word)) return std::nullopt;
  return trim(word);
}

std::optional<std::vector<unsigned>> nodes(std::string_view text) {
  std::vector<unsigned> all;
  text = trim(text);
  std::string_view range;
  while (cut(&text, ',', &range)) {
    const size_t dash = range.find('-');
    const auto from = number<uint64_t>(range.substr(0, dash));
    const auto to =
        dash == range.npos ? from : number<uint64_t>(range.substr(dash + 1));
    if (!from || !to || *from > *to || *to >= max_nodes ||
        (!all.empty() && *from <= all.back()))
      return std::nullopt;
    for (uint64_t node = *from; node <= *to; ++node)
      all.push_back(static_cast<unsigned>(node));
  }
  if (all.empty()) return std::nullopt;
  return all;
}

std::optional<Mount> mount(std::string_view line) {
  // id, parent, device, root, point, options, any number of optional ones, "-",
  // type, source, options of the file system.
  std::string_view words[6];
  for (std::string_view &word : words)
    if (!cut(&line, ' ', &word)) return std::nullopt;
  std::string_view word;
  do {
    if (!cut(&line, ' ', &word)) return std::nullopt;
  } while (word != "-");
  std::string_view type;
  std::string_view source;
  if (!cut(&line, ' ', &type) || !cut(&line, ' ', &source) ||
      !words[4].starts_with('/'))
    return std::nullopt;
  return Mount{unescape(words[3]), unescape(words[4]), unescape(words[5]),
               unescape(type), unescape(line)};
}

bool has_word(std::string_view list, std::string_view word) {
  std::string_view part;
  while (cut(&list, ',', &part))
    if (part == word) return true;
  return false;
}

std::optional<Memory_cgroup> memory_cgroup(std::string_view text) {
  Memory_cgroup found{0, {}};
  std::string_view line;
  while (cut(&text, '\n', &line)) {
    std::string_view id;
    std::string_view controllers;
    if (!cut(&line, ':', &id) || !cut(&line, ':', &controllers) ||
        !line.starts_with('/'))
      return std::nullopt;
    if (has_word(controllers, "memory")) return Memory_cgroup{1, line};
    if (id == "0" && controllers.empty()) found = {2, line};
  }
  return found;
}

std::optional<std::string_view> below(std::string_view folder,
                                      std::string_view path) {
  if (folder.ends_with('/')) folder.remove_suffix(1);
  if (!path.starts_with(folder)) return std::nullopt;
  path.remove_prefix(folder.size());
  if (path == "/") path = {};
  if (!path.empty() && !path.starts_with('/')) return std::nullopt;
  if (path == "/.." || path.starts_with("/../")) return std::nullopt;
  return path;
}

std::optional<uint64_t> clean_cache(std::string_view memory_stat, int version) {
  struct Keys {
    const char *cached[2];
    const char *busy[3];
  };
  static constexpr Keys keys_of_version[] = {
      {{"total_inactive_file", "total_active_file"},
       {"total_dirty", "total_writeback", "total_mapped_file"}},
      {{"inactive_file", "active_file"},
       {"file_dirty", "file_writeback", "file_mapped"}}};
  const Keys &keys = keys_of_version[version == 1 ? 0 : 1];
  uint64_t bytes = 0;
  for (const char *const key : keys.cached) {
    const auto cached = amount_of(memory_stat, key);
    if (!cached || __builtin_add_overflow(bytes, *cached, &bytes))
      return std::nullopt;
  }
  for (const char *const key : keys.busy) {
    const auto busy = amount_of(memory_stat, key);
    if (!busy) return std::nullopt;
    bytes -= std::min(bytes, *busy);
  }
  return bytes;
}

uint64_t without_cache(uint64_t usage_bytes, std::string_view memory_stat,
                       int version) {
  // Version 1 also has inactive_file, for the group without its children.
  const auto idle = amount_of(
      memory_stat, version == 1 ? "total_inactive_file" : "inactive_file");
  const auto clean = clean_cache(memory_stat, version);
  // Directory entries and inodes. Only version 2 reports them.
  const auto slab = amount_of(memory_stat, "slab_reclaimable");
  return usage_bytes -
         std::min(usage_bytes, std::max(idle.value_or(0), clean.value_or(0)) +
                                   slab.value_or(0));
}

}  // namespace memdiag::kernel_text
