/*
  The collector on trees of files that the tests write: control groups of both
  versions and as containers see them, what is not there, what cannot be read or
  understood; on the machine that runs the test; and a fuzzer over all files.
*/

#include "plugin/memdiag/host/host.h"
#include "mysys/memdiag/base/fault.h"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "mysys/memdiag/unittest/file_tree.h"
#include "plugin/memdiag/unittest/mutate.h"

namespace memdiag::host {
namespace {

namespace fs = std::filesystem;

constexpr double kb = 1024;
constexpr double mb = 1024 * kb;
constexpr double gb = 1024 * mb;

/** Expectations that hold for every report. */
void expect_sane(const Report &report) {
  std::set<std::string> failed;
  for (const Failed_file &failure : report.failed) {
    EXPECT_NE(0, failure.error);
    EXPECT_TRUE(failed.insert(failure.file).second) << failure.file;
  }
  std::set<std::string> names;
  for (const Row &row : report.rows) {
    EXPECT_TRUE(names.insert(row.subject + (' ' + row.name)).second)
        << row.subject << ' ' << row.name;
    EXPECT_EQ('/', row.source[0]);
    EXPECT_FALSE(row.number && row.value) << row.name;
    EXPECT_TRUE(row.number || row.value || failed.contains(row.source))
        << row.name << " is NULL without a warning";
    EXPECT_TRUE(!row.number || std::isfinite(*row.number)) << row.name;
  }
}

/** A machine's files. */
class Tree : public memdiag_test::File_tree {
 public:
  /** With what these functions write. */
  Tree(std::initializer_list<void (*)(Tree *)> writers) {
    for (const auto write : writers) write(this);
  }
  Tree() = default;
  /** Every report is sane. */
  Report collect() const {
    Report report = host::collect({at(""), m_data});
    expect_sane(report);
    return report;
  }
  /** Makes a data directory. */
  const std::string &make_data() {
    m_data = at("/data");
    fs::create_directory(m_data);
    return m_data;
  }

 private:
  std::string m_data;
};

std::optional<double> number(const Report &report, std::string_view subject,
                             std::string_view name) {
  const Row *const row = find(report, subject, name);
  EXPECT_NE(nullptr, row) << subject << ' ' << name << " has no row";
  return row == nullptr ? std::nullopt : row->number;
}

std::string value(const Report &report, std::string_view subject,
                  std::string_view name) {
  const Row *const row = find(report, subject, name);
  return row == nullptr || !row->value ? "?" : *row->value;
}

std::string source(const Report &report, std::string_view subject,
                   std::string_view name) {
  const Row *const row = find(report, subject, name);
  return row == nullptr ? "?" : row->source;
}

std::ptrdiff_t rows_of(const Report &report, std::string_view subject) {
  return std::count_if(
      report.rows.begin(), report.rows.end(),
      [subject](const Row &row) { return row.subject == subject; });
}

void write_machine(Tree *tree) {
  tree->write("/proc/meminfo",
              "MemTotal:        8388608 kB\nMemFree:         1048576 kB\n"
              "MemAvailable:    4194304 kB\nBuffers:               1 kB\n"
              "SwapTotal:       2097152 kB\nSwapFree:        1048576 kB\n"
              "CommitLimit:     6291456 kB\nCommitted_AS:    7340032 kB\n"
              "AnonHugePages:      2048 kB\nHugePages_Total:       4\n"
              "HugePages_Free:        1\nHugepagesize:       2048 kB\n");
  tree->write("/proc/self/status",
              "Name:\tmysqld\nVmSize:\t 4000000 kB\nVmLck:\t       0 kB\n"
              "VmHWM:\t 2000000 kB\nVmRSS:\t 1500000 kB\n"
              "RssAnon:\t 1400000 kB\nRssFile:\t   99990 kB\n"
              "RssShmem:\t      10 kB\nVmSwap:\t    4096 kB\nThreads:\t42\n");
  tree->write(
      "/proc/self/stat",
      "7 (mysqld) S 1 7 7 0 -1 4194560 1234 0 56 0 10 20 0 0 20 0 42\n");
  tree->write("/proc/pressure/memory",
              "some avg10=1.50 avg60=0.75 avg300=0.01 total=52992693\n"
              "full avg10=0.50 avg60=0.25 avg300=0.00 total=15978576\n");
  tree->write("/proc/sys/vm/overcommit_memory", "2\n");
  tree->write("/proc/sys/vm/overcommit_ratio", "50\n");
  tree->write("/proc/sys/vm/swappiness", "60\n");
  tree->write("/proc/sys/vm/max_map_count", "65530\n");
  tree->write("/sys/kernel/mm/transparent_hugepage/enabled",
              "[always] madvise never\n");
  tree->write("/sys/kernel/mm/transparent_hugepage/defrag",
              "always defer defer+madvise [madvise] never\n");
  tree->write("/sys/kernel/mm/transparent_hugepage/khugepaged/pages_collapsed",
              "17\n");
  tree->write("/proc/self/oom_score", "333\n");
  tree->write("/proc/self/oom_score_adj", "-900\n");
  tree->write("/sys/devices/system/node/has_memory", "0\n");
  tree->write("/sys/devices/system/node/node0/meminfo",
              "Node 0 MemTotal:  8388608 kB\nNode 0 MemFree:  1048576 kB\n");
}

constexpr const char *v2_mount =
    "22 27 0:21 / /proc rw - proc proc rw\n"
    "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";

/** A service under systemd, with a limit on its slice. */
void write_v2(Tree *tree) {
  const std::string slice = "/sys/fs/cgroup/system.slice/";
  const std::string service = slice + "mysql.service/";
  tree->write("/proc/self/cgroup", "0::/system.slice/mysql.service\n");
  tree->write("/proc/self/mountinfo", v2_mount);
  tree->write(slice + "memory.max", "2147483648\n");
  tree->write(slice + "memory.current", "2000000000\n");
  tree->write(service + "memory.max", "4294967296\n");
  tree->write(service + "memory.high", "max\n");
  tree->write(service + "memory.current", "1600000000\n");
  tree->write(service + "memory.peak", "1700000000\n");
  tree->write(service + "memory.swap.current", "4194304\n");
  tree->write(service + "memory.swap.max", "max\n");
  tree->write(service + "memory.events",
              "low 1\nhigh 2\nmax 3\noom 4\noom_kill 5\noom_group_kill 0\n");
  tree->write(service + "memory.stat",
              "anon 1433600000\nfile 100000000\nkernel 66400000\nshmem 0\n"
              "anon_thp 2097152\n");
  tree->write(service + "memory.pressure",
              "some avg10=9.25 avg60=0.75 avg300=0.01 total=1000\n"
              "full avg10=4.00 avg60=0.25 avg300=0.00 total=500\n");
}

constexpr const char *no_limit_v1 = "9223372036854771712\n";

void write_v1(Tree *tree) {
  const std::string folder = "/sys/fs/cgroup/memory/";
  tree->write("/proc/self/cgroup",
              "9:name=systemd:/\n4:memory:/docker/1\n1:cpu:/docker/1\n0::/\n");
  tree->write("/proc/self/mountinfo",
              "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
              "35 31 0:32 /docker/1 /sys/fs/cgroup/memory rw - cgroup cgroup "
              "rw,memory\n"
              "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  tree->write(folder + "memory.usage_in_bytes", "1600000000\n");
  tree->write(folder + "memory.max_usage_in_bytes", "1700000000\n");
  tree->write(folder + "memory.soft_limit_in_bytes", no_limit_v1);
  tree->write(folder + "memory.limit_in_bytes", "4294967296\n");
  tree->write(folder + "memory.failcnt", "12\n");
  tree->write(folder + "memory.memsw.usage_in_bytes", "1600000001\n");
  tree->write(folder + "memory.memsw.limit_in_bytes", no_limit_v1);
  tree->write(folder + "memory.kmem.usage_in_bytes", "66400000\n");
  tree->write(folder + "memory.swappiness", "10\n");
  tree->write(folder + "memory.oom_control",
              "oom_kill_disable 0\nunder_oom 0\noom_kill 6\n");
  tree->write(folder + "memory.stat",
              "cache 1\nrss 1\nhierarchical_memory_limit 4294967296\n"
              "total_cache 100000000\ntotal_rss 1433600000\n"
              "total_rss_huge 2097152\ntotal_swap 4194304\n");
}

TEST(Host, TheMachine) {
  Tree tree{write_machine};
  const Report report = tree.collect();
  EXPECT_TRUE(report.failed.empty());
  EXPECT_EQ(8 * gb, number(report, "memory", "MemTotal"));
  EXPECT_EQ(kb, number(report, "memory", "Buffers"));
  EXPECT_EQ(7 * gb, number(report, "memory", "Committed_AS"));
  EXPECT_STREQ("bytes", find(report, "memory", "MemTotal")->unit);
  EXPECT_EQ("/proc/meminfo", source(report, "memory", "MemTotal"));
  EXPECT_EQ(nullptr, find(report, "memory", "PageTables")) << "no such line";
  EXPECT_EQ(1500000 * kb, number(report, "process", "VmRSS"));
  EXPECT_EQ(42, number(report, "process", "Threads"));
  EXPECT_EQ(1234, number(report, "process", "minor_faults"));
  EXPECT_EQ(56, number(report, "process", "major_faults"));
  EXPECT_EQ(1.5, number(report, "pressure", "machine.some.avg10"));
  EXPECT_EQ(0.25, number(report, "pressure", "machine.full.avg60"));
  EXPECT_EQ(15978576, number(report, "pressure", "machine.full.total"));
  EXPECT_EQ(2, number(report, "kernel", "vm.overcommit_memory"));
  EXPECT_EQ(65530, number(report, "kernel", "vm.max_map_count"));
  EXPECT_EQ("always",
            value(report, "huge_pages", "transparent_hugepage.enabled"));
  EXPECT_EQ("madvise",
            value(report, "huge_pages", "transparent_hugepage.defrag"));
  EXPECT_EQ(17, number(report, "huge_pages",
                       "transparent_hugepage.khugepaged/pages_collapsed"));
  EXPECT_EQ(4, number(report, "huge_pages", "HugePages_Total"));
  EXPECT_EQ(2 * mb, number(report, "huge_pages", "Hugepagesize"));
  EXPECT_EQ(333, number(report, "oom", "oom_score"));
  EXPECT_EQ(-900, number(report, "oom", "oom_score_adj"));
  EXPECT_EQ(1, number(report, "numa", "nodes"));
  EXPECT_EQ(8 * gb, number(report, "numa", "node0.MemTotal"));
  EXPECT_EQ(0, rows_of(report, "cgroup"));
  EXPECT_EQ(0, rows_of(report, "device"));

  const Figures &figures = report.figures;
  EXPECT_EQ(8ull << 30, figures.machine_bytes);
  EXPECT_EQ(4ull << 30, figures.available_bytes);
  EXPECT_EQ(1500000u * 1024, figures.resident_bytes);
  EXPECT_EQ(2000000u * 1024, figures.peak_resident_bytes);
  EXPECT_EQ(99990u * 1024, figures.resident_file_bytes);
  EXPECT_EQ(4u << 20, figures.swapped_bytes);
  EXPECT_EQ("always", figures.transparent_huge_pages);
  EXPECT_EQ(1.5, figures.pressure_some_avg10);
  EXPECT_EQ(-900, figures.oom_score_adj);
  EXPECT_EQ(2u, figures.overcommit);
  EXPECT_EQ(60u, figures.swappiness);
  EXPECT_FALSE(figures.limit_bytes);
  EXPECT_FALSE(figures.usage_bytes);
  EXPECT_FALSE(figures.oom_kills);
}

TEST(Host, ControlGroupVersion2) {
  Tree tree{write_machine, write_v2};
  const Report report = tree.collect();
  EXPECT_TRUE(report.failed.empty());
  EXPECT_EQ(2, number(report, "cgroup", "version"));
  EXPECT_EQ("/system.slice/mysql.service", value(report, "cgroup", "path"));
  EXPECT_EQ(4 * gb, number(report, "cgroup", "memory.max"));
  EXPECT_EQ(std::nullopt, number(report, "cgroup", "memory.high"));
  EXPECT_EQ("max", value(report, "cgroup", "memory.high"));
  EXPECT_EQ(1.7e9, number(report, "cgroup", "memory.peak"));
  EXPECT_EQ(3, number(report, "cgroup", "memory.events.max"));
  EXPECT_EQ(5, number(report, "cgroup", "memory.events.oom_kill"));
  EXPECT_EQ(1433600000, number(report, "cgroup", "memory.stat.anon"));
  EXPECT_EQ(9.25, number(report, "pressure", "cgroup.some.avg10"));
  // The slice's limit is lower, and it is the slice's use that it limits.
  EXPECT_EQ(2 * gb, number(report, "cgroup", "effective_limit"));
  EXPECT_EQ("/sys/fs/cgroup/system.slice/memory.max",
            source(report, "cgroup", "effective_limit"));
  EXPECT_EQ(2e9, number(report, "cgroup", "effective_usage"));
  EXPECT_EQ(2ull << 30, report.figures.limit_bytes);
  EXPECT_EQ(2000000000u, report.figures.usage_bytes);
  EXPECT_EQ(5u, report.figures.oom_kills);
  EXPECT_EQ(0u, report.figures.shared_bytes);
  EXPECT_EQ(9.25, report.figures.pressure_some_avg10);
  EXPECT_TRUE(report.figures.is_pressure_of_cgroup);
  // Its cost.
  EXPECT_LE(report.files, 40u);
}

TEST(Host, TheLeastRoomIsNotAlwaysBelowTheLowestLimit) {
  Tree tree{write_machine, write_v2};
  // The service has the lowest limit, 1 GB free. Others fill its slice: 100 MB.
  const std::string slice = "/sys/fs/cgroup/system.slice/";
  tree.write(slice + "mysql.service/memory.max", "2600000000\n");
  tree.write(slice + "memory.max", "4000000000\n");
  tree.write(slice + "memory.current", "4000000000\n");
  tree.write(slice + "memory.stat", "anon 1\ninactive_file 100000000\n");
  Report report = tree.collect();
  EXPECT_EQ(2.6e9, number(report, "cgroup", "effective_limit"));
  EXPECT_EQ(1.6e9, number(report, "cgroup", "effective_usage"));
  EXPECT_EQ(1e8, number(report, "cgroup", "effective_room"));
  EXPECT_EQ(slice + "memory.current",
            source(report, "cgroup", "effective_room"));
  EXPECT_EQ(4e9, number(report, "cgroup", "room_limit"));
  EXPECT_EQ(2600000000u, report.figures.limit_bytes);
  ASSERT_TRUE(report.figures.tightest);
  EXPECT_EQ(4000000000u, report.figures.tightest->limit_bytes);
  EXPECT_EQ(3900000000u, report.figures.tightest->usage_bytes);
  // Above its limit, which the kernel allows for a moment: no room.
  tree.write(slice + "memory.current", "5000000000\n");
  report = tree.collect();
  EXPECT_EQ(0, number(report, "cgroup", "effective_room"));
}

TEST(Host, PageCacheThatIsIdleIsNotUsed) {
  Tree tree{write_machine, write_v2};
  tree.write("/sys/fs/cgroup/system.slice/memory.stat",
             "anon 1\ninactive_file 500000000\n");
  const Report report = tree.collect();
  EXPECT_EQ(2e9, number(report, "cgroup", "effective_usage"));
  EXPECT_EQ(1500000000u, report.figures.usage_bytes);
}

/** A program that reads a file twice makes its pages active. */
TEST(Host, PageCacheThatTheKernelCanDropIsNotUsed) {
  Tree tree{write_machine, write_v2};
  const std::string slice = "/sys/fs/cgroup/system.slice/";
  tree.write(slice + "memory.stat",
             "anon 1\ninactive_file 0\nactive_file 700000000\nfile_dirty 0\n"
             "file_writeback 0\nfile_mapped 100000000\n");
  Report report = tree.collect();
  EXPECT_EQ(2e9, number(report, "cgroup", "effective_usage"));
  EXPECT_EQ(1400000000u, report.figures.usage_bytes);
  ASSERT_TRUE(report.figures.tightest);
  EXPECT_EQ(slice + "memory.current", report.figures.tightest->usage_file);
  EXPECT_EQ(1400000000u, report.figures.tightest->usage_bytes);
  EXPECT_EQ(static_cast<double>(report.figures.tightest->limit_bytes) - 1.4e9,
            number(report, "cgroup", "effective_room"));
}

TEST(Host, NoLimitAnywhere) {
  Tree tree{write_v2};
  tree.write("/sys/fs/cgroup/system.slice/memory.max", "max\n");
  tree.write("/sys/fs/cgroup/system.slice/mysql.service/memory.max", "max\n");
  const Report report = tree.collect();
  EXPECT_EQ(std::nullopt, number(report, "cgroup", "effective_limit"));
  EXPECT_EQ("max", value(report, "cgroup", "effective_limit"));
  EXPECT_EQ(nullptr, find(report, "cgroup", "effective_room"));
  EXPECT_EQ(nullptr, find(report, "cgroup", "room_limit"));
  EXPECT_FALSE(report.figures.tightest);
  EXPECT_FALSE(report.figures.limit_bytes);
  EXPECT_EQ(1600000000u, report.figures.usage_bytes);
}

TEST(Host, TheRootGroupHasNoLimitFiles) {
  Tree tree;
  tree.write("/proc/self/cgroup", "0::/\n");
  tree.write("/proc/self/mountinfo", v2_mount);
  tree.write("/sys/fs/cgroup/memory.stat", "anon 1\nfile 2\n");
  const Report report = tree.collect();
  EXPECT_TRUE(report.failed.empty());
  EXPECT_EQ("/", value(report, "cgroup", "path"));
  EXPECT_EQ(1, number(report, "cgroup", "memory.stat.anon"));
  EXPECT_EQ(nullptr, find(report, "cgroup", "effective_limit"));
}

TEST(Host, ControlGroupVersion1) {
  Tree tree{write_machine, write_v1};
  const Report report = tree.collect();
  EXPECT_TRUE(report.failed.empty());
  EXPECT_EQ(1, number(report, "cgroup", "version"));
  EXPECT_EQ("/docker/1", value(report, "cgroup", "path"));
  EXPECT_EQ(4 * gb, number(report, "cgroup", "memory.limit_in_bytes"));
  EXPECT_EQ(std::nullopt,
            number(report, "cgroup", "memory.memsw.limit_in_bytes"));
  EXPECT_EQ("max", value(report, "cgroup", "memory.memsw.limit_in_bytes"));
  EXPECT_EQ(12, number(report, "cgroup", "memory.failcnt"));
  EXPECT_EQ(6, number(report, "cgroup", "memory.oom_control.oom_kill"));
  EXPECT_EQ(1433600000, number(report, "cgroup", "memory.stat.total_rss"));
  EXPECT_EQ(4 * gb, number(report, "cgroup", "effective_limit"));
  EXPECT_EQ("/sys/fs/cgroup/memory/memory.limit_in_bytes",
            source(report, "cgroup", "effective_limit"));
  EXPECT_EQ(1.6e9, number(report, "cgroup", "effective_usage"));
  EXPECT_EQ(6u, report.figures.oom_kills);
  // Version 1 has no pressure of its own.
  EXPECT_EQ(nullptr, find(report, "pressure", "cgroup.some.avg10"));
  EXPECT_EQ(1.5, report.figures.pressure_some_avg10);
  EXPECT_FALSE(report.figures.is_pressure_of_cgroup);
}

TEST(Host, ALimitAboveWhatTheContainerSees) {
  Tree tree{write_v1};
  tree.write("/sys/fs/cgroup/memory/memory.stat",
             "hierarchical_memory_limit 1073741824\n");
  Report report = tree.collect();
  EXPECT_EQ(gb, number(report, "cgroup", "effective_limit"));
  EXPECT_EQ("/sys/fs/cgroup/memory/memory.stat",
            source(report, "cgroup", "effective_limit"));
  EXPECT_EQ(1600000000u, report.figures.usage_bytes);
  // A limit above that does not count (use_hierarchy 0).
  tree.write("/sys/fs/cgroup/memory/memory.stat",
             std::string("hierarchical_memory_limit ") + no_limit_v1);
  report = tree.collect();
  EXPECT_EQ("max", value(report, "cgroup", "effective_limit"));
}

TEST(Host, WhereContainersFindTheirGroup) {
  struct Case {
    const char *path;
    const char *mount_root;
    /** The folder it must be read from, or "" where it cannot be found. */
    const char *folder;
  };
  for (const Case &c : {
           Case{"/", "/", "/cg"},                      // namespace of its own
           Case{"/docker/1", "/", "/cg/docker/1"},     // the host's, whole
           Case{"/docker/1", "/docker/1", "/cg"},      // the host's, bound
           Case{"/kube/pod/1", "/kube/pod", "/cg/1"},  // the pod's, bound
           Case{"/../1", "/..", "/cg/1"},              // both above the root
           Case{"/docker/12", "/docker/1", ""},        // beside it
           Case{"/", "/docker/1", ""},                 // not mounted anew
           Case{"/", "/..", ""},                       // name is not known
           Case{"/../1", "/", ""},                     // moved out of it
       }) {
    SCOPED_TRACE(std::string(c.path) + " mounted " + c.mount_root);
    Tree tree;
    tree.write("/proc/self/cgroup", std::string("0::") + c.path + "\n");
    tree.write("/proc/self/mountinfo", std::string("31 23 0:28 ") +
                                           c.mount_root +
                                           " /cg rw - cgroup2 cgroup2 rw\n");
    for (const char *folder : {"/cg", "/cg/1", "/cg/docker/1"})
      tree.write(std::string(folder) + "/memory.current", "4096\n");
    const Report report = tree.collect();
    EXPECT_TRUE(report.failed.empty());
    EXPECT_EQ(c.path, value(report, "cgroup", "path"));
    EXPECT_EQ(*c.folder == '\0', report.figures.is_limit_unsure);
    const Row *const row = find(report, "cgroup", "memory.current");
    EXPECT_EQ(
        *c.folder == '\0' ? "" : c.folder + std::string("/memory.current"),
        row == nullptr ? "" : row->source);
  }
}

TEST(Host, OfMountsAtOnePlaceTheLastCovers) {
  Tree tree;
  tree.write("/proc/self/cgroup", "0::/docker/1\n");
  tree.write("/proc/self/mountinfo",
             "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
             "32 31 0:28 /docker/1 /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  tree.write("/sys/fs/cgroup/memory.max", "1048576\n");
  EXPECT_EQ(mb, number(tree.collect(), "cgroup", "memory.max"));
}

void write_numa(Tree *tree) {
  tree->write("/sys/devices/system/node/has_memory", "0,2\n");
  for (const char *n : {"0", "2"})
    tree->write(std::string("/sys/devices/system/node/node") + n + "/meminfo",
                std::string("Node ") + n + " MemTotal:  4194304 kB\nNode " + n +
                    " MemFree:  " + n + "048576 kB\n");
  tree->write("/sys/fs/cgroup/system.slice/mysql.service/memory.numa_stat",
              "anon N0=8192 N2=16384\nfile N0=4096 N2=0\n");
}

TEST(Host, Numa) {
  Tree tree{write_v2, write_numa};
  Report report = tree.collect();
  EXPECT_TRUE(report.failed.empty());
  EXPECT_EQ(2, number(report, "numa", "nodes"));
  EXPECT_EQ(4 * gb, number(report, "numa", "node2.MemTotal"));
  EXPECT_EQ(2048576 * kb, number(report, "numa", "node2.MemFree"));
  EXPECT_EQ(16384, number(report, "numa", "node2.cgroup.anon"));
  EXPECT_EQ(4096, number(report, "numa", "node0.cgroup.file"));
  EXPECT_EQ(nullptr, find(report, "numa", "node0.process")) << "it costs much";
  // With a single node the machine's figures say it all.
  tree.write("/sys/devices/system/node/has_memory", "0\n");
  report = tree.collect();
  EXPECT_TRUE(report.failed.empty());
  EXPECT_EQ(nullptr, find(report, "numa", "node0.cgroup.anon"));
}

TEST(Host, NumaOfVersion1IsNotCounted) {
  Tree tree{write_v1, write_numa};
  tree.write("/sys/fs/cgroup/memory/memory.numa_stat",
             "total=3 N0=1 N2=2\nanon=3 N0=1 N2=2\n");
  const Report report = tree.collect();
  EXPECT_TRUE(report.failed.empty());
  EXPECT_EQ(nullptr, find(report, "numa", "node0.cgroup.anon"));
}

TEST(Host, Device) {
  Tree tree;
  const std::string &data = tree.make_data();
  struct stat info;
  ASSERT_EQ(0, stat(data.c_str(), &info));
  const std::string number = std::to_string(major(info.st_dev)) + ':' +
                             std::to_string(minor(info.st_dev));
  const std::string parent = fs::path(data).parent_path();
  tree.write("/proc/self/mountinfo",
             "1 0 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"
             "2 1 8:2 / " +
                 parent +
                 " rw,noatime - tmpfs covered rw\n"
                 "3 1 8:3 / " +
                 parent +
                 " ro,noatime shared:3 - xfs /dev/sda3 "
                 "rw,attr2,inode64\n"
                 "4 1 8:4 / " +
                 data + "base rw - ext4 /dev/sda4 rw\n");
  Report report = tree.collect();
  EXPECT_TRUE(report.failed.empty());
  EXPECT_EQ(number, value(report, "device", "number"));
  EXPECT_EQ(parent, value(report, "device", "mount_point"));
  EXPECT_EQ("xfs", value(report, "device", "file_system"));
  EXPECT_EQ("ro,noatime", value(report, "device", "mount_options"));
  EXPECT_EQ("rw,attr2,inode64", value(report, "device", "file_system_options"));
  EXPECT_EQ(nullptr, find(report, "device", "scheduler"));

  // A partition: its link leads below the disk, which has the queue.
  tree.write("/sys/devices/disk/queue/scheduler", "none [mq-deadline] bfq\n");
  fs::create_directories(tree.at("/sys/devices/disk/disk1"));
  fs::create_directories(tree.at("/sys/dev/block"));
  fs::create_directory_symlink("../../devices/disk/disk1",
                               tree.at("/sys/dev/block/" + number));
  report = tree.collect();
  EXPECT_EQ("mq-deadline", value(report, "device", "scheduler"));
  // A disk.
  tree.write("/sys/devices/disk/disk1/queue/scheduler", "[none]\n");
  report = tree.collect();
  EXPECT_EQ("none", value(report, "device", "scheduler"));

  tree.write("/proc/self/mountinfo", "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n");
  EXPECT_EQ("/", value(tree.collect(), "device", "mount_point"));
  tree.write("/proc/self/mountinfo", "1 0 8:1 / /other rw - ext4 a rw\n");
  EXPECT_EQ(nullptr, find(tree.collect(), "device", "mount_point"));
}

TEST(Host, AFolderThatCannotBeAskedForIsAFailure) {
  Tree tree;
  const std::string data = tree.make_data();
  fs::remove_all(data);
  fs::create_symlink(data, data);
  const Report report = tree.collect();
  ASSERT_EQ(1u, report.failed.size());
  EXPECT_EQ(data, report.failed[0].file);
  EXPECT_EQ(ELOOP, report.failed[0].error);
}

TEST(Host, NothingIsThere) {
  const Tree tree;
  const Report report = tree.collect();
  EXPECT_TRUE(report.rows.empty());
  EXPECT_TRUE(report.failed.empty());
  EXPECT_EQ(0u, report.files);
}

/** Every figure that does not depend on `file` is as it was. */
void expect_others_unchanged(const Report &before, const Report &after,
                             const std::string &file) {
  for (const Row &row : before.rows) {
    // These depend on all groups.
    if (row.source == file || row.name.starts_with("effective_") ||
        row.name == "room_limit")
      continue;
    // These tell where others are.
    if (file == "/proc/self/mountinfo" && row.subject == std::string("device"))
      continue;
    if ((file == "/proc/self/mountinfo" || file == "/proc/self/cgroup") &&
        row.source.starts_with("/sys/fs/cgroup"))
      continue;
    if (file == "/sys/devices/system/node/has_memory" &&
        row.subject == std::string("numa"))
      continue;
    const Row *const now = find(after, row.subject, row.name);
    ASSERT_NE(nullptr, now) << row.subject << ' ' << row.name;
    EXPECT_EQ(row.number, now->number) << row.name;
    EXPECT_EQ(row.value, now->value) << row.name;
  }
}

std::ptrdiff_t rows_from(const Report &report, const std::string &file) {
  return std::count_if(report.rows.begin(), report.rows.end(),
                       [&file](const Row &row) { return row.source == file; });
}

/** The rows of the file's figures are NULL. */
void expect_null(const Report &before, const Report &report,
                 const std::string &file) {
  EXPECT_EQ(rows_from(before, file) > 0, rows_from(report, file) > 0);
  for (const Row &row : report.rows) {
    if (row.source != file) continue;
    EXPECT_FALSE(row.number) << row.name;
    EXPECT_FALSE(row.value) << row.name;
  }
}

/** Takes each file of a tree away, makes it unreadable, and fills it with what
it should not have. */
void try_every_file(Tree *tree) {
  const Report before = tree->collect();
  ASSERT_TRUE(before.failed.empty());
  const auto texts = tree->texts();
  for (const auto &[file, text] : texts) {
    SCOPED_TRACE(file);
    tree->remove(file);
    Report report = tree->collect();
    EXPECT_TRUE(report.failed.empty()) << report.failed[0].file;
    expect_others_unchanged(before, report, file);
    EXPECT_EQ(0, rows_from(report, file));

    tree->make_unreadable(file);
    report = tree->collect();
    ASSERT_EQ(1u, report.failed.size());
    EXPECT_EQ(file, report.failed[0].file);
    EXPECT_EQ(EISDIR, report.failed[0].error);
    expect_others_unchanged(before, report, file);
    expect_null(before, report, file);

    for (const char *garbage : {"?\n", "? ? ?\n\n?", "-"}) {
      tree->remove(file);
      tree->write(file, garbage);
      report = tree->collect();
      ASSERT_EQ(1u, report.failed.size());
      EXPECT_EQ(file, report.failed[0].file);
      EXPECT_EQ(EBADMSG, report.failed[0].error);
      expect_others_unchanged(before, report, file);
      expect_null(before, report, file);
    }
    tree->write(file, text);
  }
}

TEST(Host, EveryFileMissingUnreadableOrWrong) {
  Tree tree{write_machine, write_v2, write_numa};
  try_every_file(&tree);
}

TEST(Host, EveryFileOfVersion1MissingUnreadableOrWrong) {
  Tree tree{write_v1};
  try_every_file(&tree);
}

TEST(Host, AWrongNumberAmongOthers) {
  Tree tree{write_machine};
  tree.write("/proc/meminfo", "MemTotal: 8388608 kB\nMemFree: many kB\n");
  const Report report = tree.collect();
  EXPECT_EQ(8 * gb, number(report, "memory", "MemTotal"));
  EXPECT_EQ(std::nullopt, number(report, "memory", "MemFree"));
  ASSERT_EQ(1u, report.failed.size());
  EXPECT_EQ("/proc/meminfo", report.failed[0].file);
}

TEST(Host, AnAncestorThatCannotBeRead) {
  Tree tree{write_v2};
  tree.make_unreadable("/sys/fs/cgroup/system.slice/memory.max");
  const Report report = tree.collect();
  EXPECT_EQ(std::nullopt, number(report, "cgroup", "effective_limit"));
  EXPECT_EQ("?", value(report, "cgroup", "effective_limit"));
  EXPECT_FALSE(report.figures.limit_bytes);
  EXPECT_EQ(4 * gb, number(report, "cgroup", "memory.max"));
}

TEST(Host, TheMachineIsNotTheLimitWhileAFileOfTheGroupCannotBeRead) {
  const std::string group = "/sys/fs/cgroup/system.slice";
  for (const std::string &file :
       {std::string{"/proc/self/cgroup"}, std::string{"/proc/self/mountinfo"},
        group + "/memory.max"}) {
    Tree tree{write_machine, write_v2};
    ASSERT_TRUE(limit_bytes(tree.collect().figures));
    tree.make_unreadable(file);
    EXPECT_FALSE(limit_bytes(tree.collect().figures)) << file;
  }
  // Version 1 tells limits of groups that cannot be seen there.
  Tree tree{write_machine, write_v1};
  const Report report = tree.collect();
  ASSERT_TRUE(limit_bytes(report.figures));
  tree.make_unreadable(
      find(report, "cgroup", "memory.stat.hierarchical_memory_limit")->source);
  EXPECT_FALSE(limit_bytes(tree.collect().figures));
}

TEST(Host, AFailureForTests) {
  memdiag::fault::arm(memdiag::fault::Point::file,
                      memdiag::fault::digest_of("/proc/self/status"));
  const Report report = collect();
  memdiag::fault::disarm();
  expect_sane(report);
  EXPECT_EQ(std::nullopt, number(report, "process", "VmRSS"));
  EXPECT_FALSE(report.figures.resident_bytes);
  ASSERT_EQ(1u, report.failed.size());
  EXPECT_EQ(EIO, report.failed[0].error);
}

TEST(Host, ThisMachine) {
  const Report report = collect({.data_directory = testing::TempDir()});
  expect_sane(report);
  for (const Failed_file &failure : report.failed)
    ADD_FAILURE() << failure.file << ": " << failure.error;
  EXPECT_GT(number(report, "memory", "MemTotal"),
            number(report, "memory", "MemFree"));
  EXPECT_EQ(number(report, "process", "VmRSS"),
            number(report, "process", "RssAnon").value_or(0) +
                number(report, "process", "RssFile").value_or(0) +
                number(report, "process", "RssShmem").value_or(0));
  EXPECT_GE(number(report, "process", "VmHWM"),
            number(report, "process", "VmRSS"));
  EXPECT_GE(number(report, "process", "Threads"), 1);
  EXPECT_NE("?", value(report, "device", "mount_point"));
  EXPECT_LE(report.files, 60u);
}

TEST(Host, WhatThisProcessDoes) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer's shadow of the memory counts too";
#endif
  constexpr size_t bytes = 64 << 20;
  const Report before = collect();
  void *const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(MAP_FAILED, memory);
  // Each page faults.
  (void)madvise(memory, bytes, MADV_NOHUGEPAGE);
  std::fill_n(static_cast<char *>(memory), bytes, 'x');
  const Report during = collect();
  munmap(memory, bytes);
  const Report after = collect();
  // The kernel counts by CPU and adds up only now and then.
  const auto grown = [](const Report &from, const Report &to,
                        const char *name) {
    return number(to, "process", name).value_or(0) -
           number(from, "process", name).value_or(0);
  };
  EXPECT_NEAR(bytes, grown(before, during, "RssAnon"), 4 * mb);
  EXPECT_NEAR(bytes, grown(before, during, "VmRSS"), 4 * mb);
  EXPECT_GE(grown(before, during, "minor_faults"),
            bytes / sysconf(_SC_PAGESIZE));
  EXPECT_NEAR(-static_cast<double>(bytes), grown(during, after, "RssAnon"),
              4 * mb);
  // The peak remembers what was given back.
  EXPECT_GE(number(after, "process", "VmHWM").value_or(0) + 4 * mb,
            number(during, "process", "VmRSS").value_or(0));
}

TEST(Host, Fuzz) {
  Tree v1{write_v1};
  Tree v2{write_machine, write_v2, write_numa};
  v2.make_data();
  std::mt19937 random(20261120);
  for (Tree *const tree : {&v1, &v2}) {
    const auto texts = tree->texts();
    for (int i = 0; i < 30; ++i) {
      for (const auto &[file, text] : texts) {
        const std::string mutated = memdiag_test::mutate(text, &random);
        tree->write(file, mutated);
        const Report report = tree->collect();
        ASSERT_FALSE(HasFailure()) << file << ", round " << i << ": "
                                   << testing::PrintToString(mutated);
        tree->write(file, text);
      }
    }
  }
}

}  // namespace
}  // namespace memdiag::host
