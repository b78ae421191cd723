/*
  The figures of MEMDIAG_HOST that the kernel has under a name of its own: file
  by file, with the subject and the unit of each. host.cc makes a row of each.
*/

#ifndef MEMDIAG_HOST_ITEMS_H
#define MEMDIAG_HOST_ITEMS_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "plugin/memdiag/base/unit.h"
#include "plugin/memdiag/host/kernel_text.h"

namespace memdiag::host::items {

/** A row's figure; both are empty if the text was not understood. */
struct Cell {
  std::optional<double> number;
  std::optional<std::string> value;
};

template <typename T>
inline Cell cell(std::optional<T> number) {
  if (!number) return {};
  return {static_cast<double>(*number), std::nullopt};
}

inline Cell amount(std::string_view text) {
  return cell(kernel_text::amount(text));
}

inline Cell limit(std::string_view text) {
  const auto bytes = kernel_text::limit(text);
  if (bytes == kernel_text::unlimited) return {std::nullopt, "max"};
  return cell(bytes);
}

inline Cell signed_number(std::string_view text) {
  return cell(kernel_text::number<int64_t>(text));
}

inline Cell decimal(std::string_view text) {
  return cell(kernel_text::number<double>(text));
}

inline Cell chosen(std::string_view text) {
  const auto word = kernel_text::chosen(text);
  if (!word) return {};
  return {std::nullopt, std::string{*word}};
}

/** A figure: a line of a file that has several, or a file of its own. */
struct Item {
  const char *subject;
  const char *key;
  Unit unit;
  Cell (*parse)(std::string_view) = amount;
};

inline constexpr Item meminfo[] = {
    {"memory", "MemTotal", Unit::bytes},
    {"memory", "MemFree", Unit::bytes},
    {"memory", "MemAvailable", Unit::bytes},
    {"memory", "Buffers", Unit::bytes},
    {"memory", "Cached", Unit::bytes},
    {"memory", "Dirty", Unit::bytes},
    {"memory", "Writeback", Unit::bytes},
    {"memory", "AnonPages", Unit::bytes},
    {"memory", "Shmem", Unit::bytes},
    {"memory", "SReclaimable", Unit::bytes},
    {"memory", "SUnreclaim", Unit::bytes},
    {"memory", "KernelStack", Unit::bytes},
    {"memory", "PageTables", Unit::bytes},
    {"memory", "SwapTotal", Unit::bytes},
    {"memory", "SwapFree", Unit::bytes},
    {"memory", "CommitLimit", Unit::bytes},
    {"memory", "Committed_AS", Unit::bytes},
    {"memory", "AnonHugePages", Unit::bytes},
    {"huge_pages", "HugePages_Total", Unit::count},
    {"huge_pages", "HugePages_Free", Unit::count},
    {"huge_pages", "Hugepagesize", Unit::bytes},
};

inline constexpr Item status[] = {
    {"process", "VmSize", Unit::bytes},
    {"process", "VmLck", Unit::bytes},
    {"process", "VmHWM", Unit::bytes},
    {"process", "VmRSS", Unit::bytes},
    {"process", "RssAnon", Unit::bytes},
    {"process", "RssFile", Unit::bytes},
    {"process", "RssShmem", Unit::bytes},
    {"process", "VmPTE", Unit::bytes},
    {"process", "VmSwap", Unit::bytes},
    {"process", "HugetlbPages", Unit::bytes},
    {"process", "Threads", Unit::count},
};

inline constexpr Item vm[] = {
    {"kernel", "overcommit_memory", Unit::none},
    {"kernel", "overcommit_ratio", Unit::percent},
    {"kernel", "swappiness", Unit::none},
    {"kernel", "max_map_count", Unit::count},
};

inline constexpr Item transparent_hugepage[] = {
    {"huge_pages", "enabled", Unit::none, chosen},
    {"huge_pages", "defrag", Unit::none, chosen},
    {"huge_pages", "khugepaged/pages_collapsed", Unit::count},
};

inline constexpr Item oom[] = {
    {"oom", "oom_score", Unit::none},
    {"oom", "oom_score_adj", Unit::none, signed_number},
};

inline constexpr Item cgroup_v2_files[] = {
    {"cgroup", "memory.current", Unit::bytes},
    {"cgroup", "memory.peak", Unit::bytes},
    {"cgroup", "memory.high", Unit::bytes, limit},
    {"cgroup", "memory.max", Unit::bytes, limit},
    {"cgroup", "memory.swap.current", Unit::bytes},
    {"cgroup", "memory.swap.max", Unit::bytes, limit},
};
inline constexpr Item cgroup_v2_events[] = {
    {"cgroup", "low", Unit::count},      {"cgroup", "high", Unit::count},
    {"cgroup", "max", Unit::count},      {"cgroup", "oom", Unit::count},
    {"cgroup", "oom_kill", Unit::count},
};
inline constexpr Item cgroup_v2_stat[] = {
    {"cgroup", "anon", Unit::bytes},     {"cgroup", "file", Unit::bytes},
    {"cgroup", "kernel", Unit::bytes},   {"cgroup", "shmem", Unit::bytes},
    {"cgroup", "anon_thp", Unit::bytes},
};

inline constexpr Item cgroup_v1_files[] = {
    {"cgroup", "memory.usage_in_bytes", Unit::bytes},
    {"cgroup", "memory.max_usage_in_bytes", Unit::bytes},
    {"cgroup", "memory.soft_limit_in_bytes", Unit::bytes, limit},
    {"cgroup", "memory.limit_in_bytes", Unit::bytes, limit},
    {"cgroup", "memory.failcnt", Unit::count},
    {"cgroup", "memory.memsw.usage_in_bytes", Unit::bytes},
    {"cgroup", "memory.memsw.limit_in_bytes", Unit::bytes, limit},
    {"cgroup", "memory.kmem.usage_in_bytes", Unit::bytes},
    {"cgroup", "memory.swappiness", Unit::none},
};
inline constexpr Item cgroup_v1_oom[] = {
    {"cgroup", "oom_kill_disable", Unit::none},
    {"cgroup", "under_oom", Unit::none},
    {"cgroup", "oom_kill", Unit::count},
};
inline constexpr Item cgroup_v1_stat[] = {
    {"cgroup", "total_rss", Unit::bytes},
    {"cgroup", "total_rss_huge", Unit::bytes},
    {"cgroup", "total_cache", Unit::bytes},
    {"cgroup", "total_shmem", Unit::bytes},
    {"cgroup", "total_swap", Unit::bytes},
    {"cgroup", "hierarchical_memory_limit", Unit::bytes, limit},
};

inline constexpr Item pressure_fields[] = {
    {"pressure", "avg10", Unit::percent, decimal},
    {"pressure", "avg60", Unit::percent, decimal},
    {"pressure", "total", Unit::microseconds},
};

inline constexpr Item node_lines[] = {
    {"numa", "MemTotal", Unit::bytes},
    {"numa", "MemFree", Unit::bytes},
};

inline constexpr const char *numa_stat_lines[] = {"anon", "file"};

}  // namespace memdiag::host::items

#endif  // MEMDIAG_HOST_ITEMS_H
