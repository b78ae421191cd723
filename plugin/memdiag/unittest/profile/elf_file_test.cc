/*
  Functions and build ids of ELF files: of small ones made here, of this
  program, and of files that are wrong in every way.
*/

#include "plugin/memdiag/profile/elf_file.h"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>

#include "mysys/memdiag/base/interruption.h"
#include "mysys/memdiag/unittest/file_tree.h"
#include "plugin/memdiag/unittest/elf_image.h"

namespace {
/** Bytes that the test program read from files with pread(). */
size_t reads = 0;
size_t read_bytes = 0;
}  // namespace

/** In place of the C library's. */
extern "C" ssize_t pread(int file, void *to, size_t bytes, off_t offset) {
  ++reads;
  const ssize_t count = syscall(SYS_pread64, file, to, bytes, offset);
  if (count > 0) read_bytes += static_cast<size_t>(count);
  return count;
}

namespace memdiag::profile {
namespace {

using memdiag_test::Elf_function;
using memdiag_test::Elf_image;
using Names = std::vector<std::string>;

class Elf_file_test : public testing::Test {
 protected:
  Elf_file_test() : m_memory(memfd_create("elf", MFD_CLOEXEC)) {}
  ~Elf_file_test() override { close(m_memory); }

  /** A file in memory, in place of the last one. */
  std::optional<Elf_file> file_of(const std::string &bytes) {
    if (ftruncate(m_memory, 0) != 0 ||
        pwrite(m_memory, bytes.data(), bytes.size(), 0) !=
            static_cast<ssize_t>(bytes.size()))
      abort();
    return Elf_file::open("/proc/self/fd/" + std::to_string(m_memory));
  }
  Names functions(const Elf_image &image,
                  const std::vector<uint64_t> &addresses) {
    const auto file = file_of(image.bytes());
    if (!file) return {"not a file"};
    return file->functions_at(addresses);
  }

  const int m_memory;
};

TEST_F(Elf_file_test, AFunctionContainsItsAddresses) {
  const Elf_image image{
      {{"a", 0x1000, 0x10}, {"b", 0x1010, 0x10}, {"c", 0x2000, 1}}, {}};
  EXPECT_EQ((Names{"", "a", "a", "b", "b", "", "", "c", ""}),
            functions(image, {0xfff, 0x1000, 0x100f, 0x1010, 0x101f, 0x1020,
                              0x1fff, 0x2000, 0x2001}));
  EXPECT_EQ((Names{"a", "a"}), functions(image, {0x1000, 0x1000}));
  EXPECT_EQ(Names{}, functions(image, {}));
}

TEST_F(Elf_file_test, OnlyFunctionsOfTheFileCount) {
  const Elf_image image{
      {{"data", 0x1000, 0x100, STB_GLOBAL, STT_OBJECT},
       {"elsewhere", 0x1000, 0x100, STB_GLOBAL, STT_FUNC, SHN_UNDEF},
       {"no_size", 0x1000, 0},
       {"chosen", 0x1010, 0x10, STB_GLOBAL, STT_GNU_IFUNC}},
      {}};
  EXPECT_EQ((Names{"", "chosen"}), functions(image, {0x1000, 0x1010}));
}

TEST_F(Elf_file_test, OfTwoNamesTheOneThatSaysMore) {
  const Elf_image image{{{"local", 0x1000, 0x10, STB_LOCAL},
                         {"global", 0x1000, 0x10, STB_GLOBAL},
                         {"weak", 0x1000, 0x10, STB_WEAK},
                         {"outer", 0x2000, 0x100},
                         {"inner", 0x2010, 0x10, STB_LOCAL},
                         {"outer_too", 0x2000, 0x100, STB_LOCAL}},
                        {}};
  EXPECT_EQ((Names{"global", "outer", "inner", "outer"}),
            functions(image, {0x1000, 0x2000, 0x2010, 0x2020}));
}

TEST_F(Elf_file_test, AStrippedFileHasItsExports) {
  const Elf_function exported{"exported", 0x1000, 0x10};
  const Elf_function own{"own", 0x1010, 0x10};
  const auto stripped = file_of(Elf_image{{}, {exported}}.bytes());
  ASSERT_TRUE(stripped);
  EXPECT_FALSE(stripped->has_all_functions());
  EXPECT_EQ((Names{"exported", ""}),
            stripped->functions_at(std::vector<uint64_t>{0x1000, 0x1010}));
  const auto whole = file_of(Elf_image{{exported, own}, {exported}}.bytes());
  ASSERT_TRUE(whole);
  EXPECT_TRUE(whole->has_all_functions());
  EXPECT_EQ((Names{"exported", "own"}),
            whole->functions_at(std::vector<uint64_t>{0x1000, 0x1010}));
}

TEST_F(Elf_file_test, BuildId) {
  EXPECT_EQ("0123ab", file_of(Elf_image{}.bytes())->build_id());
  EXPECT_EQ("", file_of(Elf_image{{}, {}, ""}.bytes())->build_id());
}

TEST_F(Elf_file_test, NotesAlignedToEight) {
  // A property as the linker makes them, then the id.
  std::string notes("\x04\0\0\0\x04\0\0\0\x05\0\0\0GNU\0abcd\0\0\0\0", 24);
  notes += std::string("\x04\0\0\0\x02\0\0\0\x03\0\0\0GNU\0\xfe\x01", 18);
  const auto bytes = std::as_bytes(std::span{notes});
  EXPECT_EQ("fe01", build_id_in(bytes, 8));
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_EQ("", build_id_in(bytes.first(size), 8)) << size;
}

TEST_F(Elf_file_test, ThisProgram) {
  const auto file = Elf_file::open("/proc/self/exe");
  ASSERT_TRUE(file);
  EXPECT_LE(16u, file->build_id().size());
  EXPECT_TRUE(file->has_all_functions());
}

TEST_F(Elf_file_test, AnyNumberOfAddressesIsOneReadOfTheTable) {
  Elf_image image;
  for (uint64_t i = 0; i < 120000; ++i)
    image.symtab.push_back({"f" + std::to_string(i), 0x1000 + 16 * i, 16});
  const auto file = file_of(image.bytes());
  ASSERT_TRUE(file);
  std::vector<uint64_t> addresses;
  Names names;
  for (uint64_t i = 0; i < 2000; ++i) {
    addresses.push_back(0x1000 + 16 * (59 * i) + 7);
    names.push_back("f" + std::to_string(59 * i));
  }
  reads = read_bytes = 0;
  EXPECT_EQ(names, file->functions_at(addresses));
  EXPECT_LT(reads, 2100u);
  EXPECT_LT(read_bytes, 120001 * sizeof(Elf64_Sym) + 2000 * 256 + 1);
}

TEST_F(Elf_file_test, AKilledReaderReadsNoNames) {
  Elf_image image;
  image.symtab.push_back({"f", 0x1000, 16});
  const auto file = file_of(image.bytes());
  ASSERT_TRUE(file);
  const std::vector<uint64_t> addresses{0x1007};
  EXPECT_EQ(Names{"f"}, file->functions_at(addresses));
  const memdiag::Interruptible read([](const void *) { return true; }, nullptr);
  reads = 0;
  EXPECT_EQ(Names{""}, file->functions_at(addresses));
  EXPECT_EQ(0u, reads);
}

TEST_F(Elf_file_test, LongNames) {
  const Elf_image image{{{std::string(255, 'a'), 0, 1},
                         {std::string(256, 'b'), 1, 1},
                         {std::string(5000, 'c'), 2, 1},
                         {std::string(9000, 'd'), 3, 1},
                         {"e", 4, 1}},
                        {}};
  EXPECT_EQ((Names{std::string(255, 'a'), std::string(256, 'b'),
                   std::string(5000, 'c'), "", "e"}),
            functions(image, {0, 1, 2, 3, 4}));
}

TEST_F(Elf_file_test, ATableThatContainsEverythingIsNotSearchedToItsEnd) {
  Elf_image image;
  for (uint64_t i = 0; i < 5000; ++i)
    image.symtab.push_back({"f", 0, UINT64_MAX});
  std::vector<uint64_t> addresses(500);
  for (uint64_t i = 0; i < 500; ++i) addresses[i] = i;
  EXPECT_EQ(Names(500), functions(image, addresses));
}

TEST_F(Elf_file_test, OtherFiles) {
  const memdiag_test::File_tree tree;
  EXPECT_FALSE(Elf_file::open(tree.at("/none")));
  EXPECT_FALSE(Elf_file::open("/"));
  EXPECT_FALSE(Elf_file::open("/dev/zero"));
  ASSERT_EQ(0, mkfifo(tree.at("/pipe").c_str(), 0600));
  EXPECT_FALSE(Elf_file::open(tree.at("/pipe")));
  EXPECT_FALSE(file_of(""));
  EXPECT_FALSE(file_of(std::string(100000, 'x')));
  const std::string whole = Elf_image{{{"f", 0, 1}}, {}}.bytes();
  for (const size_t at : {0, 3, 4, 5}) {
    std::string other = whole;
    other[at] ^= 1;
    EXPECT_FALSE(file_of(other)) << at;
  }
}

TEST_F(Elf_file_test, AFileCutShort) {
  const std::string whole =
      Elf_image{{{"f", 0x1000, 16}}, {{"f", 0x1000, 16}}}.bytes();
  const std::vector<uint64_t> addresses{0x1000};
  for (size_t size = 0; size < whole.size(); ++size) {
    const auto file = file_of(whole.substr(0, size));
    ASSERT_EQ(size >= sizeof(Elf64_Ehdr), file.has_value());
    if (!file) continue;
    EXPECT_EQ(Names{""}, file->functions_at(addresses)) << size;
  }
  const auto file = file_of(whole);
  ASSERT_TRUE(file);
  EXPECT_EQ(Names{"f"}, file->functions_at(addresses));
  // While it is open.
  ASSERT_EQ(0, ftruncate(m_memory, 200));
  EXPECT_EQ(Names{""}, file->functions_at(addresses));
}

TEST_F(Elf_file_test, AnyMutationIsHarmless) {
  Elf_image image;
  for (uint64_t i = 0; i < 20; ++i) {
    image.symtab.push_back({"f" + std::to_string(i), 0x1000 + 16 * i, 16});
    image.dynsym.push_back(image.symtab.back());
  }
  const std::string whole = image.bytes();
  std::vector<uint64_t> addresses;
  for (uint64_t i = 0; i < 24; ++i) addresses.push_back(0x0ff8 + 16 * i);
  std::mt19937 random(20261122);
  const auto below = [&random](size_t limit) { return random() % limit; };
  size_t names = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string mutated = whole;
    for (size_t changes = 1 + below(4); changes > 0; --changes) {
      // Figures of all sizes, mostly in the headers.
      const bool in_header = below(3) != 0;
      const size_t from = below(2) ? 0 : mutated.size() - 5 * 64;
      const size_t at =
          in_header ? from + below(4 * 64) : below(mutated.size() - 8);
      const size_t length = size_t{1} << below(4);
      uint64_t value = random();
      if (below(2)) value = uint64_t{1} << below(64);
      if (below(4) == 0) value = UINT64_MAX - below(64);
      memcpy(&mutated[at], &value, std::min(length, mutated.size() - at));
    }
    if (below(8) == 0) mutated.resize(below(mutated.size()));
    const auto file = file_of(mutated);
    if (!file) continue;
    (void)file->build_id();
    for (const std::string &name : file->functions_at(addresses))
      names += !name.empty();
  }
  EXPECT_LT(1000u, names);
}

}  // namespace
}  // namespace memdiag::profile
