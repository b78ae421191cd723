/* The facade over jemalloc. */

#include "mysys/memdiag/jemalloc/mallctl.h"

#include <atomic>
#include <cmath>
#include <string>
#include <thread>

#include <jemalloc/jemalloc.h>
#include <sys/mman.h>

#include "mysys/memdiag/unittest/no_huge_pages.h"
#include "mysys/memdiag/unittest/test.h"

namespace memdiag_test {

using memdiag::Result;
namespace placed = memdiag::placed;

struct Declared {
  Ctl ctl;
  const char *name;
  size_t size;
};

constexpr Declared declared[] = {
#define MEMDIAG_CTL(id, name, type) {Ctl::id, name, sizeof(type)},
#include "mysys/memdiag/jemalloc/mallctl_names.h"
#undef MEMDIAG_CTL
};

/** Reading these does something, or takes an argument. */
bool is_plain_reading(Ctl ctl) {
  return ctl != Ctl::arenas_create && ctl != Ctl::arena_name &&
         ctl != Ctl::hook_thread_event &&  // is only written
         ctl != Ctl::tcache_create && ctl != Ctl::tcache_destroy &&
         ctl != Ctl::thread_tcache_sizes;
}

TEST(Mallctl, EveryNameResolves) {
  for (const Declared &entry : declared) {
    EXPECT_EQ(0, mallctl::resolve(entry.ctl)) << entry.name;
    EXPECT_STREQ(entry.name, mallctl::name(entry.ctl));
  }
}

TEST(Mallctl, EverySizeIsTheLibrarys) {
  ASSERT_EQ(0, mallctl::refresh());
  for (const Declared &entry : declared) {
    if (!is_plain_reading(entry.ctl)) continue;
    alignas(16) unsigned char value[32];
    EXPECT_EQ(0, mallctl::read_raw(entry.ctl, 0, value, entry.size))
        << entry.name;
    // Any other size is refused, so the size above is the only right one.
    for (size_t wrong :
         {size_t{1}, size_t{2}, size_t{4}, size_t{8}, size_t{16}}) {
      if (wrong == entry.size) continue;
      EXPECT_EQ(EINVAL, mallctl::read_raw(entry.ctl, 0, value, wrong))
          << entry.name << " as " << wrong << " bytes";
    }
  }
}

TEST(Mallctl, AControlThatIsOnlyWrittenIsNotRead) {
  unsigned value = 7;
  EXPECT_EQ(EPERM,
            mallctl::read_raw(Ctl::tcache_destroy, 0, &value, sizeof value));
  EXPECT_EQ(EPERM, mallctl::read<Ctl::tcache_destroy>().error());
}

TEST(Mallctl, ReadsOfTheListedType) {
  const auto version = mallctl::read<Ctl::version>();
  ASSERT_TRUE(version);
  EXPECT_EQ(0, strncmp(version.value(), "5.", 2)) << version.value();
  EXPECT_TRUE(mallctl::read<Ctl::config_prof>().value_or(false));
  EXPECT_FALSE(mallctl::read<Ctl::opt_prof_active>().value_or(true) &&
               mallctl::read<Ctl::opt_prof>().value_or(true));
  EXPECT_EQ(static_cast<size_t>(sysconf(_SC_PAGESIZE)),
            mallctl::read<Ctl::arenas_page>().value());
}

TEST(Mallctl, BuiltInOptionsAreInForce) {
  if (getenv("MALLOC_CONF") != nullptr || getenv("JE_MALLOC_CONF") != nullptr)
    GTEST_SKIP() << "overridden by the environment";
  EXPECT_TRUE(mallctl::read<Ctl::opt_background_thread>().value());
  EXPECT_EQ(1000, mallctl::read<Ctl::opt_dirty_decay_ms>().value());
  EXPECT_EQ(0, mallctl::read<Ctl::opt_muzzy_decay_ms>().value());
}

TEST(Mallctl, ControlThatDoesNotExist) {
  const Ctl beyond = static_cast<Ctl>(static_cast<int>(Ctl::count));
  uint64_t value;
  EXPECT_EQ(ENOENT, mallctl::resolve(beyond));
  EXPECT_EQ(ENOENT, mallctl::read_raw(beyond, 0, &value, sizeof value));
  EXPECT_EQ(ENOENT, mallctl::write_raw(beyond, 0, &value, sizeof value));
  EXPECT_STREQ("", mallctl::name(beyond));
}

TEST(Mallctl, ArenaThatDoesNotExist) {
  for (unsigned arena : {narenas() + 1, 4000u, 100000u}) {
    EXPECT_EQ(EFAULT, mallctl::read<Ctl::stats_arena_resident>(arena).error());
    EXPECT_NE(0, mallctl::read<Ctl::arena_dirty_decay_ms>(arena).error());
    EXPECT_NE(0, mallctl::write<Ctl::arena_dirty_decay_ms>(5, arena));
    EXPECT_NE(0, mallctl::purge_arena(arena).error());
    char name[mallctl::arena_name_size];
    EXPECT_NE(0, mallctl::arena_name(arena, name));
    EXPECT_NE(0, mallctl::set_arena_name(arena, "x"));
    EXPECT_EQ(Pool::general, pools::owner_of_arena(arena));
  }
}

// jemalloc takes an index one past the last arena, and 4096, for "all arenas".
TEST(Mallctl, NoIndexMeansAllArenas) {
  for (unsigned arena : {narenas(), 4096u, 4097u}) {
    EXPECT_NE(0, mallctl::read<Ctl::stats_arena_resident>(arena).error())
        << arena;
    EXPECT_NE(0, mallctl::purge_arena(arena).error()) << arena;
    EXPECT_NE(0, mallctl::read<Ctl::arena_initialized>(arena).error()) << arena;
  }
}

TEST(Mallctl, SizeClassThatDoesNotExist) {
  const unsigned bins = mallctl::read<Ctl::arenas_nbins>().value();
  EXPECT_TRUE(mallctl::read<Ctl::arenas_bin_size>(0, bins - 1));
  EXPECT_TRUE(mallctl::read<Ctl::stats_bin_nmalloc>(0, bins - 1));
  const unsigned large = mallctl::read<Ctl::arenas_nlextents>().value();
  EXPECT_TRUE(mallctl::read<Ctl::arenas_lextent_size>(0, large - 1));
  EXPECT_TRUE(mallctl::read<Ctl::stats_lextent_nmalloc>(0, large - 1));
  // Classes of pages below the smallest large block, of one page on.
  const unsigned extents =
      large - 1 +
      static_cast<unsigned>(mallctl::read<Ctl::arenas_lextent_size>().value() /
                            mallctl::read<Ctl::arenas_page>().value());
  EXPECT_TRUE(mallctl::read<Ctl::stats_extents_ndirty>(0, extents - 1));
  for (const unsigned more : {0u, 1u, 100000u}) {
    EXPECT_EQ(ENOENT,
              mallctl::read<Ctl::arenas_bin_size>(0, bins + more).error());
    EXPECT_EQ(ENOENT,
              mallctl::read<Ctl::stats_bin_nmalloc>(0, bins + more).error());
    EXPECT_EQ(ENOENT,
              mallctl::read<Ctl::arenas_lextent_size>(0, large + more).error());
    EXPECT_EQ(
        ENOENT,
        mallctl::read<Ctl::stats_lextent_nmalloc>(0, large + more).error());
    EXPECT_EQ(
        ENOENT,
        mallctl::read<Ctl::stats_extents_ndirty>(0, extents + more).error());
  }
  EXPECT_EQ(EFAULT,
            mallctl::read<Ctl::stats_bin_nmalloc>(narenas(), 0).error());
}

TEST(Mallctl, TwoIndexesAreArenaAndSizeClass) {
  const unsigned bin = bin_of(112);
  const auto allocations = [](unsigned arena, unsigned index) {
    EXPECT_EQ(0, mallctl::refresh());
    return mallctl::read<Ctl::stats_bin_nmalloc>(arena, index).value();
  };
  const unsigned arena = mallctl::read<Ctl::arenas_create>().value();
  EXPECT_EQ(0u, allocations(arena, bin));
  const uint64_t elsewhere = allocations(0, bin);
  void *const block = placed::allocate(arena, placed::no_cache, 100, false);
  EXPECT_EQ(1u, allocations(arena, bin));
  EXPECT_EQ(0u, allocations(arena, bin + 1));
  EXPECT_EQ(elsewhere, allocations(0, bin));
  placed::free(block, placed::no_cache, 100);
}

TEST(Mallctl, WritingTakesEffectAndReadOnlyIsRefused) {
  const ssize_t before = mallctl::read<Ctl::arena_dirty_decay_ms>(0).value();
  EXPECT_EQ(0, mallctl::write<Ctl::arena_dirty_decay_ms>(before + 77, 0));
  EXPECT_EQ(before + 77, mallctl::read<Ctl::arena_dirty_decay_ms>(0).value());
  EXPECT_EQ(0, mallctl::write<Ctl::arena_dirty_decay_ms>(before, 0));

  EXPECT_EQ(EFAULT, mallctl::write<Ctl::arena_dirty_decay_ms>(-7, 0));
  EXPECT_EQ(before, mallctl::read<Ctl::arena_dirty_decay_ms>(0).value());

  EXPECT_EQ(EPERM, mallctl::write<Ctl::stats_allocated>(1));
  EXPECT_EQ(EPERM, mallctl::write<Ctl::opt_narenas>(1));
  const int32_t short_value = 1;
  EXPECT_EQ(EINVAL, mallctl::write_raw(Ctl::arena_dirty_decay_ms, 0,
                                       &short_value, sizeof short_value));
}

// Each arena takes memory, and time in each reading of the statistics.
TEST(Mallctl, MallocHasAsManyArenasOnEachMachine) {
  EXPECT_EQ(16u, mallctl::read<Ctl::opt_narenas>().value());
}

TEST(Mallctl, RefreshIsWhatMovesStatistics) {
  ASSERT_EQ(0, mallctl::refresh());
  const uint64_t epoch = mallctl::read<Ctl::epoch>().value();
  const uint64_t before = sum_over<Ctl::stats_arena_large_allocated>(pool);
  const Block block = Block::make(1 << 20, 1);
  ASSERT_TRUE(lies_in_pool(block.memory));
  EXPECT_EQ(before, sum_over<Ctl::stats_arena_large_allocated>(pool));
  EXPECT_EQ(epoch, mallctl::read<Ctl::epoch>().value());
  ASSERT_EQ(0, mallctl::refresh());
  EXPECT_EQ(epoch + 1, mallctl::read<Ctl::epoch>().value());
  EXPECT_EQ(before + (1 << 20),
            sum_over<Ctl::stats_arena_large_allocated>(pool));
  block.free();
}

TEST(Mallctl, ArenaNames) {
  const Block block = Block::make(100, 1);
  const unsigned arena = mallctl::arena_of(block.memory).value();
  char before[mallctl::arena_name_size];
  char name[mallctl::arena_name_size];
  ASSERT_EQ(0, mallctl::arena_name(arena, before));
  EXPECT_EQ(0, strncmp(before, "fts_query.", 10)) << before;

  EXPECT_EQ(0, mallctl::set_arena_name(arena, "renamed"));
  EXPECT_EQ(0, mallctl::arena_name(arena, name));
  EXPECT_STREQ("renamed", name);

  // A name too long is cut, and ends within the buffer.
  const std::string endless(100, 'n');
  EXPECT_EQ(0, mallctl::set_arena_name(arena, endless.c_str()));
  memset(name, 'x', sizeof name);
  EXPECT_EQ(0, mallctl::arena_name(arena, name));
  EXPECT_EQ(std::string(mallctl::arena_name_size - 1, 'n'), name);

  EXPECT_NE(0, mallctl::set_arena_name(arena, nullptr));
  EXPECT_EQ(0, mallctl::set_arena_name(arena, before));
  block.free();
}

// The option thp:never is not applied to it.
TEST(Mallctl, MetadataGetNoHugePages) {
  const unsigned arena = mallctl::read<Ctl::arenas_create>().value();
  const auto first = mallctl::keep_metadata_small(arena);
  ASSERT_TRUE(first);
  EXPECT_TRUE(has_no_huge_pages(first.value()));
  // The rest that went back is still zero: blocks come from it.
  void *const block = placed::allocate(arena, placed::no_cache, 100, false);
  ASSERT_NE(nullptr, block);
  placed::free(block, placed::no_cache, 100);
  mallctl::keep_metadata_small();
  for (unsigned none : {narenas(), 4096u, 4097u, ~0u})
    EXPECT_EQ(EFAULT, mallctl::keep_metadata_small(none).error()) << none;
}

TEST(Mallctl, ArenaOfForeignMemory) {
  int on_stack = 0;
  EXPECT_EQ(EINVAL, mallctl::arena_of(&on_stack).error());
  EXPECT_EQ(EINVAL, mallctl::arena_of(nullptr).error());
  EXPECT_EQ(EINVAL, mallctl::arena_of(declared).error());
}

TEST(Mallctl, PagesOfAnArenaAreAsOfNow) {
  const unsigned arena = mallctl::read<Ctl::arenas_create>().value();
  const auto before = mallctl::arena_pages(arena);
  ASSERT_TRUE(before);
  constexpr size_t size = 1 << 20;
  void *block = placed::allocate(arena, placed::no_cache, size, false);
  const size_t there = mallctl::arena_pages(arena).value().resident_bytes;
  EXPECT_GE(there, before.value().resident_bytes + size);
  placed::free(block, placed::no_cache, size);
  const auto freed = mallctl::arena_pages(arena).value();
  EXPECT_GE(freed.dirty_pages * mallctl::read<Ctl::arenas_page>().value(),
            size);
  EXPECT_GE(freed.resident_bytes, there);
  EXPECT_TRUE(mallctl::purge_arena(arena).value());
  const auto purged = mallctl::arena_pages(arena).value();
  EXPECT_EQ(0u, purged.dirty_pages);
  EXPECT_LE(purged.resident_bytes, there - size);
  // The statistics agree after a refresh.
  ASSERT_EQ(0, mallctl::refresh());
  EXPECT_EQ(mallctl::read<Ctl::stats_arena_resident>(arena).value(),
            mallctl::arena_pages(arena).value().resident_bytes);
  for (unsigned none : {narenas(), 4096u, 4097u, ~0u})
    EXPECT_EQ(EFAULT, mallctl::arena_pages(none).error()) << none;
}

#ifdef MEMDIAG_JEMALLOC_PREFIXED
#define MALLCTL je_mallctl
#else
#define MALLCTL mallctl
#endif

/** Extents that are given back wait in here, so that a purge lasts. */
std::atomic<int> given_back{0};
std::atomic<bool> may_go_on{false};

bool wait_when_given_back(extent_hooks_t *, void *, size_t, bool, unsigned) {
  ++given_back;
  given_back.notify_one();
  may_go_on.wait(false);
  return true;  // keep the address space
}

TEST(Mallctl, APurgeTellsThatAnotherIsAtWork) {
  given_back = 0;
  may_go_on = false;
  const unsigned arena = mallctl::read<Ctl::arenas_create>().value();
  const std::string name = "arena." + std::to_string(arena) + ".extent_hooks";
  extent_hooks_t *hooks;
  size_t size = sizeof hooks;
  ASSERT_EQ(0, ::MALLCTL(name.c_str(), &hooks, &size, nullptr, 0));
  extent_hooks_t slow = *hooks;
  slow.dalloc = wait_when_given_back;
  extent_hooks_t *slow_hooks = &slow;
  ASSERT_EQ(0, ::MALLCTL(name.c_str(), nullptr, nullptr, &slow_hooks,
                         sizeof slow_hooks));
  const auto make_dirty_pages = [arena] {
    constexpr size_t bytes = 1 << 20;
    placed::free(placed::allocate(arena, placed::no_cache, bytes, false),
                 placed::no_cache, bytes);
  };
  make_dirty_pages();
  std::thread first(
      [arena] { EXPECT_TRUE(mallctl::purge_arena(arena).value()); });
  given_back.wait(0);
  make_dirty_pages();
  EXPECT_FALSE(mallctl::purge_arena(arena).value());
  EXPECT_NE(0u, mallctl::arena_pages(arena).value().dirty_pages);
  may_go_on = true;
  may_go_on.notify_all();
  first.join();
  EXPECT_TRUE(mallctl::purge_arena(arena).value());
  EXPECT_EQ(0u, mallctl::arena_pages(arena).value().dirty_pages);
  // The hooks are the test's, so they must not outlive it.
  ASSERT_EQ(0, ::MALLCTL(name.c_str(), nullptr, nullptr, &hooks, sizeof hooks));
}

TEST(Mallctl, ExtentsAreSlabsAndLargeBlocks) {
  const unsigned arena = mallctl::read<Ctl::arenas_create>().value();
  void *small = placed::allocate(arena, placed::no_cache, 100, false);
  const auto slab = mallctl::extent_at(small);
  ASSERT_TRUE(slab);
  EXPECT_EQ(arena, slab.value().arena);
  EXPECT_GT(slab.value().regions, 1u);
  EXPECT_EQ(slab.value().regions - 1, slab.value().free_regions);
  EXPECT_GE(slab.value().bytes, 112 * slab.value().regions);
  void *large = placed::allocate(arena, placed::no_cache, 1 << 20, false);
  const auto extent = mallctl::extent_at(large);
  ASSERT_TRUE(extent);
  EXPECT_EQ(arena, extent.value().arena);
  EXPECT_EQ(1u, extent.value().regions);
  EXPECT_EQ(0u, extent.value().free_regions);
  EXPECT_GE(extent.value().bytes, size_t{1} << 20);
  EXPECT_EQ(mallctl::Pages::used, slab.value().pages);
  EXPECT_EQ(mallctl::Pages::used, extent.value().pages);
  placed::free(small, placed::no_cache, 100);
  placed::free(large, placed::no_cache, 1 << 20);
  // A former slab has no regions any more, and must not be read as a slab.
  const auto freed = mallctl::extent_at(small);
  if (freed) {
    EXPECT_EQ(1u, freed.value().regions);
    EXPECT_EQ(mallctl::Pages::dirty, freed.value().pages);
  }
  int on_stack = 0;
  for (const void *foreign : {static_cast<const void *>(&on_stack),
                              static_cast<const void *>(declared),
                              static_cast<const void *>(nullptr)})
    EXPECT_EQ(EINVAL, mallctl::extent_at(foreign).error());
  EXPECT_EQ(0u, mallctl::no_extents_from(large));
}

TEST(Mallctl, WhereNoExtentWasALookTellsAGigabyte) {
  constexpr size_t gigabyte = 1 << 30;
  void *const reserved =
      mmap(nullptr, 3 * gigabyte, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(MAP_FAILED, reserved);
  const auto begin = reinterpret_cast<uintptr_t>(reserved);
  const uintptr_t whole = (begin + gigabyte - 1) / gigabyte * gigabyte;
  const auto from = [](uintptr_t at) {
    return mallctl::no_extents_from(reinterpret_cast<const void *>(at));
  };
  EXPECT_EQ(gigabyte, from(whole));
  EXPECT_EQ(gigabyte - 4096, from(whole + 4096));
  EXPECT_EQ(0, munmap(reserved, 3 * gigabyte));
}

TEST(Placed, BlocksOfACacheComeBackFromIt) {
  const auto cache_index = mallctl::read<Ctl::tcache_create>();
  ASSERT_TRUE(cache_index);
  const auto cache = static_cast<placed::Cache>(cache_index.value());
  const unsigned arena = mallctl::read<Ctl::arenas_create>().value();
  for (int round = 0; round < 3; ++round) {
    for (size_t size : {size_t{0}, size_t{1}, size_t{100}, size_t{4000},
                        size_t{20000}, size_t{1} << 20}) {
      void *block = placed::allocate(arena, cache, size, false);
      ASSERT_NE(nullptr, block) << size;
      EXPECT_GE(placed::size_of(block), size);
      memset(block, 0xa5, size);
      placed::free(block, cache, size);
      // The same thread finds it again.
      if (size <= 4000) {
        void *again = placed::allocate(arena, cache, size, false);
        EXPECT_EQ(block, again) << size;
        placed::free(again, cache, size);
      }
      // Zeros are written where they are asked for, into the same block.
      auto *zeros = static_cast<unsigned char *>(
          placed::allocate(arena, cache, size, true));
      for (size_t i = 0; i < size; ++i) ASSERT_EQ(0, zeros[i]) << size;
      placed::free(zeros, cache, size);
    }
  }
  const unsigned index = cache_index.value();
  EXPECT_EQ(0, mallctl::write<Ctl::tcache_destroy>(index));
  // Nothing is left in a cache that has gone.
  ASSERT_EQ(0, mallctl::refresh());
  EXPECT_EQ(0u, mallctl::read<Ctl::stats_arena_small_allocated>(arena).value());
  EXPECT_EQ(0u, mallctl::read<Ctl::stats_arena_large_allocated>(arena).value());
}

TEST(Mallctl, MallocIsServedWhereItSaysSo) {
  void *block = calloc(1, 100);
  EXPECT_EQ(mallctl::serves_malloc(), bool{mallctl::arena_of(block)});
  free(block);
  int *object = new int(1);
  EXPECT_EQ(mallctl::serves_malloc(), bool{mallctl::arena_of(object)});
  delete object;
}

TEST(Mallctl, UsableIsTheSizeClass) {
  EXPECT_EQ(placed::usable(1), placed::usable(0));
  size_t last = 0;
  for (size_t size = 1; size < (8 << 20); size += 1 + size / 7) {
    const size_t usable = placed::usable(size);
    EXPECT_GE(usable, size);
    EXPECT_GE(usable, last);
    EXPECT_EQ(usable, placed::usable(usable));
    last = usable;
  }
  EXPECT_EQ(0u, placed::usable(SIZE_MAX));
}

TEST(Mallctl, PlacedBlocksAreInTheArenaAskedFor) {
  const unsigned arena = mallctl::read<Ctl::arenas_create>().value();
  for (size_t size : sizes) {
    void *block = placed::allocate(arena, placed::no_cache, size, false);
    ASSERT_NE(nullptr, block);
    EXPECT_EQ(arena, mallctl::arena_of(block).value()) << size;
    placed::free(block, placed::no_cache, size);
  }
  EXPECT_EQ(nullptr,
            placed::allocate(arena, placed::no_cache, SIZE_MAX, false));
  EXPECT_EQ(nullptr,
            placed::allocate(arena, placed::no_cache, PTRDIFF_MAX, false));
}

TEST(ResultTest, ValueOrError) {
  constexpr auto good = Result<int>::ok(7);
  static_assert(good && good.value() == 7 && good.error() == 0);
  static_assert(good.value_or(9) == 7);
  constexpr auto bad = Result<int>::failed(ENOENT);
  static_assert(!bad && bad.error() == ENOENT && bad.value_or(9) == 9);
  // A reading of zero is a value, not an error.
  static_assert(bool{Result<int>::ok(0)});
  EXPECT_TRUE(good);
  EXPECT_FALSE(bad);
}

TEST(Placed, SizeClassesAreTheLibrarys) {
  for (size_t size = 0; size < 3000000; size += size < 70000 ? 1 : 511)
    ASSERT_EQ(placed::usable_by_library(size), placed::usable(size)) << size;
}

}  // namespace memdiag_test
