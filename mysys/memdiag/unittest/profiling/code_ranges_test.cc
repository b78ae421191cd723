/* Which code was there at which look, with a dynamic linker of the test's own.
 */

#include "mysys/memdiag/profiling/code_ranges.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace memdiag::profiling {
namespace {

/** A library with code at an address; its memory is never read. */
struct Library {
  std::string name;
  uintptr_t begin;
  uintptr_t bytes;
};

std::vector<Library> loaded;
Code_changes changes{1, 0};

int iterate(int (*visit)(dl_phdr_info *, size_t, void *), void *argument) {
  for (const Library &library : loaded) {
    ElfW(Phdr) header{};
    header.p_type = PT_LOAD;
    header.p_flags = PF_R | PF_X;
    header.p_memsz = library.bytes;
    dl_phdr_info info{};
    info.dlpi_addr = library.begin;
    info.dlpi_name = library.name.c_str();
    info.dlpi_phdr = &header;
    info.dlpi_phnum = 1;
    info.dlpi_adds = changes.loaded;
    info.dlpi_subs = changes.unloaded;
    if (const int result = visit(&info, sizeof info, argument); result != 0)
      return result;
  }
  return 0;
}

void load(const Library &library) {
  loaded.push_back(library);
  ++changes.loaded;
}

void unload(const std::string &name) {
  std::erase_if(loaded,
                [&name](const Library &one) { return one.name == name; });
  ++changes.unloaded;
}

/** The newest range at an address. */
Code_range range_at(uintptr_t address) {
  std::vector<Code_range> ranges(max_code_ranges);
  ranges.resize(copy_code_ranges(ranges));
  for (auto range = ranges.rbegin(); range != ranges.rend(); ++range)
    if (address >= range->begin && address < range->end) return *range;
  return {};
}

class Code_ranges : public testing::Test {
 protected:
  Code_ranges() {
    if (loaded.empty()) load({"/program", 0x1000, 0x1000});
    note_code(iterate);
  }
};

TEST_F(Code_ranges, ALibraryThatIsGoneIsNoCode) {
  EXPECT_TRUE(is_code(0x1000));
  EXPECT_TRUE(is_code(0x1fff));
  EXPECT_FALSE(is_code(0x2000));
  load({"/a", 0x10000, 0x1000});
  EXPECT_FALSE(is_code(0x10000)) << "before a look";
  note_code(iterate);
  const uint32_t first = code_looks();
  EXPECT_EQ(first, code_since(0x10000));
  note_code(iterate);
  EXPECT_EQ(first + 1, code_looks());
  EXPECT_EQ(first, code_since(0x10000));
  unload("/a");
  note_code(iterate);
  EXPECT_FALSE(is_code(0x10000));
  EXPECT_TRUE(is_code(0x1000));
  // Nothing else was loaded, so all stacks up to now were its own.
  EXPECT_EQ(first, range_at(0x10000).first);
  EXPECT_EQ(first + 1, range_at(0x10000).last);
}

TEST_F(Code_ranges, AnotherLibraryInItsPlaceIsAnother) {
  load({"/guilty", 0x20000, 0x1000});
  note_code(iterate);
  note_code(iterate);
  const uint32_t before = code_looks();
  // Since `before` stacks at this place may be of either.
  unload("/guilty");
  load({"/innocent", 0x20000, 0x1000});
  note_code(iterate);
  std::vector<Code_range> ranges(max_code_ranges);
  ranges.resize(copy_code_ranges(ranges));
  EXPECT_EQ(before - 1, ranges[ranges.size() - 2].last);
  EXPECT_EQ(before + 1, code_since(0x20000));
  EXPECT_EQ(code_is_there, range_at(0x20000).last);
  unload("/innocent");
}

TEST_F(Code_ranges, OneThatWasThereForOneLookOnlyIsNeverNamed) {
  load({"/short", 0x30000, 0x1000});
  note_code(iterate);
  unload("/short");
  load({"/other", 0x30000, 0x800});
  note_code(iterate);
  std::vector<Code_range> ranges(max_code_ranges);
  ranges.resize(copy_code_ranges(ranges));
  const Code_range &gone = ranges[ranges.size() - 2];
  EXPECT_GT(gone.first, gone.last);
  unload("/other");
}

/** The last test: it leaves no room. */
TEST_F(Code_ranges, ZzRangesBeyondTheBoundAreCounted) {
  EXPECT_EQ(0u, code_ranges_left_out());
  for (size_t i = 0; i < max_code_ranges; ++i)
    load({"/" + std::to_string(i), 0x100000 + i * 0x1000, 0x1000});
  note_code(iterate);
  EXPECT_LT(0u, code_ranges_left_out());
  EXPECT_TRUE(is_code(0x100000));
  EXPECT_FALSE(is_code(0x100000 + (max_code_ranges - 1) * 0x1000));
  note_code(iterate);
  EXPECT_LT(0u, code_ranges_left_out());
}

}  // namespace
}  // namespace memdiag::profiling
