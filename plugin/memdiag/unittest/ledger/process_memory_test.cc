/* The kernel's figures of the process: texts of any form, and this process. */

#include "plugin/memdiag/ledger/process_memory.h"

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <random>

#include "mysys/memdiag/unittest/stopped_in_malloc.h"
#include "mysys/memdiag/unittest/test.h"
#include "plugin/memdiag/unittest/mutate.h"

namespace memdiag_test {

namespace process_memory = memdiag::process_memory;
using process_memory::Backing;

constexpr const char *maps =
    "55d000000000-55d000001000 r--p 00000000 fe:00 77      /usr/sbin/mysqld\n"
    "55d000001000-55d000003000 r-xp 00001000 fe:00 77      /usr/sbin/mysqld\n"
    "55d000003000-55d000004000 rw-p 00003000 fe:00 77      /usr/sbin/mysqld\n"
    "55d000004000-55d000009000 rw-p 00000000 00:00 0 \n"
    "55d0000a0000-55d0000c1000 rw-p 00000000 00:00 0       [heap]\n"
    "7f0000000000-7f0000100000 rw-p 00000000 00:00 0 \n"
    "7f0000100000-7f0000101000 ---p 00000000 00:00 0 \n"
    "7f0000200000-7f0000202000 r-xp 00000000 fe:00 78      /lib/libc.so.6\n"
    "7f0000202000-7f0000203000 rw-p 00002000 fe:00 78      /lib/libc.so.6\n"
    "7f0000300000-7f0000302000 rw-s 00000000 fe:00 79      /tmp/a file "
    "(deleted)\n"
    "7ffe00000000-7ffe00021000 rw-p 00000000 00:00 0       [stack]\n"
    "7ffe00100000-7ffe00102000 r-xp 00000000 00:00 0       [vdso]\n";

/** The program and the library of `maps`. */
const std::vector<memdiag::Address_range> objects = {
    {0x55d000000000, 0x55d000009000}, {0x7f0000200000, 0x7f0000203000}};

TEST(ProcessMemory, Mappings) {
  const auto found =
      process_memory::parse_maps(maps, "/usr/sbin/mysqld", objects);
  EXPECT_EQ(0u, found.bad_lines);
  std::vector<Backing> backings;
  for (const auto &mapping : found.all) backings.push_back(mapping.backing);
  const std::vector<Backing> expected = {
      Backing::program,   Backing::program,   Backing::program,
      Backing::program,   Backing::heap,      Backing::anonymous,
      Backing::anonymous, Backing::library,   Backing::library,
      Backing::file,      Backing::anonymous, Backing::kernel};
  EXPECT_EQ(expected, backings);
  EXPECT_TRUE(found.all[3].bss);
  EXPECT_FALSE(found.all[5].bss);
  EXPECT_TRUE(found.all[5].writable);
  EXPECT_FALSE(found.all[6].writable);
  EXPECT_EQ(0x100000u, found.all[5].range.bytes());
}

TEST(ProcessMemory, MemoryThatFollowsALibraryIsNotItsOwn) {
  const std::string text =
      "7f0000200000-7f0000202000 r-xp 00000000 fe:00 78      /lib/libc.so.6\n"
      "7f0000202000-7f0000203000 rw-p 00002000 fe:00 78      /lib/libc.so.6\n"
      "7f0000203000-7f0000800000 rw-p 00000000 00:00 0 \n"
      "7f0000800000-7f0000801000 rw-p 00000000 00:00 0 \n";
  const auto with_bss =
      process_memory::parse_maps(text, "", {{0x7f0000200000, 0x7f0000205000}});
  ASSERT_EQ(5u, with_bss.all.size());
  EXPECT_TRUE(with_bss.all[2].bss);
  EXPECT_EQ(0x2000u, with_bss.all[2].range.bytes());
  EXPECT_EQ(Backing::library, with_bss.all[2].backing);
  EXPECT_EQ(Backing::anonymous, with_bss.all[3].backing);
  EXPECT_EQ(0x7f0000205000u, with_bss.all[3].range.begin);
  EXPECT_EQ(0x7f0000800000u, with_bss.all[3].range.end);
  EXPECT_EQ(Backing::anonymous, with_bss.all[4].backing);
  const auto without =
      process_memory::parse_maps(text, "", {{0x7f0000200000, 0x7f0000203000}});
  ASSERT_EQ(4u, without.all.size());
  EXPECT_EQ(Backing::anonymous, without.all[2].backing);
}

TEST(ProcessMemory, ReservedHugePagesAreNotInRss) {
  const auto found = process_memory::parse_maps(
      "7f0000000000-7f0040000000 rw-p 00000000 00:10 5 /anon_hugepage "
      "(deleted)\n",
      "", {});
  EXPECT_EQ(Backing::kernel, found.all.at(0).backing);
}

/** Variables without an initial value. */
char zeros[1 << 20];

TEST(ProcessMemory, TheLinkerKnowsWhereTheProgramLies) {
  const auto at = reinterpret_cast<uintptr_t>(zeros);
  size_t objects_with_it = 0;
  for (const auto &object : process_memory::loaded_objects())
    objects_with_it += object.begin <= at && at + sizeof zeros <= object.end;
  EXPECT_EQ(1u, objects_with_it);
}

TEST(ProcessMemory, AReaderDoesNotHoldTheLinkerInMalloc) {
  EXPECT_TRUE(others_go_on(
      [] {
        for (int i = 0; i < 10; ++i) (void)process_memory::loaded_objects();
      },
      [] {
        (void)dl_iterate_phdr([](dl_phdr_info *, size_t, void *) { return 1; },
                              nullptr);
      }));
}

TEST(ProcessMemory, LinesOfAnotherFormAreCountedAndLeftOut) {
  for (const char *line :
       {"x", "12-", "-", "5-4 rw-p 0 0:0 0", "1000-2000 rw 0 0:0 0",
        "1000-2000 rw-p 0 0:0", "1000-fffffffffffffffff rw-p 0 0:0 0",
        "1000-2000 rw-p 0 0:0 1x /f"}) {
    const auto found = process_memory::parse_maps(line, "", {});
    EXPECT_EQ(1u, found.bad_lines) << line;
    EXPECT_TRUE(found.all.empty()) << line;
  }
  EXPECT_EQ(0u, process_memory::parse_maps("", "", {}).bad_lines);
}

TEST(ProcessMemory, Statm) {
  EXPECT_EQ(200 * memdiag::page_size(),
            process_memory::parse_statm("300 200 50 1 0 4 0\n"));
  for (const char *text :
       {"", "1", "1 x 2 3", "1 -2 3 4", "1 18446744073709551615 1 1"})
    EXPECT_FALSE(process_memory::parse_statm(text)) << text;
}

/** Parsing them must end, and safely. */
TEST(ProcessMemory, DamagedTexts) {
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    const std::string text = mutate(maps, &random);
    const auto found =
        process_memory::parse_maps(text, "/usr/sbin/mysqld", objects);
    for (const auto &mapping : found.all)
      EXPECT_LT(mapping.range.begin, mapping.range.end);
    (void)process_memory::parse_statm(text);
  }
}

TEST(ProcessMemory, OfThisProcess) {
  EXPECT_LT(1u << 20, process_memory::resident_bytes().value_or(0));
  const auto mappings = process_memory::mappings();
  ASSERT_TRUE(mappings);
  EXPECT_EQ(0u, mappings->bad_lines);
  const auto address = reinterpret_cast<uintptr_t>(&maps);
  bool found = false;
  for (const auto &mapping : mappings->all)
    if (address >= mapping.range.begin && address < mapping.range.end) {
      found = true;
      EXPECT_EQ(Backing::program, mapping.backing);
    }
  EXPECT_TRUE(found);
}

TEST(ProcessMemory, PagesOfAFile) {
  FILE *file = tmpfile();
  ASSERT_NE(nullptr, file);
  const size_t page = memdiag::page_size();
  ASSERT_EQ(0, ftruncate(fileno(file), static_cast<off_t>(8 * page)));
  auto *mapped = static_cast<char *>(mmap(
      nullptr, 8 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE, fileno(file), 0));
  ASSERT_NE(MAP_FAILED, mapped);
  (void)madvise(mapped, 8 * page, MADV_RANDOM);  // no pages read ahead
  const auto begin = reinterpret_cast<uintptr_t>(mapped);
  const process_memory::Page_map map;
  const auto before = map.pages({begin, begin + 8 * page});
  ASSERT_TRUE(before);
  EXPECT_EQ(0u, before->own_bytes);
  mapped[3 * page] = mapped[5 * page] = 1;
  const auto after = map.pages({begin, begin + 8 * page});
  ASSERT_TRUE(after);
  EXPECT_EQ(2 * page, after->own_bytes);
  EXPECT_GE(6 * page, after->file_bytes);
  munmap(mapped, 8 * page);
  fclose(file);
}

}  // namespace memdiag_test
