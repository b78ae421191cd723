/* Routes: keys, declared pools, overrides, what lives where. */

#include "mysys/memdiag/routes/routes.h"

#include <thread>

#include "mysys/memdiag/pools/attention.h"
#include "mysys/memdiag/unittest/stopped_in_malloc.h"
#include "mysys/memdiag/unittest/test.h"
#include "mysys/memdiag/upstream/bytes.h"

namespace memdiag_test {

using memdiag::Packed_tag;
using memdiag::Place;
using memdiag::pool_of;
namespace routes = memdiag::routes;

/** The tag of small blocks, unless a size is given. */
Packed_tag tag_of_key(uint32_t key, size_t size = memdiag::large_block) {
  return memdiag::tag_of_key(key, size);
}

uint32_t note(const char *category, const char *name, uint32_t key) {
  return memdiag_note_instrument(category, name, key);
}

/** The row of a route, by name. */
routes::Row row_of(std::string_view name) {
  for (const routes::Row &row : routes::all())
    if (row.name == name) return row;
  ADD_FAILURE() << "no route " << name;
  return {};
}

bool lies_in(Pool owner, const void *block) {
  const auto arena = mallctl::arena_of(block);
  return arena && pools::owner_of_arena(arena.value()) == owner;
}

TEST(Routes, TheLongestPrefixCounts) {
  EXPECT_EQ(Pool::fts_query, routes::declared_pool("memory/innodb/fts0que"));
  EXPECT_EQ(Pool::fts_cache, routes::declared_pool("memory/innodb/fts0fts"));
  EXPECT_EQ(Pool::innodb, routes::declared_pool("memory/innodb/os0file"));
  EXPECT_EQ(Pool::statement,
            routes::declared_pool("memory/sql/THD::main_mem_root"));
  EXPECT_EQ(Pool::session, routes::declared_pool("memory/sql/String::value"));
  EXPECT_EQ(Pool::general, routes::declared_pool("memory/sql/errmsgs::server"));
  EXPECT_EQ(Pool::general, routes::declared_pool(""));
}

FRESH_TEST(Routes, OnlyBlocksWhoseUsersLookMayBeRefused) {
  const auto may_be_refused = [](const char *name, uint32_t key) {
    (void)note("sql", name, key);
    return pools::may_be_refused[memdiag::route_of(tag_of_key(key))].load();
  };
  EXPECT_TRUE(may_be_refused("user_var_entry::value", 7));
  EXPECT_FALSE(may_be_refused("Prepared_statement::main_mem_root", 8));
}

FRESH_TEST(Routes, PerformanceSchemasKeysAreTaken) {
  EXPECT_EQ(0u, tag_of_key(7));
  EXPECT_EQ(7u, note("sql", "THD::main_mem_root", 7));
  EXPECT_EQ(Pool::statement, pool_of(tag_of_key(7)));
  EXPECT_EQ(8u, note("sql", "errmsgs::server", 8));
  EXPECT_EQ(0u, tag_of_key(8)) << "general is malloc()";
  EXPECT_FALSE(row_of("memory/sql/errmsgs::server").live_bytes);
  // A plugin that was uninstalled and installed again.
  const size_t count = routes::all().size();
  EXPECT_EQ(9u, note("sql", "THD::main_mem_root", 9));
  EXPECT_EQ(count, routes::all().size());
  EXPECT_EQ(Pool::statement, pool_of(tag_of_key(9)));
}

FRESH_TEST(Routes, TheCeilingKnowsBuffersAndEvents) {
  const auto may_be_smaller = [](uint32_t key) {
    return pools::may_be_smaller[memdiag::route_of(tag_of_key(key))].load();
  };
  EXPECT_EQ(0u, pools::account_of_events);
  (void)note("mysys", "IO_CACHE", 7);
  EXPECT_TRUE(may_be_smaller(7));
  (void)note("sql", "Log_event", 6);
  EXPECT_EQ(memdiag::route_of(tag_of_key(6)), pools::account_of_events);
  EXPECT_FALSE(may_be_smaller(6));
  (void)note("sql", "THD::main_mem_root", 8);
  EXPECT_FALSE(may_be_smaller(8));
  (void)note("sql", "binlog_cache_mngr", 9);
  EXPECT_TRUE(may_be_smaller(9)) << "binlog_cache.cc gives it such a buffer";
}

FRESH_TEST(Routes, OwnKeysWherePerformanceSchemaGivesNone) {
  const uint32_t one = note("sql", "THD::main_mem_root", 0);
  const uint32_t other = note("sql", "NET::buff", 0);
  EXPECT_NE(0u, one);
  EXPECT_NE(one, other);
  EXPECT_EQ(Pool::statement, pool_of(tag_of_key(one)));
  EXPECT_EQ(Pool::session, pool_of(tag_of_key(other)));
  EXPECT_EQ(one, note("sql", "THD::main_mem_root", 0));
  // mysys registers before Performance Schema is there, and then again.
  EXPECT_EQ(3u, note("sql", "THD::main_mem_root", 3));
  EXPECT_EQ(Pool::statement, pool_of(tag_of_key(3)));
  EXPECT_EQ(Pool::statement, pool_of(tag_of_key(one)));
}

FRESH_TEST(Routes, MoreInstrumentsThanThereIsRoomForStayGeneral) {
  for (int i = 0; i < 2000; ++i)
    (void)note("innodb", ("test" + std::to_string(i)).c_str(), 0);
  EXPECT_EQ(routes::max_routes, routes::all().size());
  EXPECT_EQ(0u, tag_of_key(0));
  EXPECT_EQ(0u, note("innodb", "one more", 0));
}

FRESH_TEST(Routes, OfSomeOnlyLargeBlocksArePooled) {
  EXPECT_EQ(8u, note("sql", "String::value", 8));
  EXPECT_EQ(0u, tag_of_key(8));
  const Packed_tag large = tag_of_key(8, memdiag::large_block + 1);
  EXPECT_EQ(Pool::session, pool_of(large));
  EXPECT_EQ(0u, large & memdiag::only_large);
  void *block = memdiag_allocate(large, memdiag::large_block + 1, false);
  EXPECT_TRUE(lies_in(Pool::session, block));
  EXPECT_EQ(1u, row_of("memory/sql/String::value").live_blocks);
  EXPECT_EQ(memdiag::large_block,
            row_of("memory/sql/String::value").larger_than);
  memdiag_free(large, block, memdiag::large_block + 1);
  // An option that says so pools all of them.
  routes::options.routes = "memory/sql/String=statement";
  EXPECT_EQ("", routes::apply_options());
  EXPECT_EQ(Pool::statement, pool_of(tag_of_key(8)));
  EXPECT_EQ(0u, row_of("memory/sql/String::value").larger_than);
}

FRESH_TEST(Routes, BlocksWithoutAKey) {
  EXPECT_EQ(0u, tag_of_key(0, 1000000)) << "not before the options were read";
  routes::options = {"", ""};
  EXPECT_EQ("", routes::apply_options());
  for (uint32_t key : {0u, memdiag::max_keys}) {
    EXPECT_EQ(0u, tag_of_key(key));
    EXPECT_EQ(Pool::statement, pool_of(tag_of_key(key, 1000000)));
  }
  EXPECT_EQ(Pool::innodb, pool_of(memdiag::tag_of_innodb_key(0, 1)));
  EXPECT_EQ(0u, memdiag::tag_of_innodb_key(8, 1));
}

/** Blocks that come between that and the end of the start are many. */
FRESH_TEST(Routes, BlocksWithoutAKeyArePooledWhenEnginesBegin) {
  routes::options = {"", ""};
  for (const char *category : {"sql", "archive", "innodb_", "innodc"})
    EXPECT_EQ(8u, note(category, "x", 8));
  for (uint32_t key : {0u, memdiag::max_keys})
    EXPECT_EQ(0u, tag_of_key(key, 1000000));
  EXPECT_EQ(9u, note("innodb", "x", 9));
  for (uint32_t key : {0u, memdiag::max_keys})
    EXPECT_EQ(Pool::statement, pool_of(tag_of_key(key, 1000000)));
}

TEST(Routes, BlocksOfAPlaceWithoutTags) {
  void *block = memdiag::place_allocate(memdiag::Place::temptable, 1 << 20);
  ASSERT_NE(nullptr, block);
  EXPECT_TRUE(lies_in(Pool::temp_table, block));
  EXPECT_EQ(1u, row_of("temptable").live_blocks);
  memdiag::place_free(memdiag::Place::temptable, block);
  EXPECT_EQ(0u, row_of("temptable").live_blocks);
  EXPECT_EQ(0u, row_of("temptable").live_bytes);
}

TEST(Routes, BlocksThatServedForAPlaceAreCountedDown) {
  const auto fallbacks = [] {
    return memdiag::pools::counters(Pool::temp_table).fallbacks;
  };
  const uint64_t before = fallbacks();
  memdiag::pools::fail_allocations_for_test({.count = 1});
  void *served = memdiag::place_allocate(memdiag::Place::temptable, 1 << 20);
  EXPECT_EQ(before + 1, fallbacks());
  EXPECT_FALSE(lies_in(Pool::temp_table, served));
  EXPECT_EQ(1u, memdiag::pools::fallback_blocks(Pool::temp_table));
  memdiag::place_free(memdiag::Place::temptable, served);
  // No free of the pool asks where its block came from any more.
  EXPECT_EQ(0u, memdiag::pools::fallback_blocks(Pool::temp_table));
}

TEST(Routes, RowsOfEvents) {
  const std::string text(100000, 'r');
  {
    memdiag::Row_bytes rows;
    ASSERT_TRUE(memdiag::assign(&rows, text.data(), 1000, 1001));
    EXPECT_EQ(0u, row_of("binlog_event_rows").live_blocks) << "a small block";
    ASSERT_TRUE(memdiag::assign(&rows, text.data(), text.size(), 100001));
    EXPECT_TRUE(lies_in(Pool::binlog, rows.data()));
    EXPECT_EQ(text, std::string(rows.begin(), rows.end()));
    const uint8_t *const before = rows.data();
    rows.push_back(0);
    EXPECT_EQ(before, rows.data()) << "there was room for one more";
    memdiag::Row_bytes moved = std::move(rows);
    moved.resize(1000000);
    EXPECT_EQ(text, std::string(moved.begin(), moved.begin() + 100000));
    EXPECT_EQ(1u, row_of("binlog_event_rows").live_blocks);
    if (!sanitized) {  // which ends the process for such a size
      EXPECT_FALSE(memdiag::assign(&rows, text.data(), 1, SIZE_MAX / 4));
      EXPECT_TRUE(rows.empty());
    }
  }
  EXPECT_EQ(0u, row_of("binlog_event_rows").live_blocks);
}

TEST(PackedRow, BecomesTheRowsOfAnEvent) {
  constexpr size_t most = 1 << 30, length = 100000;
  memdiag::Row_bytes rows;
  memdiag::Packed_row row;
  uint8_t *const room = row.room(2 * length);
  ASSERT_NE(nullptr, room);
  EXPECT_TRUE(lies_in(Pool::binlog, room));
  // An UPDATE: the images have room for more than they take.
  uint8_t *const after = room + length;
  memset(room, 'b', length - 10);
  memset(after, 'a', length - 20);
  EXPECT_TRUE(memdiag::Packed_row::give(&rows, room, length - 10, most));
  EXPECT_TRUE(memdiag::Packed_row::give(&rows, after, length - 20, most));
  EXPECT_EQ(room, rows.data());
  EXPECT_EQ(std::string(length - 10, 'b') + std::string(length - 20, 'a'),
            std::string(rows.begin(), rows.end()));
  EXPECT_EQ(1u, row_of("binlog_event_rows").live_blocks);
}

/** The blocks are sized for whole documents, of which PARTIAL_JSON or an image
without BLOBs logs little. */
TEST(PackedRow, AnEventOfASmallRowKeepsNoLargeBlock) {
  constexpr size_t most = 1 << 30, length = 8 << 20;
  memdiag::Row_bytes small, large;
  {
    memdiag::Packed_row row;
    uint8_t *const room = row.room(2 * length);
    ASSERT_NE(nullptr, room);
    memset(room, 'b', 10);
    memset(room + length, 'a', 100000);
    EXPECT_TRUE(memdiag::Packed_row::give(&small, room, 10, most));
    EXPECT_TRUE(memdiag::Packed_row::give(&small, room + length, 100000, most));
  }
  EXPECT_EQ(std::string(10, 'b') + std::string(100000, 'a'),
            std::string(small.begin(), small.end()));
  EXPECT_GT(1u << 20, row_of("binlog_event_rows").live_bytes);
  {
    memdiag::Packed_row row;
    uint8_t *const room = row.room(2 * length);
    ASSERT_NE(nullptr, room);
    memset(room, 'b', 10);
    memset(room + length, 'a', length);
    EXPECT_TRUE(memdiag::Packed_row::give(&large, room, 10, most));
    EXPECT_TRUE(memdiag::Packed_row::give(&large, room + length, length, most));
    EXPECT_EQ(room, large.data());
  }
  EXPECT_EQ(std::string(10, 'b') + std::string(length, 'a'),
            std::string(large.begin(), large.end()));
  {
    // Without memory for a copy, the event has the block.
    small = memdiag::Row_bytes();
    memdiag::Packed_row row;
    uint8_t *const room = row.room(2 * length);
    memset(room, 'b', 100000);
    memdiag::pools::fail_allocations_for_test({.count = 1, .hard = true});
    EXPECT_TRUE(memdiag::Packed_row::give(&small, room, 100000, most));
    EXPECT_EQ(std::string(100000, 'b'),
              std::string(small.begin(), small.end()));
    EXPECT_EQ(0u, memdiag::pools::fail_allocations_for_test({}));
    EXPECT_EQ(room, small.data());
  }
}

TEST(PackedRow, IsCopiedWhereItCannotBeGiven) {
  constexpr size_t most = 1 << 30, length = 100000;
  memdiag::Row_bytes rows, others;
  const uint8_t foreign[10]{};
  {
    memdiag::Packed_row row;
    EXPECT_EQ(nullptr, row.room(memdiag::large_block)) << "a small row";
    EXPECT_FALSE(memdiag::Packed_row::give(&rows, foreign, 10, most));
    uint8_t *const room = row.room(length);
    ASSERT_NE(nullptr, room);
    memset(room, 'r', length);
    EXPECT_FALSE(memdiag::Packed_row::give(&rows, foreign, 10, most));
    EXPECT_FALSE(memdiag::Packed_row::give(&rows, room, length, length - 1));
    others.push_back(1);
    EXPECT_FALSE(memdiag::Packed_row::give(&others, room, length, most));
    EXPECT_EQ(1u, others.size());
    EXPECT_TRUE(rows.empty());
    EXPECT_TRUE(memdiag::Packed_row::give(&rows, room, 10, most));
    others.clear();
    EXPECT_FALSE(memdiag::Packed_row::give(&others, room, 10, most))
        << "another event has it";
  }
  EXPECT_FALSE(memdiag::Packed_row::give(&rows, rows.data(), 1, most))
      << "the packed row has ended";
  memdiag::pools::fail_allocations_for_test({.count = 1});
  memdiag::Packed_row row;
  uint8_t *const room = row.room(length);  // the general allocator's
  ASSERT_NE(nullptr, room);
  rows = {};
  EXPECT_TRUE(memdiag::Packed_row::give(&rows, room, 10, most));
  rows = {};
  EXPECT_EQ(0u, row_of("binlog_event_rows").live_blocks);
}

FRESH_TEST(Routes, WhoeverReadsThemHoldsNobodyInMalloc) {
  for (uint32_t key = 1; key < 100; ++key)
    (void)note("sql", ("instrument " + std::to_string(key)).c_str(), key);
  EXPECT_TRUE(others_go_on([] { (void)routes::all(); },
                           [] { (void)routes::name_of_key(5); }));
}

FRESH_TEST(Routes, WhoeverRegistersThemHoldsNobodyInMalloc) {
  EXPECT_TRUE(others_go_on(
      [] {
        for (uint32_t key = 1; key < 100; ++key)
          (void)memdiag_note_instrument(
              "sql", ("instrument " + std::to_string(key)).c_str(), key);
      },
      [] { (void)routes::name_of_key(5); }));
}

TEST(Routes, BlocksLieInThePoolAndAreCounted) {
  const uint32_t key = note("sql", "test_quick_select", 11);
  const Packed_tag tag = tag_of_key(key);
  const char *const name = "memory/sql/test_quick_select";
  const auto before = row_of(name);
  EXPECT_EQ(Pool::statement, before.pool);
  uint64_t bytes = 0;
  std::vector<std::pair<void *, size_t>> blocks;
  for (size_t size : sizes) {
    void *block = memdiag_allocate(tag, size, false);
    ASSERT_NE(nullptr, block);
    EXPECT_TRUE(lies_in(Pool::statement, block)) << size;
    memset(block, 7, size);
    bytes += memdiag::placed::usable(size);
    blocks.emplace_back(block, size);
  }
  const auto during = row_of(name);
  EXPECT_EQ(*before.live_bytes + bytes, during.live_bytes);
  EXPECT_EQ(*before.live_blocks + blocks.size(), during.live_blocks);
  bool size_known = false;
  std::thread([&] {  // on another CPU, perhaps
    for (const auto &[block, size] : blocks)
      memdiag_free(tag, block, (size_known = !size_known) ? size : 0);
  })
      .join();
  const auto after = row_of(name);
  EXPECT_EQ(before.live_bytes, after.live_bytes);
  EXPECT_EQ(before.live_blocks, after.live_blocks);
}

TEST(Routes, Zeroed) {
  const Packed_tag tag = tag_of_key(note("sql", "NET::buff", 12));
  for (size_t size : sizes) {
    for (int round = 0; round < 2; ++round) {
      auto *block =
          static_cast<unsigned char *>(memdiag_allocate(tag, size, true));
      ASSERT_NE(nullptr, block);
      for (size_t i = 0; i < size; ++i) ASSERT_EQ(0, block[i]);
      memset(block, 9, size);
      memdiag_free(tag, block, size);
    }
  }
}

FRESH_TEST(Routes, OptionsHoldForWhatComesLater) {
  const uint32_t key = note("sql", "NET::buff", 5);
  const Packed_tag old_tag = tag_of_key(key);
  void *block = memdiag_allocate(old_tag, 1000, false);
  routes::options.routes = "memory/sql/NET=temp_table, mem_heap/row=session";
  EXPECT_EQ(6u, note("sql", "NET::other", 6));
  EXPECT_EQ("", routes::apply_options());
  for (uint32_t each : {key, 6u})
    EXPECT_EQ(Pool::temp_table, pool_of(tag_of_key(each)));
  EXPECT_EQ(Pool::temp_table, row_of("memory/sql/NET::buff").pool);
  EXPECT_EQ(Pool::session, pool_of(routes::tag_of_place(Place::heap_row)));
  EXPECT_TRUE(lies_in(Pool::session, block)) << "where it was";
  memdiag_free(old_tag, block, 1000);
  EXPECT_EQ(0u, row_of("memory/sql/NET::buff").live_blocks);
}

FRESH_TEST(Routes, TheLastEntryForARouteCounts) {
  routes::options.routes =
      "memory/sql/NET::buff=general,memory/sql/NET=session,"
      "memory/sql/NET::buff=ddl";
  EXPECT_EQ(Pool::ddl, pool_of(tag_of_key(note("sql", "NET::buff", 5))));
}

FRESH_TEST(Routes, UnknownOnesInOptionsAreNamed) {
  (void)note("sql", "NET::buff", 5);
  routes::options.routes =
      "memory/sql/NTE=general, memory/sql/NET=session,mem_heap/row=ddl,"
      "nosuch=general";
  EXPECT_EQ("", routes::apply_options());
  EXPECT_EQ("memory/sql/NTE, nosuch", routes::unknown_in_options());
  (void)note("sql", "NTE", 6);
  EXPECT_EQ("nosuch", routes::unknown_in_options());
  routes::options.routes = "";
  EXPECT_EQ("", routes::apply_options());
  EXPECT_EQ("", routes::unknown_in_options());
}

FRESH_TEST(Routes, PoolsCanBeDisabled) {
  const uint32_t key = note("sql", "NET::buff", 5);
  routes::options.disabled_pools = "perfschema,session";
  EXPECT_EQ(7u, note("sql", "THD::main_mem_root", 7));
  EXPECT_EQ("", routes::apply_options());
  EXPECT_EQ(0u, tag_of_key(key));
  EXPECT_EQ(Pool::statement, pool_of(tag_of_key(7)));
  void *block = memdiag_perfschema_allocate(1000, 64, true);
  EXPECT_EQ(0u, reinterpret_cast<uintptr_t>(block) % 64);
  EXPECT_FALSE(lies_in(Pool::perfschema, block));
  memdiag_perfschema_free(block);
  routes::options.disabled_pools = "all";
  EXPECT_EQ("", routes::apply_options());
  EXPECT_EQ(0u, tag_of_key(7));
  for (const routes::Row &row : routes::all())
    EXPECT_EQ(Pool::general, row.pool) << row.name;
}

FRESH_TEST(Routes, WrongOptionsSayWhatIsWrongAndChangeNothing) {
  (void)note("sql", "NET::buff", 5);
  const auto wrong = [](const char *list, const char *pools,
                        const char *message) {
    routes::options = {list, pools};
    EXPECT_NE(std::string::npos, routes::apply_options().find(message))
        << routes::apply_options();
    EXPECT_EQ(Pool::session, pool_of(tag_of_key(5)));
  };
  wrong("memory/sql/NET", nullptr,
        "memdiag_routes: 'memory/sql/NET' is not of");
  wrong("memory/sql/NET=temp_table,=session", nullptr, "'=session' is not of");
  wrong("memory/sql/NET=nowhere", nullptr, "name one of general, fts_query,");
  wrong("memory/sql/NET=connection", nullptr, "'connection' is malloc() of");
  wrong("memory/sql/NET=", nullptr, "'' is not a pool");
  wrong(nullptr, "session,nowhere", "memdiag_disabled_pools: 'nowhere'");
  wrong(nullptr, "general",
        "'general' is not a pool that can be disabled; say all, or name some "
        "of connection,");
  routes::options = {"", ""};
  EXPECT_EQ("", routes::apply_options());
}

TEST(Routes, PerformanceSchemasMemoryIsAlignedAndPooled) {
  for (size_t size : std::initializer_list<size_t>{1, 63, 64, 65, 200, 4000,
                                                   9000, 100000, 5000000}) {
    auto *block = static_cast<unsigned char *>(
        memdiag_perfschema_allocate(size, 64, true));
    ASSERT_NE(nullptr, block);
    EXPECT_EQ(0u, reinterpret_cast<uintptr_t>(block) % 64) << size;
    EXPECT_TRUE(lies_in(Pool::perfschema, block));
    for (size_t i = 0; i < size; ++i) ASSERT_EQ(0, block[i]);
    memset(block, 1, static_cast<size_t>(size));
    memdiag_perfschema_free(block);
  }
  EXPECT_EQ(0u, row_of("performance_schema").live_blocks);
  EXPECT_EQ(0u, row_of("performance_schema").live_bytes);
  void *general = malloc(100);
  memdiag_perfschema_free(general);
  memdiag_perfschema_free(nullptr);
}

}  // namespace memdiag_test
