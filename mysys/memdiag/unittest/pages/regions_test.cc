/* Regions: what is added, what of it is in physical memory, threads' stacks. */

#include "mysys/memdiag/pages/regions.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <iterator>
#include <latch>
#include <random>
#include <thread>
#include <vector>

#include <jemalloc/jemalloc.h>

#include "mysys/memdiag/base/fault.h"
#include "mysys/memdiag/pages/extents.h"
#include "mysys/memdiag/unittest/test.h"
#include "mysys/memdiag/upstream/hooks.h"

namespace memdiag_test {

using memdiag::Region_kind;
namespace regions = memdiag::regions;

constexpr size_t page = 4096;

/** Pages of the system's, unmapped at the end. */
class Mapping {
 public:
  explicit Mapping(size_t bytes)
      : m_bytes(bytes),
        m_begin(static_cast<char *>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    // One page each is what the tests count.
    (void)madvise(m_begin, bytes, MADV_NOHUGEPAGE);
  }
  ~Mapping() { munmap(m_begin, m_bytes); }
  Mapping(const Mapping &) = delete;
  Mapping &operator=(const Mapping &) = delete;
  char *begin() const { return m_begin; }

 private:
  size_t m_bytes;
  char *m_begin;
};

std::optional<uint64_t> resident_bytes(const void *address, size_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(address);
  const memdiag::Address_range range{begin, begin + bytes};
  return memdiag::Presence(range).bytes(range);
}

regions::Row row_of(Region_kind kind) {
  int error = -1;
  const auto rows = regions::all(&error);
  EXPECT_EQ(0, error);
  return rows[static_cast<size_t>(kind)];
}

#ifndef MEMDIAG_JEMALLOC_PREFIXED
uint64_t allocated_by_thread() {
  uint64_t bytes = 0;
  size_t size = sizeof bytes;
  EXPECT_EQ(0, ::mallctl("thread.allocated", &bytes, &size, nullptr, 0));
  return bytes;
}

// A block could wait for memory below the ceiling, or not be had: the region
// would be of another kind then.
TEST(Regions, AKindIsFoundWithoutABlock) {
  const uint32_t key = memdiag_note_instrument("innodb", "buf_buf_pool", 0);
  const Mapping mapping(page);
  const uint64_t count = row_of(Region_kind::buffer_pool).count;
  const uint64_t before = allocated_by_thread();
  memdiag_region_add(key, mapping.begin(), page);
  EXPECT_EQ(before, allocated_by_thread());
  EXPECT_EQ(count + 1, row_of(Region_kind::buffer_pool).count);
  memdiag_region_remove(mapping.begin());
}
#endif

TEST(Regions, OnlyPagesThatWereTouchedAreResident) {
  const Mapping mapping(5000 * page);
  EXPECT_EQ(0u, resident_bytes(mapping.begin(), 5000 * page));
  for (size_t i = 0; i < 5000; i += 2) mapping.begin()[i * page] = 1;
  EXPECT_EQ(2500 * page, resident_bytes(mapping.begin(), 5000 * page));
  EXPECT_EQ(page, resident_bytes(mapping.begin() + 100, 1));
}

TEST(Regions, WhatIsNotMappedIsNotResident) {
  const Mapping mapping(100 * page);
  for (size_t i = 0; i < 100; ++i) mapping.begin()[i * page] = 1;
  munmap(mapping.begin() + 30 * page, 11 * page);
  EXPECT_EQ(89 * page, resident_bytes(mapping.begin(), 100 * page));
}

/** From now on the kernel refuses each ioctl() of the calling thread, as one
does that does not know PAGEMAP_SCAN. */
bool refuse_ioctl() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOTTY),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog filter{std::size(program), program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/** The lowest descriptor that is free. */
int free_descriptor() {
  const int free = open("/dev/null", O_RDONLY | O_CLOEXEC);
  close(free);
  return free;
}

TEST(Regions, AKernelThatDoesNotScanIsAskedAnotherWay) {
  constexpr size_t pages = 5000;
  const Mapping mapping(pages * page);
  for (size_t i = 0; i < pages; i += 2) mapping.begin()[i * page] = 1;
  const auto begin = reinterpret_cast<uintptr_t>(mapping.begin());
  const memdiag::Address_range range{begin, begin + pages * page};
  const int free_before = free_descriptor();
  {
    const memdiag::Page_scan scan;
    EXPECT_EQ(bool{scan}, free_descriptor() != free_before);
    memdiag::Presence presence(range, &scan);
    EXPECT_EQ(pages / 2 * page, presence.bytes(range));
    EXPECT_EQ(bool{scan}, presence.scanned());
  }
  EXPECT_EQ(free_before, free_descriptor());
  EXPECT_EQ(0, in_child([&] {
              const memdiag::Page_scan of_before;
              if (!refuse_ioctl()) return 0;
              const int free_then = free_descriptor();
              const memdiag::Page_scan none;
              if (none) return 1;
              if (free_descriptor() != free_then) return 2;
              for (const memdiag::Page_scan *scan : {&none, &of_before}) {
                memdiag::Presence presence(range, scan);
                uint64_t huge_bytes = 0;
                if (presence.bytes(range, &huge_bytes) != pages / 2 * page)
                  return 3;
                if (presence.scanned() || huge_bytes != 0) return 4;
              }
              return 0;
            }));
}

/** Otherwise a ledger would take 0 for what is in huge pages. */
TEST(Regions, HugePagesAreKnownIfTheKernelToldOfAllParts) {
  const Mapping mapping(10 * page);
  memset(mapping.begin(), 1, 10 * page);
  const auto begin = reinterpret_cast<uintptr_t>(mapping.begin());
  const memdiag::Address_range good{begin, begin + 10 * page};
  // The kernel does not scan what no process can have.
  constexpr uintptr_t beyond = uintptr_t{1} << 52;
  const memdiag::Address_range bad{beyond, beyond + page};
  const auto known = [](std::vector<memdiag::Address_range> ranges) {
    const auto found = memdiag::extents::walk(ranges);
    EXPECT_TRUE(found);
    EXPECT_EQ(10 * page, found->total());
    return found->huge_known;
  };
  EXPECT_EQ(bool{memdiag::Page_scan{}}, known({good}));
  EXPECT_FALSE(known({good, bad}));
  EXPECT_FALSE(known({bad, good}));
}

TEST(Regions, StacksAreLookedAtFromTheirEnd) {
  constexpr size_t pages = 1000;
  const Mapping mapping(pages * page);
  const auto begin = reinterpret_cast<uintptr_t>(mapping.begin());
  const memdiag::Address_range stack{begin, begin + pages * page};
  const auto bytes = [&stack] {
    return regions::resident_bytes(stack, Region_kind::thread_stack);
  };
  EXPECT_EQ(0u, bytes());
  for (size_t i = 1; i <= 200; ++i) mapping.begin()[(pages - i) * page] = 1;
  EXPECT_EQ(200 * page, bytes());
  mapping.begin()[0] = 1;
  EXPECT_EQ(200 * page, bytes()) << "far below its use";
  for (size_t i = 0; i < pages; ++i) mapping.begin()[i * page] = 1;
  EXPECT_EQ(pages * page, bytes());
}

FRESH_TEST(Regions, TheFirstThreadsStackHasAnEndWithoutALimit) {
  rlimit limit;
  ASSERT_EQ(0, getrlimit(RLIMIT_STACK, &limit));
  if (limit.rlim_max != RLIM_INFINITY) GTEST_SKIP() << "the stack has a limit";
  limit.rlim_cur = limit.rlim_max;
  ASSERT_EQ(0, setrlimit(RLIMIT_STACK, &limit));
  memdiag_thread_begins();
  const memdiag::Address_range stack = regions::stack_of_this_thread();
  EXPECT_LT(page, stack.bytes());
  EXPECT_GE(size_t{8} << 20, stack.bytes());
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  EXPECT_TRUE(stack.begin < here && here < stack.end);
}

FRESH_TEST(Regions, AddedChangedAndRemoved) {
  EXPECT_EQ(0u, row_of(Region_kind::buffer_pool).count);
  const Mapping one(10 * page);
  const Mapping other(20 * page);
  one.begin()[0] = 1;
  regions::add(Region_kind::buffer_pool, one.begin(), 10 * page);
  regions::add(Region_kind::buffer_pool, other.begin(), 20 * page);
  regions::Row row = row_of(Region_kind::buffer_pool);
  EXPECT_STREQ("buffer_pool", row.name);
  EXPECT_EQ(2u, row.count);
  EXPECT_EQ(30 * page, row.mapped_bytes);
  EXPECT_EQ(page, row.resident_bytes);
  regions::add(Region_kind::other, one.begin(), 5 * page);
  row = row_of(Region_kind::buffer_pool);
  EXPECT_EQ(1u, row.count);
  EXPECT_EQ(20 * page, row.mapped_bytes);
  EXPECT_EQ(5 * page, row_of(Region_kind::other).mapped_bytes);
  regions::remove(one.begin());
  regions::remove(one.begin());
  regions::remove(nullptr);
  regions::remove(other.begin());
  EXPECT_EQ(0u, row_of(Region_kind::buffer_pool).count);
  EXPECT_EQ(0u, row_of(Region_kind::other).count);
}

FRESH_TEST(Regions, WhatIsKnownIsNotAskedFor) {
  constexpr auto stack = static_cast<size_t>(Region_kind::thread_stack);
  constexpr auto buffer_pool = static_cast<size_t>(Region_kind::buffer_pool);
  memdiag_thread_begins();
  const Mapping one(10 * page);
  const Mapping other(20 * page);
  other.begin()[0] = 1;
  regions::add(Region_kind::buffer_pool, one.begin(), 10 * page);
  regions::add(Region_kind::other, other.begin(), 20 * page);
  int error = -1;
  const auto asked = regions::all(&error);
  const auto totals = regions::totals();
  for (size_t i = 0; i < memdiag::region_kinds; ++i) {
    EXPECT_EQ(asked[i].count, totals[i].count) << asked[i].name;
    EXPECT_EQ(asked[i].mapped_bytes, totals[i].mapped_bytes) << asked[i].name;
  }
  EXPECT_EQ(1u, totals[stack].count);
  EXPECT_EQ(1u, regions::list(regions::Stacks::with).size() -
                    regions::list(regions::Stacks::without).size());

  regions::Resident known{};
  known[stack] = totals[stack].mapped_bytes + page;
  known[buffer_pool] = 3 * page;
  const auto rows = regions::all(&error, known);
  EXPECT_EQ(totals[stack].mapped_bytes, rows[stack].resident_bytes)
      << "no more than there is";
  EXPECT_EQ(1u, rows[stack].count);
  EXPECT_EQ(3 * page, rows[buffer_pool].resident_bytes);
  EXPECT_EQ(10 * page, rows[buffer_pool].mapped_bytes);
  EXPECT_EQ(page, rows[static_cast<size_t>(Region_kind::other)].resident_bytes);
  regions::remove(one.begin());
  regions::remove(other.begin());
}

/** mincore() shows reserved huge pages, and RSS does not have them. The kernel
has none for a test: what is said of a region counts. */
FRESH_TEST(Regions, ReservedPagesAreNotResident) {
  constexpr auto ddl_log = static_cast<size_t>(Region_kind::ddl_log);
  const Mapping reserved(10 * page);
  const Mapping ordinary(20 * page);
  reserved.begin()[0] = ordinary.begin()[0] = 1;
  const uint32_t key = memdiag_note_instrument("innodb", "row_log_buf", 17);
  memdiag::reserved_region_added(key, reserved.begin(), 10 * page);
  memdiag::region_added(key, ordinary.begin(), 20 * page);
  const regions::Row row = row_of(Region_kind::ddl_log);
  EXPECT_EQ(2u, row.count);
  EXPECT_EQ(30 * page, row.mapped_bytes);
  EXPECT_EQ(page, row.resident_bytes);
  EXPECT_EQ(page, regions::resident_bytes(Region_kind::ddl_log));
  EXPECT_EQ(10 * page, regions::totals()[ddl_log].reserved_bytes);
  EXPECT_EQ(30 * page, regions::totals()[ddl_log].mapped_bytes);
  EXPECT_TRUE(regions::has_reserved(Region_kind::ddl_log));
  EXPECT_FALSE(regions::has_reserved(Region_kind::buffer_pool));
  memdiag::region_removed(reserved.begin());
  EXPECT_FALSE(regions::has_reserved(Region_kind::ddl_log));
  memdiag::reserved_region_added(key, ordinary.begin(), 20 * page);
  EXPECT_TRUE(regions::has_reserved(Region_kind::ddl_log));
  memdiag::region_added(key, ordinary.begin(), 20 * page);
  EXPECT_FALSE(regions::has_reserved(Region_kind::ddl_log)) << "it has changed";
  memdiag::region_removed(ordinary.begin());
  EXPECT_EQ(0u, regions::totals()[ddl_log].reserved_bytes);
}

FRESH_TEST(Regions, TheInstrumentTellsTheKind) {
  const Mapping mapping(page);
  const uint32_t key =
      memdiag_note_instrument("temptable", "physical_disk", 17);
  memdiag_region_add(key, mapping.begin(), page);
  EXPECT_EQ(1u, row_of(Region_kind::temp_table_file).count);
  memdiag_region_remove(mapping.begin());
  memdiag_region_add(0, mapping.begin(), page);
  EXPECT_EQ(1u, row_of(Region_kind::other).count);
  EXPECT_EQ(0u, row_of(Region_kind::temp_table_file).count);
}

FRESH_TEST(Regions, AFailedReadIsNotZero) {
  const Mapping mapping(page);
  regions::add(Region_kind::other, mapping.begin(), page);
  memdiag::fault::arm(memdiag::fault::Point::pages);
  int error = 0;
  const auto rows = regions::all(&error);
  EXPECT_EQ(EIO, error);
  const auto &row = rows[static_cast<size_t>(Region_kind::other)];
  EXPECT_EQ(page, row.mapped_bytes);
  EXPECT_FALSE(row.resident_bytes);
  EXPECT_EQ(0u, rows[0].resident_bytes) << "of nothing is nothing";
}

FRESH_TEST(Regions, StacksComeAndGoWithTheirThreads) {
  std::thread([] {
    memdiag_thread_begins();
    memdiag_thread_begins();
    const regions::Row row = row_of(Region_kind::thread_stack);
    EXPECT_EQ(1u, row.count);
    EXPECT_LT(64u * 1024, row.mapped_bytes);
    EXPECT_LT(0u, row.resident_bytes);
    EXPECT_GE(row.mapped_bytes, row.resident_bytes);
  }).join();
  EXPECT_EQ(0u, row_of(Region_kind::thread_stack).count);
  // The main thread's may grow: not all of it is mapped.
  memdiag_thread_begins();
  EXPECT_LT(0u, row_of(Region_kind::thread_stack).resident_bytes);
}

// The threads of a child get their stacks where the others' stacks were.
FRESH_TEST(Regions, AChildHasTheStackOfTheThreadThatForked) {
  constexpr auto stack = static_cast<size_t>(Region_kind::thread_stack);
  const auto stacks = [] { return regions::totals()[stack].count; };
  std::latch all_began(3);
  std::atomic<bool> stop{false};
  std::vector<std::thread> others;
  for (int i = 0; i < 3; ++i)
    others.emplace_back([&] {
      memdiag_thread_begins();
      all_began.count_down();
      stop.wait(false);
    });
  all_began.wait();
  EXPECT_EQ(3u, stacks());
  EXPECT_EQ(0, in_child([&] { return stacks() == 0 ? 0 : 1; }))
      << "this thread is not one of those that began";
  std::thread([&] {
    memdiag_thread_begins();
    EXPECT_EQ(4u, stacks());
    EXPECT_EQ(0, in_child([&] {
                if (stacks() != 1) return 1;
                // The child's thread has a list whose links are its own.
                if (!malloc_after_fork) return 0;
                std::thread(memdiag_thread_begins).join();
                return stacks() == 1 ? 0 : 2;
              }));
  }).join();
  EXPECT_EQ(3u, stacks());
  stop = true;
  stop.notify_all();
  for (std::thread &thread : others) thread.join();
  EXPECT_EQ(0u, stacks());
}

FRESH_TEST(Regions, EverythingAtOnce) {
  std::atomic<bool> stop{false};
  std::thread reader([&stop] {
    while (!stop) {
      int error;
      (void)regions::all(&error);
      ASSERT_EQ(0, error);
    }
  });
  std::vector<std::thread> threads;
  for (unsigned seed = 1; seed <= 4; ++seed)
    threads.emplace_back([seed] {
      std::minstd_rand random(seed);
      for (int i = 0; i < 300; ++i) {
        const Mapping mapping((1 + random() % 50) * page);
        mapping.begin()[0] = 1;
        regions::add(static_cast<Region_kind>(random() % 3), mapping.begin(),
                     page);
        if (i % 10 == 0) std::thread(memdiag_thread_begins).join();
        regions::remove(mapping.begin());
      }
    });
  for (std::thread &thread : threads) thread.join();
  stop = true;
  reader.join();
  int error;
  for (const regions::Row &row : regions::all(&error)) EXPECT_EQ(0u, row.count);
}

}  // namespace memdiag_test
