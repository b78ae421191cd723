/*
  Collector: what the machine, its kernel's settings and the control group mean
  for the server's memory. One row for each figure of INFORMATION_SCHEMA.
  MEMDIAG_HOST, and the few that the advisor judges by, typed.

  What is not there has no row: a file that this kernel does not have (pressure
  stall information, a control group's files, NUMA), a line that it does not
  write yet, all of /proc where it is not mounted. A file that is there but
  cannot be read, or does not say what it should, is listed in `failed` once,
  and its figures are NULL; where it takes the file to know which figures there
  are (mountinfo, the list of nodes), they are missing. A limit that does not
  limit is NULL too, with the text "max" as version 2 of control groups writes
  it.

  Control groups: the one that accounts for memory, version 1 or 2, is looked up
  in /proc/self/cgroup and found below a mount of its kind. Limits of groups
  above count as well: the lowest up to the mount is `effective_limit`. What a
  container does not see of them, nobody in it can know; version 1 tells all the
  same (hierarchical_memory_limit). A group that lies beside every mount (after
  unshare() without mounting anew) has a path and no figures.

  Left out because of what they cost: the number of mappings, to be compared
  with vm.max_map_count (/proc/self/maps takes some microseconds for each), and
  bytes of the process on each NUMA node unless asked for: /proc/self/numa_maps
  walks the page tables, 30 ms for each GB, and maps wait for it meanwhile. A
  control group counts its bytes on each node anyway (memory.numa_stat): these
  are shown where there is more than one node. The scheduler of a device that is
  made of others (LVM, RAID, dm-crypt) is its own, as a rule "none"; file
  systems without a device of their own number (Btrfs, ZFS, network) have none.

  Cost: some 40 small files, well below 1 ms; Report::files says how many.
  Nothing is locked, no page of the server's is touched.
  Threads: collect() may be called from any thread at any time.
  Ownership: the report is the caller's, a copy of everything.
  Units: bytes, where the kernel has kB or pages; percent and microseconds for
  pressure, as it has them.
*/

#ifndef MEMDIAG_HOST_H
#define MEMDIAG_HOST_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace memdiag::host {

/** Where to look. */
struct Places {
  /** Stands before every path that the kernel names, for tests. */
  std::string root{};
  /** Of its file system and device there are rows; empty: of none. Not below
  `root`. */
  std::string data_directory{};
  /** Whether to walk the page tables for bytes on each node, where there is
  more than one. */
  bool numa_maps = false;
};

struct Row {
  /** memory, process, cgroup, pressure, kernel, huge_pages, oom, numa or
  device. */
  const char *subject;
  /** Unique for a subject; the kernel's own name where it has one. */
  std::string name;
  std::optional<double> number;
  /** Of a figure that is a word, and of a limit that is none. */
  std::optional<std::string> value;
  const char *unit;
  /** The file that it is from, without Places::root; or a variable. */
  std::string source;
};

struct Failed_file {
  std::string file;
  /** An errno; EBADMSG: it does not say what it should. */
  int error;
};

/** What the advisor judges by; empty: not there or not known. */
struct Figures {
  std::optional<uint64_t> machine_bytes;
  std::optional<uint64_t> available_bytes;
  std::optional<uint64_t> resident_bytes;
  /** Of the process. */
  std::optional<uint64_t> swapped_bytes;
  /** The lowest limit of the control group and those above, and what that one
  uses, without what the kernel takes back first
  (kernel_text::without_idle_cache()); the group's own use where there is no
  limit. */
  std::optional<uint64_t> limit_bytes;
  std::optional<uint64_t> usage_bytes;
  /** In the control group, of whatever process. */
  std::optional<uint64_t> oom_kills;
  /** always, madvise or never. */
  std::optional<std::string> transparent_huge_pages;
  /** Percent of time that some task waited for memory: of the control group,
  and of the machine if that does not tell. */
  std::optional<double> pressure_some_avg10;
  std::optional<int64_t> oom_score_adj;
  /** 0: heuristic, 1: always, 2: up to a limit. */
  std::optional<uint64_t> overcommit;
  std::optional<uint64_t> swappiness;
};

struct Report {
  std::vector<Row> rows;
  Figures figures;
  std::vector<Failed_file> failed;
  /** How many files were read. */
  unsigned files = 0;
};

/** Read everything. @throws std::bad_alloc */
Report collect(const Places &places = {});

/** What the server may have at most: the control group's limit, or the
machine's memory where that is less. */
std::optional<uint64_t> limit_bytes(const Figures &figures);

/** A figure's row, or nullptr. */
const Row *find(const Report &report, std::string_view subject,
                std::string_view name);

/** Treat a file as unreadable from now on (EIO), to test what that looks like.
@param file  a literal, as in Row::source; nullptr ends it */
void fail_reads_for_test(const char *file);

}  // namespace memdiag::host

#endif  // MEMDIAG_HOST_H
