/*
  Pages of the test's own program.
*/

#include "mysys/memdiag/pages/program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

#include "mysys/memdiag/pages/presence.h"
#include "mysys/memdiag/unittest/no_huge_pages.h"

namespace memdiag::program {
namespace {

constexpr size_t mb = 1 << 20;

/** Too large for a page that something else uses. */
alignas(65536) constexpr unsigned char constants[mb] = {1, 2, 3};

/** @return pages of it that the process has */
size_t pages_of_constants() {
  const size_t page = page_size();
  const int page_map = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  EXPECT_GE(page_map, 0);
  size_t there = 0;
  for (size_t i = 0; i < mb / page; ++i) {
    uint64_t entry = 0;
    const auto place = static_cast<off_t>(
        (reinterpret_cast<uintptr_t>(constants) / page + i) * sizeof entry);
    EXPECT_EQ(static_cast<ssize_t>(sizeof entry),
              pread(page_map, &entry, sizeof entry, place));
    there += entry >> 63;
  }
  close(page_map);
  return there;
}

unsigned sum_of_constants() {
  unsigned sum = 0;
  for (size_t i = 0; i < mb; i += 1024)
    sum += static_cast<const volatile unsigned char *>(constants)[i];
  return sum;
}

TEST(Program, pages_leave_the_process_and_come_back) {
  EXPECT_EQ(1u, sum_of_constants());
  EXPECT_EQ(mb / page_size(), pages_of_constants());
  EXPECT_GE(give_back_pages(), mb);
  EXPECT_EQ(0u, pages_of_constants());
  EXPECT_EQ(1u, sum_of_constants());
  EXPECT_EQ(mb / page_size(), pages_of_constants());
}

TEST(Program, its_data_get_no_huge_pages) {
  static char zeros[4 * mb];
  static char data[4 * mb] = {1};
  EXPECT_TRUE(memdiag_test::has_no_huge_pages(zeros + 2 * mb));
  EXPECT_TRUE(memdiag_test::has_no_huge_pages(data + 2 * mb));
}

/** As a debugger or a probe does. */
TEST(Program, a_page_that_was_written_stays) {
  const size_t page = page_size();
  auto *const written = const_cast<unsigned char *>(constants) + 5 * page;
  ASSERT_EQ(0, mprotect(written, page, PROT_READ | PROT_WRITE));
  *static_cast<volatile unsigned char *>(written) = 77;
  ASSERT_EQ(0, mprotect(written, page, PROT_READ));
  EXPECT_EQ(78u, sum_of_constants());
  give_back_pages();
  EXPECT_EQ(1u, pages_of_constants());
  EXPECT_EQ(78u, sum_of_constants());
}

}  // namespace
}  // namespace memdiag::program
