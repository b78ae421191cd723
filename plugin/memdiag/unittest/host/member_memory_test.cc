/*
  The memory by which a group's member is judged, on trees of files: the
  machine's and the control group's, before and after a purge.
*/

#include "plugin/memdiag/host/member_memory.h"

#include <gtest/gtest.h>

#include <string>

#include "mysys/memdiag/unittest/file_tree.h"

namespace memdiag::member_memory {
namespace {

using memdiag_test::File_tree;

constexpr uint64_t mb = 1 << 20;
const std::string group = "/sys/fs/cgroup/mysql";

class Member_memory : public testing::Test {
 protected:
  void SetUp() override {
    machine(8000, 6000);
    m_tree.write("/proc/self/cgroup", "0::/mysql\n");
    m_tree.write("/proc/self/mountinfo",
                 "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    limit("max");
    uses(900);
  }
  void machine(uint64_t total, uint64_t available) {
    m_tree.write("/proc/meminfo",
                 "MemTotal: " + std::to_string(total << 10) +
                     " kB\nMemAvailable: " + std::to_string(available << 10) +
                     " kB\n");
  }
  void limit(const std::string &text) {
    m_tree.write(group + "/memory.max", text + '\n');
  }
  /** 100 MB of it are clean page cache. */
  void uses(uint64_t megabytes) {
    m_tree.write(group + "/memory.current",
                 std::to_string(megabytes * mb) + '\n');
    const std::string cache = std::to_string(100 * mb);
    m_tree.write(group + "/memory.stat",
                 "anon 1\nfile " + cache + "\ninactive_file " + cache +
                     "\nactive_file 0\nfile_dirty 0\nfile_writeback 0\n"
                     "file_mapped 0\n");
  }

  File_tree m_tree;
  unsigned m_purges = 0;
  uint64_t m_after_purge = 0;
  Reader m_reader{[this] {
                    ++m_purges;
                    if (m_after_purge != 0) uses(m_after_purge);
                  },
                  m_tree.at("")};
};

TEST_F(Member_memory, WithoutAGroupsLimitIsTheMachines) {
  const auto found = m_reader.read(0, 80);
  ASSERT_TRUE(found);
  EXPECT_EQ(8000 * mb, found->total_bytes);
  EXPECT_EQ(6000 * mb, found->available_bytes);
  EXPECT_EQ(25u, used_percent(*found));
  EXPECT_EQ(0u, m_purges);
}

TEST_F(Member_memory, IsTheGroupsWhereThatHasALimit) {
  limit(std::to_string(1000 * mb));
  const auto found = m_reader.read(0, 80);
  ASSERT_TRUE(found);
  EXPECT_EQ(1000 * mb, found->total_bytes);
  EXPECT_EQ(200 * mb, found->available_bytes);
  EXPECT_EQ(80u, used_percent(*found));
  EXPECT_EQ(0u, m_purges) << "80% is not above 80";
}

TEST_F(Member_memory, IsPurgedBeforeItIsJudged) {
  limit(std::to_string(1000 * mb));
  uses(1000);
  m_after_purge = 700;
  const auto found = m_reader.read(0, 80);
  ASSERT_TRUE(found);
  EXPECT_EQ(1u, m_purges);
  EXPECT_EQ(60u, used_percent(*found));
}

TEST_F(Member_memory, StaysAboveWhereAPurgeDoesNotHelp) {
  limit(std::to_string(1000 * mb));
  uses(1000);
  const auto found = m_reader.read(0, 80);
  ASSERT_TRUE(found);
  EXPECT_EQ(1u, m_purges);
  EXPECT_EQ(90u, used_percent(*found));
}

TEST_F(Member_memory, IsNotPurgedIfNobodyJudges) {
  limit(std::to_string(1000 * mb));
  uses(1090);
  EXPECT_EQ(99u, used_percent(*m_reader.read(0, 0)));
  EXPECT_EQ(0u, m_purges);
}

/** A neighbour takes the machine's memory: what is left is left for all. */
TEST_F(Member_memory, IsNeverMoreThanTheMachineHas) {
  limit(std::to_string(1000 * mb));
  machine(8000, 50);
  EXPECT_EQ(50 * mb, m_reader.read(0, 0)->available_bytes);
}

TEST_F(Member_memory, IsNotKnownWithoutFiles) {
  limit(std::to_string(1000 * mb));
  m_tree.remove(group + "/memory.stat");
  EXPECT_FALSE(m_reader.read(0, 80));
  m_tree.write("/proc/meminfo", "");
  limit("max");
  EXPECT_FALSE(m_reader.read(0, 80));
  EXPECT_EQ(0u, m_purges);
}

TEST(UsedPercent, IsRoundedAsTheComponentDoes) {
  EXPECT_EQ(0u, used_percent({0, 0}));
  EXPECT_EQ(0u, used_percent({1000, 1000}));
  EXPECT_EQ(0u, used_percent({1000, 996}));
  EXPECT_EQ(1u, used_percent({1000, 994}));
  EXPECT_EQ(100u, used_percent({1000, 0}));
}

}  // namespace
}  // namespace memdiag::member_memory
