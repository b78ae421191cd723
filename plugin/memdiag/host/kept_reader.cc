#include "plugin/memdiag/host/kept_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include "plugin/memdiag/host/kernel_text.h"

namespace memdiag::host {
namespace {

constexpr uint64_t stat_age_us = 1'000'000;

/** Reads a file from its begin. @return empty: it cannot be read as a whole */
template <size_t size>
std::optional<std::string_view> read_all(int file, char (&buffer)[size]) {
  size_t bytes = 0;
  while (bytes < size) {
    const ssize_t more =
        pread(file, buffer + bytes, size - bytes, static_cast<off_t>(bytes));
    if (more < 0 && errno == EINTR) continue;
    if (more < 0) return std::nullopt;
    if (more == 0) return std::string_view(buffer, bytes);
    bytes += static_cast<size_t>(more);
  }
  return std::nullopt;
}

int open_file(const std::string &path) {
  return open(path.c_str(), O_RDONLY | O_CLOEXEC);
}

/** Page cache, and in version 2 slabs, that the kernel takes back. Version 1
does not tell slabs apart. */
Reading reclaimable(std::string_view stat, int version) {
  const bool first = version == 1;
  const auto inactive = kernel_text::amount_of(
      stat, first ? "total_inactive_file" : "inactive_file");
  const auto active =
      kernel_text::amount_of(stat, first ? "total_active_file" : "active_file");
  if (!inactive || !active) return std::nullopt;
  const uint64_t slabs =
      first ? 0 : kernel_text::amount_of(stat, "slab_reclaimable").value_or(0);
  return *inactive + *active + slabs;
}

}  // namespace

int Kept_reader::open_group(const std::string &usage_file,
                            const std::string &stat_file,
                            const std::string &limit_file, int version,
                            uint64_t code_bytes) {
  close_all();
  m_version = version;
  m_code_bytes = code_bytes;
  m_usage = open_file(usage_file);
  if (m_usage < 0) return errno;
  m_stat = open_file(stat_file);
  if (m_stat < 0) return errno;
  m_limit = open_file(limit_file);
  return 0;
}

int Kept_reader::open_process(const std::string &statm_file) {
  close_all();
  m_of_process = true;
  m_usage = open_file(statm_file);
  return m_usage < 0 ? errno : 0;
}

void Kept_reader::close_all() {
  for (int *const file : {&m_usage, &m_stat, &m_limit})
    if (const int open = std::exchange(*file, -1); open >= 0) close(open);
  m_of_process = false;
  m_mapped_bytes = 0;
  m_reclaimable.reset();
  m_limit_bytes.reset();
}

Reading Kept_reader::read(uint64_t now_us, uint64_t exact_bytes) {
  char buffer[256];
  if (m_usage < 0) return std::nullopt;
  const auto text = read_all(m_usage, buffer);
  if (!text) return std::nullopt;
  if (m_of_process) {
    // size resident shared ..., in pages
    std::string_view rest = *text;
    std::string_view fields[3];
    for (std::string_view &field : fields)
      if (!kernel_text::cut(&rest, ' ', &field)) return std::nullopt;
    const auto resident = kernel_text::number<uint64_t>(fields[1]);
    const auto of_files = kernel_text::number<uint64_t>(fields[2]);
    if (!resident || !of_files) return std::nullopt;
    static const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    return (*resident - std::min(*resident, *of_files)) * page;
  }
  const auto used = kernel_text::amount(*text);
  if (!used) return std::nullopt;
  if (m_limit >= 0) {
    char limit_buffer[64];
    const auto limit = read_all(m_limit, limit_buffer);
    m_limit_bytes = limit ? kernel_text::limit(*limit) : std::nullopt;
  }
  if (!m_reclaimable || *m_reclaimable > exact_bytes ||
      now_us >= m_stat_us + stat_age_us) {
    const auto stat = read_all(m_stat, m_stat_text);
    m_reclaimable = stat ? reclaimable(*stat, m_version) : std::nullopt;
    if (!m_reclaimable) return std::nullopt;
    const uint64_t mapped =
        kernel_text::amount_of(
            *stat, m_version == 1 ? "total_mapped_file" : "file_mapped")
            .value_or(0);
    m_mapped_bytes = std::max(m_mapped_bytes,
                              std::min({mapped, m_code_bytes, *m_reclaimable}));
    m_stat_us = now_us;
  }
  return *used - std::min(*used, *m_reclaimable) + m_mapped_bytes;
}

}  // namespace memdiag::host
