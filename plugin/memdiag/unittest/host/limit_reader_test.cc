/*
  The reader of limits on trees of files that the tests write: limits that are
  changed, groups that are nested, that vanish and that the server is moved to,
  in both versions; what a group cannot give back; and the safe limit.
*/

#include "plugin/memdiag/host/limit_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <string_view>

#include "mysys/memdiag/base/clock.h"
#include "mysys/memdiag/unittest/file_tree.h"
#include "mysys/memdiag/unittest/stopped_in_malloc.h"
#include "plugin/memdiag/history/limits.h"
#include "plugin/memdiag/host/kernel_text.h"
#include "plugin/memdiag/host/safe_limit.h"
#include "plugin/memdiag/tables/status_variables.h"
#include "plugin/memdiag/unittest/mutate.h"

namespace memdiag::host {
namespace {

using memdiag_test::File_tree;

constexpr uint64_t mb = 1 << 20;
constexpr uint64_t second = 1'000'000;

const std::string top = "/sys/fs/cgroup";
const std::string slice = top + "/slice";
const std::string service = slice + "/mysql";

std::string bytes(uint64_t megabytes) {
  return std::to_string(megabytes * mb) + '\n';
}

/** Memory.stat of version 2: 60 MB of clean cache that no process has mapped.
 */
std::string stat_v2() {
  return "anon 1\nfile " + bytes(100) + "inactive_file " + bytes(70) +
         "active_file " + bytes(20) + "file_dirty " + bytes(5) +
         "file_writeback " + bytes(10) + "file_mapped " + bytes(15);
}

void write_v2(File_tree *tree) {
  tree->write("/proc/meminfo", "MemTotal:        8388608 kB\n");
  tree->write("/proc/self/cgroup", "0::/slice/mysql\n");
  tree->write("/proc/self/mountinfo",
              "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  tree->write(slice + "/memory.max", "max\n");
  tree->write(slice + "/memory.current", bytes(900));
  tree->write(slice + "/memory.stat", stat_v2());
  tree->write(service + "/memory.max", bytes(1000));
  tree->write(service + "/memory.current", bytes(600));
  tree->write(service + "/memory.stat", stat_v2());
}

std::string stat_v1(uint64_t limit_megabytes) {
  return "inactive_file 1\ntotal_inactive_file " + bytes(70) +
         "total_active_file " + bytes(20) + "total_dirty " + bytes(5) +
         "total_writeback " + bytes(10) + "total_mapped_file " + bytes(15) +
         "hierarchical_memory_limit " + bytes(limit_megabytes);
}

void write_v1(File_tree *tree) {
  tree->write("/proc/meminfo", "MemTotal:        8388608 kB\n");
  tree->write("/proc/self/cgroup", "4:memory:/slice/mysql\n");
  tree->write("/proc/self/mountinfo",
              "35 31 0:32 / /sys/fs/cgroup rw - cgroup cgroup rw,memory\n");
  tree->write(slice + "/memory.limit_in_bytes", "9223372036854771712\n");
  tree->write(slice + "/memory.usage_in_bytes", bytes(900));
  tree->write(slice + "/memory.stat", stat_v1(1000));
  tree->write(service + "/memory.limit_in_bytes", bytes(1000));
  tree->write(service + "/memory.usage_in_bytes", bytes(600));
  tree->write(service + "/memory.stat", stat_v1(1000));
}

/** The files that `write` makes, and their reader. */
struct Tree : File_tree {
  explicit Tree(void (*write)(File_tree *)) { write(this); }
  Limit_figures read(uint64_t time_us) { return reader.read(time_us); }

  Limit_reader reader{at("")};
};

TEST(LimitReader, Version2) {
  Tree tree(write_v2);
  const Limit_figures figures = tree.read(0);
  EXPECT_EQ(8192 * mb, figures.machine_bytes);
  EXPECT_EQ(1000 * mb, figures.group_limit_bytes);
  EXPECT_EQ(1000 * mb, limit_bytes(figures));
  EXPECT_EQ(service, figures.folder);
  EXPECT_EQ(service + "/memory.current", figures.usage_file);
  EXPECT_EQ(540 * mb, figures.kept_bytes);
  ASSERT_TRUE(figures.tightest);
  EXPECT_EQ(530 * mb, figures.tightest->usage_bytes);
}

TEST(LimitReader, CacheThatTheKernelCanDropIsRoom) {
  Tree tree(write_v2);
  const std::string cache = "anon 1\ninactive_file 0\nactive_file " +
                            bytes(500) +
                            "file_dirty 0\nfile_writeback 0\nfile_mapped 0\n";
  tree.write(service + "/memory.current", bytes(990));
  tree.write(service + "/memory.stat", cache);
  EXPECT_EQ(510 * mb, tree.read(0).room_bytes);
  EXPECT_EQ(510 * mb, tree.read(0).tightest->limit_bytes -
                          tree.read(0).tightest->usage_bytes);
  // That of a group above, too.
  tree.write(slice + "/memory.max", bytes(1500));
  tree.write(slice + "/memory.current", bytes(1600));
  tree.write(slice + "/memory.stat", cache);
  EXPECT_EQ(400 * mb, tree.read(1).room_bytes);
}

TEST(LimitReader, Version1) {
  Tree tree(write_v1);
  Limit_figures figures = tree.read(0);
  EXPECT_EQ(1000 * mb, figures.group_limit_bytes);
  EXPECT_EQ(service + "/memory.usage_in_bytes", figures.usage_file);
  EXPECT_EQ(540 * mb, figures.kept_bytes);
  // A limit of a group that cannot be seen.
  tree.write(service + "/memory.stat", stat_v1(800));
  figures = tree.read(1);
  EXPECT_EQ(800 * mb, figures.group_limit_bytes);
  EXPECT_EQ(service, figures.folder);
  EXPECT_EQ(540 * mb, figures.kept_bytes);
}

TEST(LimitReader, ALimitThatIsChangedCountsAtOnce) {
  Tree v2(write_v2);
  EXPECT_EQ(1000 * mb, v2.read(0).group_limit_bytes);
  v2.write(service + "/memory.max", bytes(700));
  EXPECT_EQ(700 * mb, v2.read(1).group_limit_bytes);
  v2.write(service + "/memory.max", "max\n");
  Limit_figures figures = v2.read(2);
  EXPECT_FALSE(figures.group_limit_bytes);
  EXPECT_EQ(8192 * mb, limit_bytes(figures));
  EXPECT_EQ(540 * mb, figures.kept_bytes) << "without a limit the own group's";
  // The group above gets the lowest limit: its use counts, that of all in it.
  v2.write(slice + "/memory.max", bytes(950));
  figures = v2.read(3);
  EXPECT_EQ(950 * mb, figures.group_limit_bytes);
  EXPECT_EQ(slice, figures.folder);
  EXPECT_EQ(840 * mb, figures.kept_bytes);

  Tree v1(write_v1);
  EXPECT_EQ(1000 * mb, v1.read(0).group_limit_bytes);
  v1.write(service + "/memory.limit_in_bytes", bytes(700));
  v1.write(service + "/memory.stat", stat_v1(700));
  EXPECT_EQ(700 * mb, v1.read(1).group_limit_bytes);
  v1.write(slice + "/memory.limit_in_bytes", bytes(650));
  v1.write(service + "/memory.stat", stat_v1(650));
  figures = v1.read(2);
  EXPECT_EQ(650 * mb, figures.group_limit_bytes);
  EXPECT_EQ(slice, figures.folder);
  EXPECT_EQ(840 * mb, figures.kept_bytes);
}

TEST(LimitReader, ALimitThatThrottles) {
  Tree tree(write_v2);
  Limit_reader reader(tree.at(""), Limits::kill_or_throttle);
  EXPECT_EQ(1000 * mb, reader.read(0).group_limit_bytes);
  tree.write(service + "/memory.high", bytes(800));
  Limit_figures figures = reader.read(1);
  EXPECT_EQ(800 * mb, figures.group_limit_bytes);
  ASSERT_TRUE(figures.tightest);
  EXPECT_EQ(800 * mb, figures.tightest->limit_bytes);
  EXPECT_EQ(1000 * mb, tree.read(1).group_limit_bytes) << "nothing is killed";
  // The group above has less room.
  tree.write(slice + "/memory.high", bytes(950));
  figures = reader.read(2);
  EXPECT_EQ(800 * mb, figures.group_limit_bytes);
  EXPECT_EQ(slice + "/memory.current", figures.tightest->usage_file);
  tree.write(slice + "/memory.high", "max\n");
  tree.write(service + "/memory.high", "max\n");
  EXPECT_EQ(1000 * mb, reader.read(3).group_limit_bytes);
  tree.write(service + "/memory.high", "many\n");
  EXPECT_FALSE(reader.read(4).group_limit_bytes);
}

TEST(LimitReader, TheServerIsMovedToAnotherGroup) {
  Tree tree(write_v2);
  EXPECT_EQ(1000 * mb, tree.read(0).group_limit_bytes);
  tree.write("/proc/self/cgroup", "0::/other\n");
  tree.write(top + "/other/memory.max", bytes(300));
  tree.write(top + "/other/memory.current", bytes(200));
  tree.write(top + "/other/memory.stat", stat_v2());
  const Limit_figures figures = tree.read(1);
  EXPECT_EQ(300 * mb, figures.group_limit_bytes);
  EXPECT_EQ(140 * mb, figures.kept_bytes);
}

struct Placed {
  /** The text of /proc/self/cgroup. */
  const char *membership;
  /** The text of /proc/self/mountinfo. */
  const char *mounts;
};

TEST(LimitReader, AGroupThatNoMountShowsMayHaveAnyLimit) {
  constexpr const char *v1_mount =
      "35 31 0:32 /../.. /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
  for (const Placed &placed :
       {// A namespace of its own, with the host's tree.
        Placed{"4:memory:/\n0::/\n", v1_mount},
        Placed{"0::/\n",
               "31 23 0:28 /../.. /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"},
        // Moved out of the namespace.
        Placed{"0::/../other\n",
               "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"},
        // Another container's.
        Placed{"4:memory:/docker/1\n",
               "35 31 0:32 /docker/2 /cg rw - cgroup cgroup rw,memory\n"},
        // No group is mounted.
        Placed{"4:memory:/a\n",
               "32 31 0:29 /b /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"},
        // Another file system shows a container's groups there.
        Placed{"0::/lxc/1\n",
               "31 23 0:28 / /sys/fs/cgroup rw - fuse.lxcfs lxcfs rw\n"},
        // A text of another form.
        Placed{"memory\n", v1_mount}}) {
    SCOPED_TRACE(std::string(placed.membership) + placed.mounts);
    Tree tree(write_v2);
    tree.write("/proc/meminfo",
               "MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\n");
    const auto texts = tree.texts();
    ASSERT_EQ(1000 * mb, limit_bytes(tree.read(0)));
    tree.write("/proc/self/cgroup", placed.membership);
    tree.write("/proc/self/mountinfo", placed.mounts);
    for (const uint64_t now_us : {60 * second, 61 * second, 121 * second}) {
      const Limit_figures figures = tree.read(now_us);
      EXPECT_TRUE(figures.is_unsure);
      EXPECT_FALSE(limit_bytes(figures) || figures.room_bytes);
      EXPECT_EQ(8192 * mb, figures.machine_bytes);
    }
    // While the membership cannot be read, it is as before.
    tree.make_unreadable("/proc/self/cgroup");
    EXPECT_TRUE(tree.read(122 * second).is_unsure);
    tree.remove("/proc/self/cgroup");
    for (const char *const file : {"/proc/self/cgroup", "/proc/self/mountinfo"})
      tree.write(file, texts.at(file));
    EXPECT_EQ(1000 * mb, limit_bytes(tree.read(123 * second)));
  }
}

TEST(LimitReader, WithoutAMountOfMemoryGroupsTheMachineIsTheLimit) {
  const char *const unified =
      "41 31 0:38 /../.. /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
  for (const Placed &placed :
       {Placed{"0::/\n", ""}, Placed{"", ""}, Placed{"", unified},
        Placed{"4:cpu:/a\n", unified}, Placed{"4:memory:/\n0::/\n", unified}}) {
    SCOPED_TRACE(std::string(placed.membership) + placed.mounts);
    Tree tree(write_v2);
    tree.write("/proc/self/cgroup", placed.membership);
    tree.write("/proc/self/mountinfo", placed.mounts);
    const Limit_figures figures = tree.read(0);
    EXPECT_FALSE(figures.is_unsure);
    EXPECT_EQ(8192 * mb, limit_bytes(figures));
  }
}

/** Machines and containers as they are. */
TEST(LimitReader, WhereServersRunTheLimitIsKnown) {
  const std::string v1 = " rw - cgroup cgroup rw,memory\n";
  const std::string v2 = " rw - cgroup2 cgroup2 rw\n";
  struct Case {
    const char *where;
    const char *membership;
    std::string mounts;
    std::string folder;
  };
  for (const Case &c : {
           Case{"systemd", "0::/system.slice/mysql.service\n",
                "31 23 0:28 / /cg" + v2, "/cg/system.slice/mysql.service"},
           Case{"systemd, both versions",
                "4:memory:/system.slice/mysql.service\n"
                "0::/system.slice/mysql.service\n",
                "35 31 0:32 / /cg" + v1 + "41 31 0:38 / /unified" + v2,
                "/cg/system.slice/mysql.service"},
           Case{"docker, own namespace", "0::/\n", "31 23 0:28 / /cg" + v2,
                "/cg"},
           Case{"docker, the host's namespace",
                "0::/system.slice/docker-1.scope\n", "31 23 0:28 / /cg" + v2,
                "/cg/system.slice/docker-1.scope"},
           Case{"docker, version 1, own namespace", "4:memory:/\n",
                "35 31 0:32 / /cg" + v1, "/cg"},
           Case{"docker, version 1, the host's namespace",
                "4:memory:/docker/1\n0::/\n",
                "35 31 0:32 /docker/1 /cg" + v1 + "41 31 0:38 / /unified" + v2,
                "/cg"},
           Case{"systemd-nspawn", "0::/payload/mysql.service\n",
                "31 23 0:28 / /cg" + v2, "/cg/payload/mysql.service"},
           Case{"the host's tree beside its own", "0::/\n",
                "30 23 0:28 /.. /host" + v2 + "31 23 0:28 / /cg" + v2 +
                    "32 23 0:28 /.. /host2" + v2,
                "/cg"},
       }) {
    SCOPED_TRACE(c.where);
    Tree tree(write_v2);
    tree.write("/proc/self/cgroup", c.membership);
    tree.write("/proc/self/mountinfo", c.mounts);
    for (const char *const file : {"/memory.max", "/memory.limit_in_bytes"})
      tree.write(c.folder + file, bytes(500));
    const Limit_figures figures = tree.read(0);
    EXPECT_FALSE(figures.is_unsure);
    EXPECT_EQ(500 * mb, limit_bytes(figures));
    EXPECT_EQ(c.folder, figures.folder);
  }
}

TEST(LimitReader, FilesThatVanish) {
  Tree tree(write_v2);
  ASSERT_TRUE(tree.read(0).kept_bytes);
  tree.remove(service + "/memory.stat");
  Limit_figures figures = tree.read(1);
  EXPECT_EQ(1000 * mb, figures.group_limit_bytes);
  EXPECT_FALSE(figures.kept_bytes);
  tree.remove(service + "/memory.current");
  figures = tree.read(2);
  EXPECT_EQ("", figures.usage_file);
  EXPECT_FALSE(figures.kept_bytes);
  // The whole hierarchy, while the kernel still names the group.
  tree.remove(top);
  figures = tree.read(3);
  EXPECT_FALSE(figures.group_limit_bytes);
  EXPECT_FALSE(figures.tightest);
  EXPECT_EQ(8192 * mb, limit_bytes(figures));
  // It is there again, elsewhere: the next read() finds it.
  tree.write("/proc/self/mountinfo",
             "31 23 0:28 / /mnt/groups rw - cgroup2 cgroup2 rw\n");
  tree.write("/mnt/groups/slice/mysql/memory.max", bytes(400));
  EXPECT_EQ(400 * mb, tree.read(4).group_limit_bytes);
}

TEST(LimitReader, WhatIsNotKnownIsEmpty) {
  Tree tree(write_v2);
  const std::string lines[] = {"inactive_file", "active_file", "file_dirty",
                               "file_writeback", "file_mapped"};
  for (const std::string &line : lines) {
    std::string text = stat_v2();
    text.replace(text.find('\n' + line), 2, "\nx");
    tree.write(service + "/memory.stat", text);
    EXPECT_FALSE(tree.read(0).kept_bytes) << line;
  }
  tree.write(service + "/memory.stat", stat_v2());
  for (const char *const text : {"", "x\n", "-1\n", "18446744073709551616\n"}) {
    tree.write(service + "/memory.current", text);
    EXPECT_FALSE(tree.read(0).kept_bytes) << text;
    EXPECT_FALSE(tree.read(0).tightest) << text;
  }
  tree.write(service + "/memory.current", bytes(600));
  ASSERT_TRUE(tree.read(0).kept_bytes);
  tree.make_unreadable(service + "/memory.current");
  EXPECT_FALSE(tree.read(0).kept_bytes);
  tree.make_unreadable(service + "/memory.max");
  const Limit_figures figures = tree.read(0);
  EXPECT_FALSE(figures.group_limit_bytes);
  EXPECT_FALSE(figures.tightest);

  File_tree nothing;
  Limit_reader of_nothing(nothing.at(""));
  EXPECT_FALSE(limit_bytes(of_nothing.read(0)));
  EXPECT_FALSE(of_nothing.read(100 * second).kept_bytes);
}

/** A server without a descriptor to spare stays below its limit. */
TEST(LimitReader, ALimitThatCannotBeReadIsNotTheMachines) {
  for (auto *const write : {write_v1, write_v2}) {
    Tree tree(write);
    const auto texts = tree.texts();
    tree.write("/proc/meminfo", "MemAvailable: 4194304 kB\n");
    ASSERT_EQ(1000 * mb, limit_bytes(tree.read(0)));
    uint64_t now_us = 0;
    for (const auto &[file, text] : texts) {
      if (!file.starts_with("/proc/self") && file.find("max") == file.npos &&
          file.find("limit") == file.npos)
        continue;
      tree.make_unreadable(file);
      now_us += 60 * second;  // it looks for its group again
      const Limit_figures figures = tree.read(now_us);
      if (figures.is_unsure)
        EXPECT_FALSE(limit_bytes(figures) || figures.room_bytes) << file;
      else
        EXPECT_EQ(1000 * mb, figures.group_limit_bytes) << file;
      Limit_reader another(tree.at(""));
      const Limit_figures at_first = another.read(0);
      EXPECT_TRUE(at_first.is_unsure) << file;
      EXPECT_FALSE(at_first.room_bytes) << file;
      tree.remove(file);
      tree.write(file, text);
      EXPECT_EQ(1000 * mb, limit_bytes(tree.read(now_us + 1))) << file;
      EXPECT_EQ(1000 * mb, limit_bytes(another.read(1))) << file;
    }
  }
  // Version 1 tells limits of groups that cannot be seen there.
  Tree tree(write_v1);
  tree.make_unreadable(service + "/memory.stat");
  const Limit_figures figures = tree.read(0);
  EXPECT_TRUE(figures.is_unsure);
  EXPECT_FALSE(figures.room_bytes);
}

TEST(LimitReader, WhatCannotBeGivenBack) {
  const auto clean = [](uint64_t inactive, uint64_t active, uint64_t dirty,
                        uint64_t writeback, uint64_t mapped) {
    return kernel_text::clean_cache(
        "inactive_file " + std::to_string(inactive) + "\nactive_file " +
            std::to_string(active) + "\nfile_dirty " + std::to_string(dirty) +
            "\nfile_writeback " + std::to_string(writeback) + "\nfile_mapped " +
            std::to_string(mapped) + '\n',
        2);
  };
  EXPECT_EQ(30u, clean(10, 20, 0, 0, 0));
  EXPECT_EQ(24u, clean(10, 20, 1, 2, 3));
  EXPECT_EQ(0u, clean(10, 20, 0, 0, 31)) << "not below nothing";
  EXPECT_EQ(0u, clean(10, 20, 31, 7, 0));
  EXPECT_FALSE(clean(UINT64_MAX, 1, 0, 0, 0));
  EXPECT_FALSE(kernel_text::clean_cache("", 2));
  EXPECT_FALSE(kernel_text::clean_cache(stat_v2(), 1));
  EXPECT_FALSE(kernel_text::clean_cache(stat_v1(1), 2));
}

TEST(LimitReader, Fuzz) {
  std::mt19937 random(20261122);
  for (auto *const write : {write_v1, write_v2}) {
    File_tree tree;
    write(&tree);
    const auto texts = tree.texts();
    Limit_reader reader(tree.at(""));
    for (int i = 0; i < 30; ++i)
      for (const auto &[file, text] : texts) {
        tree.write(file, memdiag_test::mutate(text, &random));
        const Limit_figures figures = reader.read(i * 60 * second);
        if (figures.tightest) {
          EXPECT_LE(figures.tightest->usage_bytes,
                    figures.tightest->limit_bytes);
        }
        tree.write(file, text);
      }
  }
}

TEST(SafeLimit, MostOfTheLastMinuteAndSomeMore) {
  Safe_limit limit;
  EXPECT_FALSE(limit.bytes());
  limit.add(0, 160 * mb);
  EXPECT_EQ(192 * mb, limit.bytes()) << "32 MiB more";
  limit.add(second, 1600 * mb);
  EXPECT_EQ(1700 * mb, limit.bytes()) << "a sixteenth more";
  limit.add(2 * second, 800 * mb);
  limit.add(3 * second, 1200 * mb);
  limit.add(61 * second, 320 * mb);
  EXPECT_EQ(1700 * mb, limit.bytes()) << "a minute ago";
  limit.add(62 * second, 320 * mb);
  EXPECT_EQ(1275 * mb, limit.bytes()) << "the next highest";
  limit.add(200 * second, 320 * mb);
  EXPECT_EQ(352 * mb, limit.bytes());
  limit.add(200 * second, 0);
  EXPECT_EQ(352 * mb, limit.bytes());
}

TEST(SafeLimit, UnknownIsUnknown) {
  Safe_limit limit;
  limit.add(0, 160 * mb);
  limit.add(second, std::nullopt);
  EXPECT_FALSE(limit.bytes());
  limit.add(2 * second, 80 * mb);
  EXPECT_EQ(192 * mb, limit.bytes()) << "what was known still counts";
  limit.add(3 * second, UINT64_MAX);
  EXPECT_FALSE(limit.bytes()) << "more than there is";
}

TEST(Limits, ThisMachine) {
  const limits::Figures figures = limits::now(0);
  if (!figures.limit_bytes) GTEST_SKIP() << "without /proc";
  EXPECT_LT(0u, *figures.limit_bytes);
  if (figures.safe_source.empty()) GTEST_SKIP() << "without a control group";
  ASSERT_TRUE(figures.safe_bytes);
  EXPECT_LE(Safe_limit::least_rest_bytes, *figures.safe_bytes);
  // The server's growth counts, and is not known for a time.
  limits::set_growth([]() -> Reading { return uint64_t{1} << 40; });
  EXPECT_LT(uint64_t{1} << 40, limits::now(0).safe_bytes);
  limits::set_growth([]() -> Reading { return std::nullopt; });
  EXPECT_FALSE(limits::now(0).safe_bytes);
  EXPECT_TRUE(limits::now(0).limit_bytes);
  limits::set_growth(nullptr);
}

TEST(Limits, AReaderHoldsNobodyInMalloc) {
  if (limits::now(0).safe_source.empty())
    GTEST_SKIP() << "without a control group";
  EXPECT_TRUE(memdiag_test::others_go_on(
      [] {
        for (int i = 0; i < 500; ++i) (void)limits::now(UINT64_MAX);
      },
      [] { (void)limits::now(UINT64_MAX); }));
}

/** SHOW GLOBAL STATUS holds a mutex that each disconnect needs: it reads no
file while the sampler does. */
TEST(Limits, TheStatusVariableHasTheSamplersReading) {
  static uint64_t time_us;
  static unsigned readings;
  time_us = 1000 * second;
  readings = 0;
  set_clock_for_test([](clockid_t) { return time_us; });
  limits::set_growth([]() -> Reading {
    ++readings;
    return uint64_t{0};
  });
  (void)limits::now(0);  // as the sampler does
  const auto variable =
      std::find_if(status_variables.begin(), status_variables.end(),
                   [](const Status_variable &one) {
                     return one.name == std::string_view{"Memdiag_safe_limit"};
                   });
  ASSERT_NE(status_variables.end(), variable);
  time_us += second;
  (void)variable->value(Snapshot{});
  EXPECT_EQ(1u, readings);
  time_us += 2 * second;
  (void)variable->value(Snapshot{});
  EXPECT_EQ(2u, readings) << "without the sampler";
  limits::set_growth(nullptr);
  set_clock_for_test(nullptr);
}

}  // namespace
}  // namespace memdiag::host
