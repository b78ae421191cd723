/*
  Collector: the machine, its kernel's settings and the control group, as far as
  they concern the server's memory. It gives one row of
  INFORMATION_SCHEMA.MEMDIAG_HOST for each figure, and the figures that the
  advisor judges by, typed.

  Missing: a file that this kernel does not have (pressure stall information, a
  control group's files, NUMA, /proc where it is not mounted) and a line that it
  does not write have no row.

  Errors: a file that is there but cannot be read, or has another form, is
  listed in `failed` once, and its figures are NULL. Where that file says which
  figures there are (mountinfo, the list of nodes), they have no row. A limit
  that does not limit is NULL with the text "max", as version 2 of control
  groups writes it.

  Control groups: /proc/self/cgroup names the group that accounts for memory,
  version 1 or 2; its folder lies below a mount of that version. Limits of
  groups above it count as well (cgroup_limits.h). In a container, groups above
  the mount cannot be seen; only version 1 reports their limit
  (hierarchical_memory_limit). A group outside of every mount (after unshare()
  without a new mount) has a path and no figures, and its limit is not known.

  Left out for their cost: the number of mappings (/proc/self/maps takes some
  microseconds for each), and bytes of the process on each NUMA node
  (/proc/self/numa_maps walks the page tables, 30 ms for each GB, and blocks
  mmap() meanwhile). The control group's bytes on each node
  (memory.numa_stat) are shown where there is more than one node.

  A device that is made of others (LVM, RAID, dm-crypt) has a scheduler of its
  own, mostly "none". File systems without a device number of their own (Btrfs,
  ZFS, network) have none.

  Cost: some 40 small files, well below 1 ms; Report::files has the number. No
  locks.
  Threads: collect() may be called from any thread at any time.
  Ownership: the report is a copy of everything.
  Units: bytes, where the kernel has kB or pages; percent and microseconds for
  pressure, as the kernel has them.
*/

#ifndef MEMDIAG_HOST_H
#define MEMDIAG_HOST_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace memdiag::host {

struct Places {
  /** Stands before every path that the kernel names, for tests. */
  std::string root{};
  /** Its file system and its device have rows; empty: no such rows. Not below
  `root`. */
  std::string data_directory{};
};

struct Row {
  /** memory, process, cgroup, pressure, kernel, huge_pages, oom, numa or
  device. */
  const char *subject;
  /** Unique for a subject; the kernel's own name where it has one. */
  std::string name;
  std::optional<double> number;
  /** A figure that is a word; "max" for a limit that does not limit. */
  std::optional<std::string> value;
  const char *unit;
  /** The file that has the figure, without Places::root; or a variable. */
  std::string source;
};

struct Failed_file {
  std::string file;
  /** An errno; EBADMSG: the file has another form than expected. */
  int error;
};

/** A control group's limit and use. */
struct Limit {
  /** The file that says how much is used. */
  std::string usage_file;
  uint64_t limit_bytes;
  /** Without page cache that the kernel takes back. Never more than
  limit_bytes, even if the group uses more. */
  uint64_t usage_bytes;
};

/** The figures that the advisor judges by; empty: there is no
such figure, or it is not known. */
struct Figures {
  std::optional<uint64_t> machine_bytes;
  std::optional<uint64_t> available_bytes;
  std::optional<uint64_t> resident_bytes;
  /** VmHWM: the highest so far. */
  std::optional<uint64_t> peak_resident_bytes;
  /** The part of it that is pages of files, which the kernel reclaims. */
  std::optional<uint64_t> resident_file_bytes;
  /** Files in tmpfs, and shared memory, in the process's control group. */
  std::optional<uint64_t> shared_bytes;
  /** The process's huge pages of large_pages=ON. Neither VmRSS nor, by default,
  a control group counts them. */
  std::optional<uint64_t> hugetlb_bytes;
  /** The process's. */
  std::optional<uint64_t> swapped_bytes;
  /** The lowest limit of the control group and those above, and the use of the
  group that has it, without page cache that the kernel takes back
  (kernel_text::without_cache()). Without a limit, the use of the process's own
  group. */
  std::optional<uint64_t> limit_bytes;
  std::optional<uint64_t> usage_bytes;
  /** A file that would tell a limit is there and cannot be read, or no mount
  shows the control group. */
  bool is_limit_unsure{false};
  /** The group with least room below its limit, among the process's control
  group and those above. */
  std::optional<Limit> tightest;
  /** Kills of processes of the control group. */
  std::optional<uint64_t> oom_kills;
  /** always, madvise or never. */
  std::optional<std::string> transparent_huge_pages;
  /** Percent of the last 10 s in which a task waited for memory: a task of the
  control group, or of the machine where the group has no such figure. */
  std::optional<double> pressure_some_avg10;
  bool is_pressure_of_cgroup{false};
  std::optional<int64_t> oom_score_adj;
  /** 0: heuristic, 1: always, 2: up to a limit. */
  std::optional<uint64_t> overcommit;
  std::optional<uint64_t> swappiness;
};

struct Report {
  std::vector<Row> rows;
  Figures figures;
  std::vector<Failed_file> failed;
  /** The number of files read. */
  unsigned files = 0;
};

/** Read everything. @throws std::bad_alloc */
Report collect(const Places &places = {});

/** The most memory that the server can have: the control group's lowest limit,
or the machine's memory where that is less. Empty: a limit may be lower than
what is known. */
std::optional<uint64_t> limit_bytes(const Figures &figures);

/** A figure's row, or nullptr. */
const Row *find(const Report &report, std::string_view subject,
                std::string_view name);

}  // namespace memdiag::host

#endif  // MEMDIAG_HOST_H
