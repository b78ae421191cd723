#include "plugin/memdiag/host/pressure.h"

#include <algorithm>
#include <utility>

#include "plugin/memdiag/host/host.h"
#include "plugin/memdiag/host/kernel_file.h"
#include "plugin/memdiag/host/kernel_text.h"

namespace memdiag::pressure {
namespace {

using kernel_text::amount_of;

constexpr const char *meminfo = "/proc/meminfo";
constexpr uint64_t second_us = 1000000;
constexpr uint64_t find_again_us = 60 * second_us;

}  // namespace

bool is_above(const Figures &figures, unsigned limit_percent) {
  if (limit_percent == 0 || !figures.used_bytes || !figures.limit_bytes)
    return false;
  const uint64_t limit_bytes = *figures.limit_bytes;
  return *figures.used_bytes >= limit_bytes / 100 * limit_percent +
                                    limit_bytes % 100 * limit_percent / 100;
}

Figures Gauge::read(uint64_t now_us, unsigned limit_percent) {
  if (!m_found_us || now_us - *m_found_us >= find_again_us) {
    find_stall_file();
    m_found_us = now_us;
  }
  if (!m_limit_read_us || now_us - *m_limit_read_us >= second_us) {
    read_limit(now_us);
    m_limit_read_us = now_us;
  }
  return {used_bytes(limit_percent), m_limit_bytes, stall_percent(now_us)};
}

void Gauge::read_limit(uint64_t now_us) {
  const host::Limit_figures figures = m_limit_reader.read(now_us);
  const uint64_t machine_bytes = figures.machine_bytes.value_or(UINT64_MAX);
  // A limit above the machine's memory is never reached.
  if (figures.tightest && figures.tightest->limit_bytes < machine_bytes) {
    m_usage_file = figures.tightest->usage_file;
    m_limit_bytes = figures.tightest->limit_bytes;
  } else if (!figures.usage_file.empty() && figures.group_limit_bytes &&
             *figures.group_limit_bytes < machine_bytes) {
    m_usage_file = figures.usage_file;
    m_limit_bytes = figures.group_limit_bytes;
  } else {
    m_usage_file = figures.machine_bytes ? meminfo : "";
    m_limit_bytes = figures.machine_bytes;
  }
}

void Gauge::find_stall_file() {
  const host::Report report = host::collect({.root = m_root});
  std::string stall_file;
  for (const char *const name : {"machine.some.total", "cgroup.some.total"})
    if (const host::Row *const row = host::find(report, "pressure", name);
        row != nullptr && row->number)
      stall_file = row->source;
  if (stall_file != m_stall_file) forget_stalls();
  m_stall_file = std::move(stall_file);
}

std::string Gauge::read_text(const std::string &file) const {
  std::string text;
  if (kernel_file::read(m_root + file, &text) != 0) text.clear();
  return text;
}

std::optional<uint64_t> Gauge::used_bytes(unsigned limit_percent) const {
  if (m_usage_file.empty()) return std::nullopt;
  const std::string text = read_text(m_usage_file);
  if (m_usage_file == meminfo) {
    const auto available_bytes = amount_of(text, "MemAvailable");
    if (!available_bytes || *available_bytes > *m_limit_bytes)
      return std::nullopt;
    return *m_limit_bytes - *available_bytes;
  }
  const auto bytes = kernel_text::amount(text);
  if (!bytes || !is_above({.used_bytes = bytes, .limit_bytes = m_limit_bytes},
                          limit_percent))
    return bytes;
  const std::string stat = read_text(
      m_usage_file.substr(0, m_usage_file.rfind('/')) + "/memory.stat");
  return kernel_text::without_idle_cache(*bytes, stat);
}

std::optional<double> Gauge::stall_percent(uint64_t now_us) {
  if (m_stall_file.empty()) return std::nullopt;
  const std::string text = read_text(m_stall_file);
  const auto total_us = kernel_text::amount(
      kernel_text::field(kernel_text::value_of(text, "some").value_or(""),
                         "total")
          .value_or(""));
  if (!total_us || (!m_stalls.empty() && *total_us < m_stalls.back().total_us))
    forget_stalls();
  if (!total_us) return std::nullopt;
  m_stalls.push_back({now_us, *total_us});
  while (m_stalls.size() > 1 && now_us - m_stalls[1].time_us >= second_us)
    m_stalls.pop_front();
  const Stall &first = m_stalls.front();
  return 100.0 * (*total_us - first.total_us) /
         std::max(now_us - first.time_us, second_us);
}

}  // namespace memdiag::pressure
