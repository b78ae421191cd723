/*
  What the kernel counts as kept, from files of a test.
*/

#include "plugin/memdiag/host/kept_reader.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "mysys/memdiag/unittest/file_tree.h"

namespace memdiag::host {
namespace {

constexpr uint64_t second = 1'000'000;
constexpr uint64_t code_bytes = 40;

class Kept : public testing::Test {
 protected:
  void write_stat(uint64_t inactive, uint64_t active, uint64_t slabs) {
    tree.write("/memory.stat",
               "anon 5\ninactive_file " + std::to_string(inactive) +
                   "\nactive_file " + std::to_string(active) +
                   "\nslab_reclaimable " + std::to_string(slabs) + "\n");
  }

  /** With the limit of this file; "": without one. */
  int open_group(int version = 2, const std::string &limit = "") {
    const char *const use =
        version == 2 ? "/memory.current" : "/memory.usage_in_bytes";
    return reader.open_group(tree.at(use), tree.at("/memory.stat"),
                             limit.empty() ? "" : tree.at(limit), version,
                             code_bytes);
  }

  memdiag_test::File_tree tree;
  Kept_reader reader;
};

TEST_F(Kept, is_the_use_less_what_the_kernel_takes_back) {
  tree.write("/memory.current", "1000\n");
  write_stat(100, 50, 7);
  ASSERT_EQ(0, open_group());
  EXPECT_EQ(843u, reader.read(second, 1000));
}

TEST_F(Kept, memory_stat_is_read_again_after_a_second_or_while_much_is_cache) {
  tree.write("/memory.current", "1000\n");
  write_stat(100, 0, 0);
  ASSERT_EQ(0, open_group());
  EXPECT_EQ(900u, reader.read(second, 500));
  write_stat(200, 0, 0);
  EXPECT_EQ(900u, reader.read(second + 1, 500));
  EXPECT_EQ(800u, reader.read(second + 2, 50));
  write_stat(300, 0, 0);
  EXPECT_EQ(700u, reader.read(3 * second, 500));
}

TEST_F(Kept, version_1_has_other_names) {
  tree.write("/memory.usage_in_bytes", "1000\n");
  tree.write("/memory.stat",
             "inactive_file 1\ntotal_inactive_file 30\ntotal_active_file 20\n");
  ASSERT_EQ(0, open_group(1));
  EXPECT_EQ(950u, reader.read(second, 1000));
}

TEST_F(Kept, has_the_most_of_the_code_that_was_mapped) {
  tree.write("/memory.current", "1000\n");
  const auto write = [this](int cache, int mapped) {
    tree.write("/memory.stat", "inactive_file " + std::to_string(cache) +
                                   "\nactive_file 0\nfile_mapped " +
                                   std::to_string(mapped) + "\n");
  };
  write(100, 30);
  ASSERT_EQ(0, open_group());
  EXPECT_EQ(930u, reader.read(second, 0));
  // The kernel takes it, and something else grows.
  write(5, 1);
  EXPECT_EQ(1025u, reader.read(second, 0));
  // Other mapped files are no code.
  write(100, 99);
  EXPECT_EQ(940u, reader.read(second, 0));
}

TEST_F(Kept, code_that_another_group_pays_for_does_not_count) {
  tree.write("/memory.usage_in_bytes", "1000\n");
  tree.write("/memory.stat",
             "total_inactive_file 3\ntotal_active_file 0\n"
             "total_mapped_file 30\n");
  ASSERT_EQ(0, open_group(1));
  EXPECT_EQ(1000u, reader.read(second, 0));
}

TEST_F(Kept, of_a_process_is_what_is_resident_and_no_files) {
  tree.write("/statm", "900 500 100 7 0 300 0\n");
  ASSERT_EQ(0, reader.open_process(tree.at("/statm")));
  EXPECT_EQ(400u * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)),
            reader.read(second, 1000));
}

TEST_F(Kept, is_empty_if_a_file_cannot_be_read_or_understood) {
  EXPECT_FALSE(reader.read(second, 1000));
  EXPECT_EQ(ENOENT, reader.open_process(tree.at("/none")));
  EXPECT_FALSE(reader.read(second, 1000));
  tree.write("/memory.current", "much\n");
  write_stat(1, 1, 1);
  ASSERT_EQ(0, open_group());
  EXPECT_FALSE(reader.read(second, 1000));
  tree.write("/memory.current", "1000\n");
  tree.write("/memory.stat", "anon 5\n");
  EXPECT_FALSE(reader.read(second, 1000));
  write_stat(1, 1, 1);
  EXPECT_EQ(997u, reader.read(second, 1000));
}

TEST_F(Kept, a_limit_is_read_with_each_use) {
  tree.write("/memory.current", "1000\n");
  tree.write("/memory.max", "2000\n");
  write_stat(0, 0, 0);
  ASSERT_EQ(0, open_group(2, "/memory.max"));
  EXPECT_FALSE(reader.limit_bytes());
  ASSERT_TRUE(reader.read(second, 1000));
  EXPECT_EQ(2000u, reader.limit_bytes());
  tree.write("/memory.max", "1500\n");
  ASSERT_TRUE(reader.read(second + 1, 1000));
  EXPECT_EQ(1500u, reader.limit_bytes());
  tree.write("/memory.max", "much\n");
  ASSERT_TRUE(reader.read(second + 2, 1000));
  EXPECT_FALSE(reader.limit_bytes());
  ASSERT_EQ(0, open_group(2, "/none"));
  ASSERT_TRUE(reader.read(second + 3, 1000));
  EXPECT_FALSE(reader.limit_bytes());
}

/** A new thread runs `body`. @return the bytes of its stack that it touched */
size_t stack_bytes(void *(*body)(void *), void *argument) {
  constexpr unsigned char untouched = 0xA5;
  constexpr size_t page = 4096;
  std::vector<unsigned char> memory(257 * page, untouched);
  const auto address = reinterpret_cast<uintptr_t>(memory.data());
  unsigned char *const stack =
      memory.data() + ((address + page - 1) / page * page - address);
  unsigned char *const end = stack + 256 * page;
  pthread_attr_t attributes;
  EXPECT_EQ(0, pthread_attr_init(&attributes));
  EXPECT_EQ(0, pthread_attr_setstack(&attributes, stack, 256 * page));
  pthread_t thread;
  EXPECT_EQ(0, pthread_create(&thread, &attributes, body, argument));
  EXPECT_EQ(0, pthread_join(thread, nullptr));
  pthread_attr_destroy(&attributes);
  return static_cast<size_t>(
      end - std::find_if(stack, end,
                         [](unsigned char byte) { return byte != untouched; }));
}

/** It is read within malloc(), at any depth. */
TEST_F(Kept, a_reading_takes_little_of_the_stack) {
  tree.write("/memory.current", "1000\n");
  tree.write("/memory.max", "2000\n");
  write_stat(100, 50, 7);
  ASSERT_EQ(0, open_group(2, "/memory.max"));
  ASSERT_TRUE(reader.read(second, 1000)) << "symbols are bound";
  const size_t least =
      stack_bytes([](void *) -> void * { return nullptr; }, nullptr);
  const size_t most = stack_bytes(
      [](void *self) -> void * {
        (void)static_cast<Kept_reader *>(self)->read(3 * second, 0);
        return nullptr;
      },
      &reader);
  EXPECT_LT(most, least + 4096);
}

}  // namespace
}  // namespace memdiag::host
