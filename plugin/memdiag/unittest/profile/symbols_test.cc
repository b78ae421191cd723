/*
  Names of addresses: right for what runs, missing for what cannot be verified.
*/

#include "plugin/memdiag/profile/symbols.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "mysys/memdiag/base/interruption.h"
#include "mysys/memdiag/unittest/file_tree.h"
#include "plugin/memdiag/profile/modules.h"
#include "plugin/memdiag/unittest/elf_image.h"

namespace memdiag::profile {

/** Not static, so that its name is in every symbol table. */
class Symbols_test_caller {
 public:
  [[gnu::noinline]] static uint64_t call();
};

namespace {

using memdiag_test::Elf_image;
using memdiag_test::File_tree;

[[gnu::noinline]] uint64_t return_address() {
  return reinterpret_cast<uint64_t>(__builtin_return_address(0));
}

/** Not the same code as Symbols_test_caller::call(), because the compiler makes
one function of two that are the same. */
[[gnu::noinline]] uint64_t call_in_unnamed_namespace() {
  volatile uint64_t address = 0;
  address = return_address();
  return address;
}

}  // namespace

uint64_t Symbols_test_caller::call() {
  const volatile uint64_t address = return_address();
  return address;
}

namespace {

std::string path_of_this_program() {
  return std::filesystem::read_symlink("/proc/self/exe");
}

TEST(Modules, OfThisProcess) {
  const std::vector<Module> modules = modules_of_this_process();
  ASSERT_LT(2u, modules.size());
  EXPECT_EQ(path_of_this_program(), modules[0].path);
  for (const Module &module : modules) {
    EXPECT_LT(module.begin, module.end) << module.path;
    EXPECT_LE(module.load_bias, module.begin) << module.path;
    EXPECT_EQ(0u, module.build_id.size() % 2) << module.path;
    EXPECT_EQ(0u, module.begin % 4096) << module.path;
    EXPECT_EQ(0u, module.file_offset % 4096) << module.path;
  }
  EXPECT_LE(16u, modules[0].build_id.size());
  const auto has = [&modules](size_t index, uint64_t address) {
    return modules[index].begin <= address && address < modules[index].end;
  };
  EXPECT_TRUE(has(0, Symbols_test_caller::call()));
  // As the kernel has it: begin-end permissions offset device inode path.
  std::ifstream maps("/proc/self/maps");
  bool is_in_maps = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin, end, offset;
    char executable;
    ASSERT_EQ(4, sscanf(line.c_str(), "%lx-%lx %*c%*c%c%*c %lx", &begin, &end,
                        &executable, &offset));
    if (begin != modules[0].begin) continue;
    is_in_maps = true;
    EXPECT_EQ('x', executable);
    EXPECT_EQ(offset, modules[0].file_offset);
    EXPECT_LE(modules[0].end, end);
    EXPECT_LT(end - 4096, modules[0].end);
  }
  EXPECT_TRUE(is_in_maps);
  const auto getpid_address =
      reinterpret_cast<uint64_t>(dlsym(RTLD_NEXT, "getpid"));
  const auto libc =
      std::find_if(modules.begin(), modules.end(), [](const Module &module) {
        return module.path.find("libc.so") != std::string::npos;
      });
  ASSERT_NE(modules.end(), libc);
  EXPECT_TRUE(has(static_cast<size_t>(libc - modules.begin()), getpid_address));
}

TEST(Symbols, OfThisProcess) {
  const std::vector<Module> modules = modules_of_this_process();
  const uint64_t method = Symbols_test_caller::call();
  const uint64_t function = call_in_unnamed_namespace();
  const auto getpid = reinterpret_cast<uint64_t>(dlsym(RTLD_NEXT, "getpid"));
  const Symbols symbols(modules, {function, method, 0x10, getpid + 1, method});
  EXPECT_EQ("memdiag::profile::Symbols_test_caller::call",
            symbols[method].name);
  EXPECT_EQ("_ZN7memdiag7profile19Symbols_test_caller4callEv",
            symbols[method].linkage_name);
  EXPECT_EQ(0u, symbols[method].module);
  EXPECT_EQ(method - 1 - modules[0].load_bias, symbols[method].offset);
  EXPECT_EQ("memdiag::profile::call_in_unnamed_namespace",
            symbols[function].name);
  // It has other names at the same address.
  EXPECT_NE(std::string::npos, symbols[getpid + 1].name.find("getpid"));
  EXPECT_EQ("0xf", symbols[0x10].name);
  EXPECT_FALSE(symbols[0x10].is_known());
  EXPECT_FALSE(symbols[0x10].module);
  EXPECT_EQ("?", symbols[0x20].name);
  EXPECT_EQ("?", Symbols()[method].name);
}

/** The addresses 0x10000 to 0x12000 are a library at its address 0x1000. */
class Symbols_of_files : public testing::Test {
 protected:
  Symbols_of_files() {
    m_sources.program = m_tree.at("/program");
    m_sources.debug_files = m_tree.at("/debug");
  }

  static Elf_image library() {
    return {{{"_ZN1A1fEv", 0x1000, 0x100}, {"g", 0x1100, 0x100}}, {}};
  }
  std::string name(const Module &module, uint64_t address) const {
    return Symbols({&module, 1}, {address}, m_sources)[address].name;
  }

  File_tree m_tree;
  Symbol_sources m_sources;
  Module m_module{m_tree.at("/lib/libx.so.1"), "0123ab", 0x10000, 0x12000,
                  0xf000};
};

TEST_F(Symbols_of_files, AReturnAddressStandsForTheCallBeforeIt) {
  m_tree.write("/lib/libx.so.1", library().bytes());
  EXPECT_EQ("0xffff", name(m_module, 0x10000));
  EXPECT_EQ("A::f", name(m_module, 0x10001));
  EXPECT_EQ("A::f", name(m_module, 0x10100));
  EXPECT_EQ("g", name(m_module, 0x10101));
  EXPECT_EQ("g", name(m_module, 0x10200));
  EXPECT_EQ("libx.so.1+0x1200", name(m_module, 0x10201));
  EXPECT_EQ("libx.so.1+0x2fff", name(m_module, 0x12000));
  EXPECT_EQ("0x12000", name(m_module, 0x12001));
  EXPECT_EQ("0xffffffffffffffff", name(m_module, 0));
}

TEST_F(Symbols_of_files, AForeignFileHasNoNames) {
  EXPECT_EQ("libx.so.1+0x1000", name(m_module, 0x10001)) << "no file";
  Elf_image other = library();
  other.build_id = "\x01\x23\xac";
  m_tree.write("/lib/libx.so.1", other.bytes());
  EXPECT_EQ("libx.so.1+0x1000", name(m_module, 0x10001));
  m_tree.write("/lib/libx.so.1", "a text");
  EXPECT_EQ("libx.so.1+0x1000", name(m_module, 0x10001));
  // Nothing proves that a file without an id is the right one.
  other.build_id = "";
  m_tree.write("/lib/libx.so.1", other.bytes());
  m_module.build_id = "";
  EXPECT_EQ("libx.so.1+0x1000", name(m_module, 0x10001));
}

TEST_F(Symbols_of_files, AReplacedProgramIsReadAsItRuns) {
  m_tree.write("/program", library().bytes());
  Elf_image other = library();
  other.build_id = "\x01\x23\xac";
  m_tree.write("/lib/libx.so.1", other.bytes());
  EXPECT_EQ("A::f", name(m_module, 0x10001));
}

TEST_F(Symbols_of_files, AStrippedFileIsCompletedByItsDebugFile) {
  Elf_image stripped = library();
  stripped.dynsym = {stripped.symtab[0]};
  stripped.symtab.clear();
  m_tree.write("/lib/libx.so.1", stripped.bytes());
  EXPECT_EQ("A::f", name(m_module, 0x10001));
  EXPECT_EQ("libx.so.1+0x1100", name(m_module, 0x10101));
  Elf_image other = library();
  other.build_id = "\x01\x23\xac";
  m_tree.write("/debug/01/23ab.debug", other.bytes());
  EXPECT_EQ("libx.so.1+0x1100", name(m_module, 0x10101));
  m_tree.write("/debug/01/23ab.debug", library().bytes());
  EXPECT_EQ("A::f", name(m_module, 0x10001));
  EXPECT_EQ("g", name(m_module, 0x10101));
}

TEST_F(Symbols_of_files, ManyModulesAndAddressesInAnyOrder) {
  m_tree.write("/lib/libx.so.1", library().bytes());
  Elf_image other{{{"h", 0x500, 0x100}}, {}, "\x02\x34"};
  m_tree.write("/lib/liby.so", other.bytes());
  const std::vector<Module> modules{
      m_module, {m_tree.at("/lib/liby.so"), "0234", 0x1500, 0x1800, 0x1000}};
  const Symbols symbols(modules, {0x10101, 0x1501, 0x10001, 0x9000, 0x10002},
                        m_sources);
  EXPECT_EQ("h", symbols[0x1501].name);
  EXPECT_EQ(1u, symbols[0x1501].module);
  EXPECT_EQ("0x8fff", symbols[0x9000].name);
  EXPECT_EQ("A::f", symbols[0x10001].name);
  EXPECT_EQ("A::f", symbols[0x10002].name);
  EXPECT_EQ(0u, symbols[0x10002].module);
  EXPECT_EQ("g", symbols[0x10101].name);
}

TEST_F(Symbols_of_files, AKilledStatementMakesNoMoreNames) {
  m_tree.write("/lib/libx.so.1", library().bytes());
  unsigned questions = 0;
  // Until the file has been read.
  const Interruptible read(
      [](const void *asked) {
        return ++*static_cast<unsigned *>(const_cast<void *>(asked)) > 2;
      },
      &questions);
  const std::vector<Module> modules{m_module};
  const Symbols symbols(modules, {0x10001}, m_sources);
  EXPECT_TRUE(symbols[0x10001].is_known());
  EXPECT_EQ(symbols[0x10001].linkage_name, symbols[0x10001].name);
}

TEST_F(Symbols_of_files, OfAProfile) {
  m_tree.write("/lib/libx.so.1", library().bytes());
  Profile profile{};
  profile.modules = {m_module};
  profile.sites = {{1, "", "malloc", {0x10001, 0x10101}},
                   {2, "", "malloc", {0x10101}}};
  const Symbols symbols(profile, m_sources);
  EXPECT_EQ("A::f", symbols[0x10001].name);
  EXPECT_EQ("g", symbols[0x10101].name);
}

TEST_F(Symbols_of_files, AnyModuleIsHarmless) {
  m_tree.write("/lib/libx.so.1", library().bytes());
  std::vector<Module> modules;
  for (const uint64_t begin :
       {uint64_t{0}, uint64_t{0x10000}, uint64_t{0x11000}, UINT64_MAX - 1})
    for (const uint64_t end : {uint64_t{0}, uint64_t{0x10800}, UINT64_MAX})
      for (const uint64_t bias : {uint64_t{0}, uint64_t{0xf000}, UINT64_MAX})
        modules.push_back({m_module.path, "0123ab", begin, end, bias});
  std::vector<uint64_t> addresses{0, 1, UINT64_MAX, UINT64_MAX - 1};
  for (uint64_t i = 0; i < 100; ++i) addresses.push_back(0x10000 + 40 * i);
  for (size_t i = 0; i < modules.size(); ++i) {
    std::rotate(modules.begin(), modules.begin() + 1, modules.end());
    const Symbols symbols(modules, addresses, m_sources);
    for (const uint64_t address : addresses)
      EXPECT_NE("", symbols[address].name) << address;
  }
}

}  // namespace
}  // namespace memdiag::profile
