/* CPU quotas of control groups, in files that the test writes. */

#include "mysys/memdiag/pools/cpu_quota.h"

#include <gtest/gtest.h>

#include <string>

#include "mysys/memdiag/pools/cpus.h"
#include "mysys/memdiag/pools/sharing.h"
#include "mysys/memdiag/unittest/file_tree.h"

namespace memdiag_test {

namespace pools = memdiag::pools;
using pools::no_quota;

class Cpu_quota : public testing::Test, protected File_tree {
 protected:
  unsigned cpus() const { return pools::cpus_of_quota(at("").c_str()); }

  void version_2(const std::string &path, const std::string &mount_root) {
    write("/proc/self/cgroup", "0::" + path + "\n");
    write("/proc/self/mountinfo",
          "22 1 0:20 / /proc rw - proc proc rw\n"
          "30 23 0:26 " +
              mount_root +
              " /cg rw,nosuid shared:4 - cgroup2 cgroup2 "
              "rw,nsdelegate\n");
  }
  void version_1() {
    write("/proc/self/cgroup",
          "5:memory:/pod/m\n4:cpuset:/\n3:cpu,cpuacct:/pod/c\n0::/\n");
    write("/proc/self/mountinfo",
          "31 23 0:28 / /cg/set rw - cgroup cgroup rw,cpuset\n"
          "32 23 0:29 / /cg/cpu rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
          "33 23 0:30 / /cg/unified rw - cgroup2 cgroup2 rw\n");
  }
};

TEST_F(Cpu_quota, NothingToReadIsNoQuota) {
  EXPECT_EQ(no_quota, cpus());
  version_2("/", "/");
  EXPECT_EQ(no_quota, cpus());
  remove("/proc/self/mountinfo");
  EXPECT_EQ(no_quota, cpus());
}

TEST_F(Cpu_quota, TwiceTheQuotaRoundedUp) {
  version_2("/", "/");
  const auto of = [this](const char *text) {
    write("/cg/cpu.max", text);
    return cpus();
  };
  EXPECT_EQ(no_quota, of("max 100000\n"));
  EXPECT_EQ(4u, of("200000 100000\n"));
  EXPECT_EQ(3u, of("150000 100000\n"));
  EXPECT_EQ(4u, of("150001 100000\n"));
  EXPECT_EQ(1u, of("1000 100000\n"));
  EXPECT_EQ(128u, of("3200000 50000\n"));
  // 18446744073709551615 is the largest number.
  EXPECT_EQ(no_quota, of("18446744073709551615 100000\n"));
  EXPECT_EQ(no_quota, of("18446744073709551616 100000\n"));
  EXPECT_EQ(no_quota, of("4000000000000000000 1\n"));
}

TEST_F(Cpu_quota, TextThatIsNotUnderstoodIsNoQuota) {
  version_2("/", "/");
  for (const char *const text :
       {"", "\n", "200000\n", "200000 \n", "200000 0\n", "0 100000\n",
        "-1 100000\n", "200000 100000 1\n", "2e5 100000\n"}) {
    write("/cg/cpu.max", text);
    EXPECT_EQ(no_quota, cpus()) << text;
  }
}

TEST_F(Cpu_quota, TheLowestOfAllGroupsAbove) {
  version_2("/kube/pod/app", "/");
  write("/cg/kube/pod/app/cpu.max", "800000 100000\n");
  EXPECT_EQ(16u, cpus());
  write("/cg/kube/cpu.max", "300000 100000\n");
  EXPECT_EQ(6u, cpus());
  write("/cg/kube/pod/cpu.max", "max 100000\n");
  EXPECT_EQ(6u, cpus());
  write("/cg/kube/pod/app/cpu.max", "100000 100000\n");
  EXPECT_EQ(2u, cpus());
  write("/cg/kube/pod/app/cpu.max", "max 100000\n");
  EXPECT_EQ(6u, cpus());
  // A sibling, and what lies above the mount.
  write("/cg/kube/other/cpu.max", "1000 100000\n");
  write("/cpu.max", "1000 100000\n");
  EXPECT_EQ(6u, cpus());
}

/** A container without a namespace of its own sees its own group mounted. */
TEST_F(Cpu_quota, MountOfAGroup) {
  version_2("/docker/abc", "/docker/abc");
  write("/cg/cpu.max", "200000 100000\n");
  EXPECT_EQ(4u, cpus());
  version_2("/docker/abc/below", "/docker/abc");
  write("/cg/below/cpu.max", "50000 100000\n");
  EXPECT_EQ(1u, cpus());
  // Another group's mount.
  for (const char *const other : {"/docker/ab", "/docker/abcd", "/.."}) {
    version_2("/docker/abc", other);
    EXPECT_EQ(no_quota, cpus()) << other;
  }
  version_2("/../abc", "/");
  EXPECT_EQ(no_quota, cpus());
}

TEST_F(Cpu_quota, VersionOne) {
  version_1();
  EXPECT_EQ(no_quota, cpus());
  write("/cg/cpu/pod/c/cpu.cfs_quota_us", "-1\n");
  write("/cg/cpu/pod/c/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(no_quota, cpus());
  write("/cg/cpu/pod/cpu.cfs_quota_us", "250000\n");
  EXPECT_EQ(no_quota, cpus()) << "a quota without its period";
  write("/cg/cpu/pod/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(5u, cpus());
  write("/cg/cpu/pod/c/cpu.cfs_quota_us", "50000\n");
  EXPECT_EQ(1u, cpus());
  // The hierarchy of version 2 does not have the controller then.
  write("/cg/unified/cpu.max", "1000 100000\n");
  write("/cg/cpu/pod/c/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(5u, cpus());
}

/** Hosts of containers have thousands of mounts, some with long options. */
TEST_F(Cpu_quota, ManyAndLongMounts) {
  version_2("/", "/");
  write("/cg/cpu.max", "200000 100000\n");
  std::string mounts;
  for (unsigned length = 4000; length < 4200; ++length)
    mounts += "40 23 0:9 / /over rw - overlay overlay lowerdir=" +
              std::string(length, 'x') + '\n';
  mounts += std::string(20000, 'y') + '\n';
  const std::string cgroup = "30 23 0:26 / /cg rw - cgroup2 cgroup2 rw\n";
  write("/proc/self/mountinfo", mounts + cgroup + mounts);
  EXPECT_EQ(4u, cpus());
  write("/proc/self/cgroup", "0::/" + std::string(5000, 'z') + "\n");
  EXPECT_EQ(no_quota, cpus());
  // The group's path fits, but not behind that of the mount.
  write("/proc/self/cgroup", "0::/" + std::string(4085, 'z') + "\n");
  EXPECT_EQ(no_quota, cpus()) << "not that of a group above it";
}

/** Other programs of tests end that before they begin. */
TEST(Sharing, AllCpusShareOneArenaAtFirst) {
  EXPECT_TRUE(pools::shares_one_arena());
  pools::share_one_arena(false);
  EXPECT_FALSE(pools::shares_one_arena());
  pools::share_one_arena(true);
  EXPECT_TRUE(pools::shares_one_arena());
}

/** The last mount covers those before. */
TEST_F(Cpu_quota, TwoMounts) {
  write("/proc/self/cgroup", "0::/\n");
  write("/proc/self/mountinfo",
        "30 23 0:26 / /first rw - cgroup2 cgroup2 rw\n"
        "31 23 0:26 / /second rw - cgroup2 cgroup2 rw\n");
  write("/first/cpu.max", "100000 100000\n");
  write("/second/cpu.max", "200000 100000\n");
  EXPECT_EQ(4u, cpus());
}

TEST_F(Cpu_quota, CpusShareTheShards) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (unsigned cpu = 0; cpu < 64; ++cpu) CPU_SET(cpu, &set);
  pools::map_cpus(&set, sizeof set, 4);
  EXPECT_EQ(4u, pools::allowed_cpus());
  EXPECT_EQ(4u, pools::stand_in_shards().distance);
  EXPECT_EQ(4u * (1 + pools::stand_ins), pools::stand_in_shards().end);
  for (unsigned cpu = 0; cpu < 64; ++cpu)
    EXPECT_EQ(cpu % 4, pools::detail::shard_of_cpu[cpu]);
  for (unsigned cpu = 64; cpu < pools::detail::max_cpus; ++cpu)
    EXPECT_LT(pools::detail::shard_of_cpu[cpu], 4u);
  // More than the CPUs is no limit.
  pools::map_cpus(&set, sizeof set, 65);
  EXPECT_EQ(64u, pools::allowed_cpus());
  EXPECT_EQ(63u, pools::detail::shard_of_cpu[63]);
  pools::map_allowed_cpus();
}

}  // namespace memdiag_test
