/* Parsers of the kernel's texts: what they take, what they refuse, a fuzzer. */

#include "plugin/memdiag/host/kernel_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "plugin/memdiag/unittest/host/kernel_text_rules.h"
#include "plugin/memdiag/unittest/mutate.h"

namespace memdiag::kernel_text {
namespace {

TEST(KernelText, NumbersAreTheWholeText) {
  EXPECT_EQ(12u, number<uint64_t>(" 12\n"));
  EXPECT_EQ(UINT64_MAX, number<uint64_t>("18446744073709551615"));
  EXPECT_EQ(-1000, number<int64_t>("-1000\n"));
  EXPECT_EQ(0.25, number<double>("0.25"));
  for (const char *text : {"", " ", "x", "1x", "1 2", "-1", "+1", "0x10", "1.5",
                           "18446744073709551616"})
    EXPECT_FALSE(number<uint64_t>(text)) << text;
  for (const char *text : {"", "nan", "inf", "-inf", "1e5", "0.1.2", "."})
    EXPECT_FALSE(number<double>(text)) << text;
}

TEST(KernelText, AmountsAreMultipliedOut) {
  EXPECT_EQ(1024u, amount("       1 kB\n"));
  EXPECT_EQ(1u, amount("1\n"));
  EXPECT_EQ(0u, amount("0 kB"));
  for (const char *text :
       {"", "kB", " kB", "1 KB", "1 MB", "1kB", "18446744073709551615",
        "18014398509481984 kB", "9223372036854775807 kB"})
    EXPECT_FALSE(amount(text)) << text;
}

TEST(KernelText, LimitsThatAreNone) {
  EXPECT_EQ(unlimited, limit("max\n"));
  EXPECT_EQ(unlimited, limit("9223372036854771712\n")) << "pages of 4 KB";
  EXPECT_EQ(unlimited, limit("9223372036854710272\n")) << "pages of 64 KB";
  EXPECT_EQ(unlimited, limit("18446744073709551615\n"));
  EXPECT_EQ(0u, limit("0\n"));
  EXPECT_EQ(1u << 30, limit("1073741824\n"));
  for (const char *text : {"", "maximum", "-1", "1 kB", "18446744073709551616"})
    EXPECT_FALSE(limit(text)) << text;
}

TEST(KernelText, TheWordInBrackets) {
  EXPECT_EQ("madvise", chosen("always [madvise] never\n"));
  EXPECT_EQ("none", chosen("[none] mq-deadline kyber bfq\n"));
  EXPECT_EQ("none", chosen("none\n"));
  for (const char *text : {"", "\n", "never", "[]", "[ ]", "always madvise",
                           "]a[", "[a", "[a [b]", "[a b]"})
    EXPECT_FALSE(chosen(text)) << text;
}

TEST(KernelText, LinesByTheirKeys) {
  constexpr std::string_view text =
      "MemTotal:  7 kB\nanon_thp 1\nanon 2\nEmpty:\nsome avg10=0.50 total=9\n";
  EXPECT_EQ("7 kB", value_of(text, "MemTotal"));
  EXPECT_EQ("2", value_of(text, "anon"));
  EXPECT_EQ("", value_of(text, "Empty"));
  EXPECT_FALSE(value_of(text, "Mem"));
  EXPECT_FALSE(value_of(text, "7"));
  EXPECT_FALSE(value_of("", "anon"));
  EXPECT_FALSE(value_of("anon", "anon"));
  EXPECT_EQ(7u << 10, amount_of(text, "MemTotal"));
  for (const char *key : {"Empty", "Mem", "some"})
    EXPECT_FALSE(amount_of(text, key)) << key;
  const auto some = value_of(text, "some");
  ASSERT_TRUE(some);
  EXPECT_EQ("0.50", field(*some, "avg10"));
  EXPECT_EQ("9", field(*some, "total"));
  EXPECT_FALSE(field(*some, "avg"));
  EXPECT_FALSE(field(*some, "avg60"));
}

TEST(KernelText, WhatIsUsedWithoutCache) {
  constexpr const char *v2 =
      "anon 500\nfile 300\nslab_unreclaimable 40\nslab_reclaimable 20\n"
      "inactive_file 100\nactive_file 200\nslab 60\n";
  EXPECT_EQ(880u, without_cache(1000, v2, 2)) << "how much is clean?";
  EXPECT_EQ(980u, without_cache(1000, "slab_reclaimable 20\n", 2));
  EXPECT_EQ(900u,
            without_cache(1000, "inactive_file 100\nslab_reclaimable x\n", 2));
  EXPECT_EQ(0u, without_cache(119, v2, 2)) << "not below nothing";
  // Pages that are clean and that no process has mapped are not used, or not
  // idle ones.
  const auto with_mapped = [](const std::string &bytes) {
    return std::string(v2) + "file_dirty 5\nfile_writeback 5\nfile_mapped " +
           bytes + '\n';
  };
  EXPECT_EQ(710u, without_cache(1000, with_mapped("20"), 2));
  EXPECT_EQ(880u, without_cache(1000, with_mapped("250"), 2));
  // Version 1, with the groups below.
  constexpr const char *v1 = "inactive_file 1\ntotal_inactive_file 300\n";
  EXPECT_EQ(700u, without_cache(1000, v1, 1));
  EXPECT_EQ(200u, without_cache(1000,
                                v1 + std::string("total_active_file 500\n"
                                                 "total_dirty 0\n"
                                                 "total_writeback 0\n"
                                                 "total_mapped_file 0\n"),
                                1));
  // A missing figure is not subtracted.
  for (const char *nothing : {"", "inactive_file", "anon 1\nslab 7\n"})
    EXPECT_EQ(1000u, without_cache(1000, nothing, 2)) << nothing;
  // As much as a line can say of both.
  const std::string largest = std::to_string(UINT64_MAX >> 8);
  EXPECT_EQ(UINT64_MAX - 2 * (UINT64_MAX >> 8),
            without_cache(UINT64_MAX,
                          "inactive_file " + largest + "\nslab_reclaimable " +
                              largest + "\n",
                          2));
}

TEST(KernelText, StatOfAProgramWithAnyName) {
  constexpr std::string_view text =
      "7 (a) R (b c) S 1 7 7 0 -1 4194304 111 222 333 444 0\n";
  EXPECT_EQ("S", stat_field(text, 3));
  EXPECT_EQ("111", stat_field(text, 10));
  EXPECT_EQ("333", stat_field(text, 12));
  EXPECT_EQ("0", stat_field(text, 14));
  EXPECT_FALSE(stat_field(text, 15));
  EXPECT_FALSE(stat_field(text, 2));
  EXPECT_FALSE(stat_field("", 10));
  EXPECT_FALSE(stat_field("7 (a", 10));
}

TEST(KernelText, ListsOfNodes) {
  using List = std::vector<unsigned>;
  EXPECT_EQ((List{0}), nodes("0\n"));
  EXPECT_EQ((List{0, 1, 2, 5}), nodes("0-2,5\n"));
  EXPECT_EQ(1024u, nodes("0-1023")->size());
  for (const char *text : {"", "\n", ",", "a", "0-", "-1", "2-1", "1,1", "3,2",
                           "0-1024", "0-4294967295", "0,,1"})
    EXPECT_FALSE(nodes(text)) << text;
}

TEST(KernelText, Mounts) {
  const auto found = mount(
      "36 35 98:0 /a\\040b /mnt/c\\134d rw,noatime master:1 shared:2 - ext4 "
      "/dev/sda1 rw,errors=continue");
  ASSERT_TRUE(found);
  EXPECT_EQ("/a b", found->root);
  EXPECT_EQ("/mnt/c\\d", found->point);
  EXPECT_EQ("rw,noatime", found->options);
  EXPECT_EQ("ext4", found->type);
  EXPECT_EQ("rw,errors=continue", found->super_options);
  const auto without_source = mount("1 2 0:3 / /a rw - tmpfs  rw,size=1k");
  ASSERT_TRUE(without_source);
  EXPECT_EQ("rw,size=1k", without_source->super_options);
  for (const char *line : {"", "1 2 0:3 / / rw", "1 2 0:3 / / rw - ext4",
                           "1 2 0:3 / mnt rw - ext4 a rw", "- - - - - -"})
    EXPECT_FALSE(mount(line)) << line;
}

TEST(KernelText, WhichControlGroup) {
  const auto of = [](std::string_view text) {
    const auto found = memory_cgroup(text);
    return found ? std::to_string(found->version) + std::string{found->path}
                 : "?";
  };
  EXPECT_EQ("2/a:b", of("0::/a:b\n"));
  EXPECT_EQ("1/m", of("9:name=systemd:/s\n4:cpu,memory:/m\n0::/u\n"));
  EXPECT_EQ("1/m", of("0::/u\n4:memory:/m"));
  EXPECT_EQ("2/u", of("9:cpu:/c\n0::/u\n"));
  EXPECT_EQ("0", of("9:cpu:/c\n"));
  EXPECT_EQ("0", of(""));
  EXPECT_EQ("?", of("0::\n"));
  EXPECT_EQ("?", of("memory\n"));
  EXPECT_EQ("?", of("4:memory\n"));
}

TEST(KernelText, WhatLiesBelow) {
  EXPECT_EQ("/a/b", below("/", "/a/b"));
  EXPECT_EQ("", below("/", "/"));
  EXPECT_EQ("", below("/docker/1", "/docker/1"));
  EXPECT_EQ("/x", below("/docker/1", "/docker/1/x"));
  EXPECT_EQ("/x", below("/../..", "/../../x"));
  EXPECT_FALSE(below("/docker/1", "/docker/12"));
  EXPECT_FALSE(below("/docker/1", "/"));
  EXPECT_FALSE(below("/..", "/"));
  EXPECT_FALSE(below("/", "/../x"));
  EXPECT_FALSE(below("/..", "/../../x"));
}

TEST(KernelText, Fuzz) {
  const std::string texts[] = {
      "MemTotal:       24684092 kB\nMemFree:         5908268 kB\n",
      "Name:\tmysqld\nVmRSS:\t    1672 kB\nThreads:\t1\n",
      "7 (a) R (b c) S 1 7 7 0 -1 4194304 111 222 333 444 0\n",
      "anon 1234\nfile 5678\nanon_thp 0\n",
      "anon N0=4096 N1=8192\nfile N0=0 N1=0\n",
      "some avg10=0.10 avg60=0.05 avg300=0.01 total=52992693\n"
      "full avg10=0.05 avg60=0.02 avg300=0.00 total=15978576\n",
      "always [madvise] never\n",
      "[none] mq-deadline kyber bfq\n",
      "max\n",
      "9223372036854771712\n",
      "-1000\n",
      "0-2,5,7-9\n",
      "Node 0 MemTotal:       24684092 kB\nNode 0 MemFree:  5908268 kB\n",
      "7f00 default anon=3 dirty=3 N0=1 N1=2 kernelpagesize_kB=4\n"
      "7f01 interleave:0-1 file=/a\\040b huge N3=1 kernelpagesize_kB=2048\n",
      "36 35 98:0 /a\\040b /mnt/c\\134d rw,noatime master:1 - ext4 /dev/sda1 "
      "rw,errors=continue\n31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup "
      "rw\n",
      "9:name=systemd:/\n4:cpu,memory:/docker/1\n0::/../x\n"};
  std::mt19937 random(20261120);
  for (int i = 0; i < 20000; ++i) {
    for (const std::string &text : texts) {
      const std::string mutated = memdiag_test::mutate(text, &random);
      ASSERT_NO_FATAL_FAILURE(memdiag_test::expect_sane(mutated))
          << "round " << i << ": " << testing::PrintToString(mutated);
    }
  }
}

}  // namespace
}  // namespace memdiag::kernel_text
