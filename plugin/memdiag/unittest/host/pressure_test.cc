/*
  The gauge on trees of files that the tests write: both versions of control
  groups, without limit, without pressure stall information, without control
  groups, unreadable; and on the machine that runs the test.
*/

#include "plugin/memdiag/host/pressure.h"

#include <gtest/gtest.h>

#include <string>

#include "plugin/memdiag/unittest/file_tree.h"

namespace memdiag::pressure {
namespace {

using memdiag_test::File_tree;

constexpr uint64_t mb = 1 << 20;
constexpr uint64_t second = 1000000;
constexpr unsigned percent = 90;

const std::string group = "/sys/fs/cgroup/mysql/";

void write_machine(File_tree *tree) {
  tree->write("/proc/meminfo",
              "MemTotal:        1048576 kB\nMemFree:           10240 kB\n"
              "MemAvailable:     262144 kB\n");
}

void write_stalls(File_tree *tree, const std::string &file, uint64_t some_us) {
  tree->write(file, "some avg10=0.00 avg60=0.00 avg300=0.00 total=" +
                        std::to_string(some_us) +
                        "\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n");
}

void write_v2(File_tree *tree, const std::string &limit) {
  tree->write("/proc/self/cgroup", "0::/mysql\n");
  tree->write("/proc/self/mountinfo",
              "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  tree->write(group + "memory.max", limit + "\n");
  tree->write(group + "memory.current", std::to_string(480 * mb) + "\n");
  tree->write(group + "memory.stat", "anon 1\nfile 1\ninactive_file " +
                                         std::to_string(100 * mb) +
                                         "\nactive_file 5\n");
}

void write_v1(File_tree *tree) {
  tree->write("/proc/self/cgroup", "4:memory:/mysql\n");
  tree->write("/proc/self/mountinfo",
              "35 31 0:32 / /sys/fs/cgroup rw - cgroup cgroup rw,memory\n");
  tree->write(group + "memory.limit_in_bytes", std::to_string(512 * mb) + "\n");
  tree->write(group + "memory.usage_in_bytes", std::to_string(480 * mb) + "\n");
  tree->write(group + "memory.stat",
              "inactive_file 1\nhierarchical_memory_limit " +
                  std::to_string(512 * mb) + "\ntotal_inactive_file " +
                  std::to_string(100 * mb) + "\n");
}

TEST(Pressure, IsAbove) {
  EXPECT_FALSE(is_above({}, 90));
  EXPECT_FALSE(is_above({.used_bytes = 100}, 90));
  EXPECT_FALSE(is_above({.limit_bytes = 100}, 90));
  EXPECT_FALSE(is_above({.used_bytes = 89, .limit_bytes = 100}, 90));
  EXPECT_TRUE(is_above({.used_bytes = 90, .limit_bytes = 100}, 90));
  EXPECT_TRUE(is_above({.used_bytes = 100, .limit_bytes = 100}, 100));
  EXPECT_FALSE(is_above({.used_bytes = 100, .limit_bytes = 100}, 0));
  EXPECT_TRUE(
      is_above({.used_bytes = UINT64_MAX, .limit_bytes = UINT64_MAX}, 100));
}

TEST(Pressure, ControlGroupVersion2) {
  File_tree tree;
  write_machine(&tree);
  write_v2(&tree, std::to_string(512 * mb));
  write_stalls(&tree, "/proc/pressure/memory", 1);
  write_stalls(&tree, group + "memory.pressure", 1000);
  Gauge gauge(tree.at(""));
  const Figures figures = gauge.read(0, percent);
  EXPECT_EQ(512 * mb, figures.limit_bytes);
  EXPECT_EQ(380 * mb, figures.used_bytes) << "page cache is not used";
  EXPECT_EQ(0.0, figures.stall_percent) << "nothing to compare it with";
  EXPECT_EQ(group + "memory.current", gauge.usage_file());
  EXPECT_EQ(group + "memory.pressure", gauge.stall_file());
  // 480 of 512 are 93.75 percent.
  EXPECT_EQ(480 * mb, gauge.read(1, 94).used_bytes)
      << "memory.stat is not asked";
  EXPECT_EQ(380 * mb, gauge.read(2, 93).used_bytes);
}

TEST(Pressure, TheLowestLimitIsOfAGroupAbove) {
  File_tree tree;
  write_v2(&tree, "max");
  tree.write("/proc/self/cgroup", "0::/mysql/one\n");
  tree.write(group + "one/memory.max", std::to_string(900 * mb));
  tree.write(group + "one/memory.current", "1");
  tree.write(group + "memory.max", std::to_string(500 * mb));
  Gauge gauge(tree.at(""));
  EXPECT_EQ(500 * mb, gauge.read(0, percent).limit_bytes);
  EXPECT_EQ(380 * mb, gauge.read(0, percent).used_bytes);
}

TEST(Pressure, TheGroupWithLeastRoomIsWatched) {
  File_tree tree;
  write_v2(&tree, "max");
  tree.write("/proc/self/cgroup", "0::/mysql/one\n");
  tree.write(group + "one/memory.max", std::to_string(300 * mb));
  tree.write(group + "one/memory.current", "1");
  tree.write(group + "memory.max", std::to_string(500 * mb));
  Gauge gauge(tree.at(""));
  EXPECT_EQ(500 * mb, gauge.read(0, percent).limit_bytes);
  EXPECT_EQ(380 * mb, gauge.read(0, percent).used_bytes);
  EXPECT_EQ(group + "memory.current", gauge.usage_file());
}

TEST(Pressure, ControlGroupVersion1) {
  File_tree tree;
  write_machine(&tree);
  write_v1(&tree);
  write_stalls(&tree, "/proc/pressure/memory", 1);
  Gauge gauge(tree.at(""));
  const Figures figures = gauge.read(0, percent);
  EXPECT_EQ(512 * mb, figures.limit_bytes);
  EXPECT_EQ(380 * mb, figures.used_bytes);
  EXPECT_EQ("/proc/pressure/memory", gauge.stall_file());
}

TEST(Pressure, PageCacheThatIsNotKnownIsUsed) {
  File_tree tree;
  write_v2(&tree, std::to_string(512 * mb));
  Gauge gauge(tree.at(""));
  for (const char *const text : {"", "inactive_file\n", "inactive_file x\n"}) {
    tree.write(group + "memory.stat", text);
    EXPECT_EQ(480 * mb, gauge.read(0, percent).used_bytes) << text;
  }
  tree.make_unreadable(group + "memory.stat");
  EXPECT_EQ(480 * mb, gauge.read(0, percent).used_bytes);
  tree.remove(group + "memory.stat");
  tree.write(group + "memory.stat", "inactive_file 999999999999\n");
  EXPECT_EQ(0u, gauge.read(0, percent).used_bytes) << "not below nothing";
}

TEST(Pressure, WithoutALimitTheMachineCounts) {
  for (const char *const limit : {"max", "9999999999999"}) {
    File_tree tree;
    write_machine(&tree);
    write_v2(&tree, limit);
    Gauge gauge(tree.at(""));
    const Figures figures = gauge.read(0, percent);
    EXPECT_EQ(1024 * mb, figures.limit_bytes) << limit;
    EXPECT_EQ(768 * mb, figures.used_bytes);
    EXPECT_EQ("/proc/meminfo", gauge.usage_file());
    EXPECT_FALSE(figures.stall_percent);
    EXPECT_EQ("", gauge.stall_file());
  }
}

TEST(Pressure, NeitherPressureNorControlGroups) {
  File_tree tree;
  write_machine(&tree);
  Gauge gauge(tree.at(""));
  const Figures figures = gauge.read(0, percent);
  EXPECT_EQ(1024 * mb, figures.limit_bytes);
  EXPECT_EQ(768 * mb, figures.used_bytes);
  EXPECT_FALSE(figures.stall_percent);
}

TEST(Pressure, NothingAtAll) {
  File_tree tree;
  Gauge gauge(tree.at(""));
  for (const uint64_t now : {uint64_t{0}, 200 * second}) {
    const Figures figures = gauge.read(now, percent);
    EXPECT_FALSE(figures.used_bytes);
    EXPECT_FALSE(figures.limit_bytes);
    EXPECT_FALSE(figures.stall_percent);
  }
}

TEST(Pressure, WhatCannotBeReadIsUnknown) {
  File_tree tree;
  write_v2(&tree, std::to_string(512 * mb));
  write_stalls(&tree, group + "memory.pressure", 1000);
  Gauge gauge(tree.at(""));
  ASSERT_TRUE(gauge.read(0, percent).stall_percent);
  for (const char *const text : {"", "x", "-1", "18446744073709551615", "some",
                                 "some total=", "some total=x"}) {
    tree.write(group + "memory.current", text);
    tree.write(group + "memory.pressure", text);
    EXPECT_FALSE(gauge.read(1, percent).used_bytes) << text;
    EXPECT_FALSE(gauge.read(1, percent).stall_percent) << text;
  }
  tree.make_unreadable(group + "memory.current");
  tree.make_unreadable(group + "memory.pressure");
  EXPECT_FALSE(gauge.read(2, percent).used_bytes);
  EXPECT_FALSE(gauge.read(2, percent).stall_percent);

  File_tree machine;
  write_machine(&machine);
  Gauge of_machine(machine.at(""));
  ASSERT_TRUE(of_machine.read(0, percent).used_bytes);
  for (const char *const text : {"", "MemAvailable:\n", "MemAvailable: 1 MB\n",
                                 "MemAvailable: 9999999 kB\n"}) {
    machine.write("/proc/meminfo", text);
    EXPECT_FALSE(of_machine.read(1, percent).used_bytes) << text;
  }
}

TEST(Pressure, StallsOfTheLastSecond) {
  File_tree tree;
  const std::string file = "/proc/pressure/memory";
  write_stalls(&tree, file, 5000000);
  Gauge gauge(tree.at(""));
  const auto stalled = [&](uint64_t now_us, uint64_t total_us) {
    write_stalls(&tree, file, total_us);
    return gauge.read(now_us, percent).stall_percent.value_or(-1);
  };
  EXPECT_DOUBLE_EQ(0, stalled(0, 5000000));
  EXPECT_DOUBLE_EQ(2, stalled(second / 5, 5020000)) << "a second's two percent";
  EXPECT_DOUBLE_EQ(4, stalled(second * 2 / 5, 5040000));
  EXPECT_DOUBLE_EQ(10, stalled(second, 5100000));
  EXPECT_DOUBLE_EQ(8, stalled(second * 6 / 5, 5100000))
      << "since a second before: from 5020000";
  EXPECT_DOUBLE_EQ(0, stalled(second * 2, 5100000));
  // A reading that came late is over the time that there was.
  EXPECT_DOUBLE_EQ(50, stalled(second * 6, 7100000));
  gauge.forget_stalls();
  EXPECT_DOUBLE_EQ(0, stalled(second * 7, 8100000));
  EXPECT_DOUBLE_EQ(30, stalled(second * 7 + 1, 8400000));
  // Another group's, or a counter that begins anew.
  EXPECT_DOUBLE_EQ(0, stalled(second * 8, 10));
  EXPECT_DOUBLE_EQ(1, stalled(second * 9, 10010));
}

TEST(Pressure, ALimitThatIsChangedCountsWithinASecond) {
  File_tree tree;
  write_machine(&tree);
  write_v2(&tree, std::to_string(512 * mb));
  Gauge gauge(tree.at(""));
  EXPECT_EQ(512 * mb, gauge.read(0, percent).limit_bytes);
  tree.write(group + "memory.max", std::to_string(600 * mb));
  write_stalls(&tree, group + "memory.pressure", 1);
  EXPECT_EQ(600 * mb, gauge.read(second, percent).limit_bytes);
  EXPECT_FALSE(gauge.read(59 * second, percent).stall_percent);
  EXPECT_TRUE(gauge.read(60 * second, percent).stall_percent);

  // The group above, and version 1.
  tree.write("/proc/self/cgroup", "0::/mysql/one\n");
  tree.write(group + "one/memory.max", std::to_string(550 * mb));
  tree.write(group + "one/memory.current", "1");
  EXPECT_EQ(600 * mb, gauge.read(61 * second, percent).limit_bytes)
      << "it has least room";
  tree.write(group + "memory.max", std::to_string(500 * mb));
  EXPECT_EQ(500 * mb, gauge.read(62 * second, percent).limit_bytes);
  File_tree old;
  write_machine(&old);
  write_v1(&old);
  Gauge of_old(old.at(""));
  EXPECT_EQ(512 * mb, of_old.read(0, percent).limit_bytes);
  old.write(group + "memory.limit_in_bytes", std::to_string(490 * mb));
  old.write(group + "memory.stat",
            "hierarchical_memory_limit " + std::to_string(490 * mb) + "\n");
  EXPECT_EQ(490 * mb, of_old.read(second, percent).limit_bytes);
}

TEST(Pressure, ThisMachine) {
  Gauge gauge;
  const Figures figures = gauge.read(0, 1);
  if (!figures.limit_bytes) GTEST_SKIP() << "without /proc";
  ASSERT_TRUE(figures.used_bytes);
  EXPECT_LT(0u, *figures.limit_bytes);
  EXPECT_LE(*figures.used_bytes, *figures.limit_bytes + *figures.limit_bytes);
}

}  // namespace
}  // namespace memdiag::pressure
