/*
  Memory instruments: rows of literal figures.
*/

#include "plugin/memdiag/ledger/instruments.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace memdiag::instruments {
namespace {

constexpr size_t index_of(Pool pool) { return static_cast<size_t>(pool); }

routes::Row route(const char *name, Pool pool, uint64_t bytes = 0,
                  uint64_t blocks = 0, uint64_t larger_than = 0) {
  routes::Row row{name, pool, spec_of(pool).name, larger_than, {}, {}};
  if (pool != Pool::general) {
    row.live_bytes = bytes;
    row.live_blocks = blocks;
  }
  return row;
}

/** Half of the sessions' memory is resident, and all of InnoDB's pools'. */
Shares some_shares() {
  Shares shares;
  shares.fill(1.0);
  shares[index_of(Pool::session)] = 0.5;
  return shares;
}

Row row_of(const char *name, std::vector<routes::Row> routes,
           std::vector<Counted> counted, const Shares &shares = some_shares()) {
  for (Row &row : rows(routes, counted, shares))
    if (row.event_name == name) return row;
  ADD_FAILURE() << "no row " << name;
  return {};
}

void expect_no_live(const Row &row) {
  EXPECT_FALSE(row.live_bytes);
  EXPECT_FALSE(row.live_blocks);
  EXPECT_FALSE(row.overhead_bytes);
  EXPECT_FALSE(row.resident_bytes);
}

constexpr const char *variable = "memory/sql/user_var_entry::value";

TEST(Instruments, Exact) {
  const Row row = row_of(variable, {route(variable, Pool::session, 20480, 2)},
                         {{variable, true, 17000, 2, 99999}});
  EXPECT_STREQ("session", row.pool.value());
  EXPECT_EQ(17000u, row.counted_bytes);
  EXPECT_EQ(2u, row.counted_blocks);
  EXPECT_EQ(20480u, row.live_bytes);
  EXPECT_EQ(2u, row.live_blocks);
  EXPECT_EQ(3480, row.overhead_bytes);
  EXPECT_EQ(10240u, row.resident_bytes);
  EXPECT_STREQ("exact", row.note);
}

TEST(Instruments, OverheadIsNegativeWhereMuchWasFreedMeanwhile) {
  const Row row = row_of(variable, {route(variable, Pool::session, 1024, 1)},
                         {{variable, true, 4096, 1, 4096}});
  EXPECT_EQ(-3072, row.overhead_bytes);
}

TEST(Instruments, WithoutPerformanceSchemaNothingIsCounted) {
  for (const std::vector<Counted> &counted :
       {std::vector<Counted>{},
        std::vector<Counted>{{variable, false, 5, 1, 5}}}) {
    const Row row =
        row_of(variable, {route(variable, Pool::session, 20480, 2)}, counted);
    EXPECT_FALSE(row.counted_bytes);
    EXPECT_FALSE(row.counted_blocks);
    EXPECT_FALSE(row.overhead_bytes);
    EXPECT_EQ(20480u, row.live_bytes);
    EXPECT_EQ(10240u, row.resident_bytes);
    EXPECT_STREQ("not counted by Performance Schema", row.note);
  }
}

TEST(Instruments, OneThatIsOffIsNotKnown) {
  const std::vector<Counted> all = {{"on", true, 5, 1, 5},
                                    {"off", false, 6, 1, 6}};
  EXPECT_EQ(5u, counted_bytes(all, "on"));
  EXPECT_FALSE(counted_bytes(all, "off"));
  EXPECT_FALSE(counted_bytes(all, "none"));
}

TEST(Instruments, SmallBlocksOfMallocAreNotKnown) {
  const char *const name = "memory/sql/String::value";
  const Row row =
      row_of(name, {route(name, Pool::session, 1 << 20, 1, large_block)},
             {{name, true, (1 << 20) + 500, 20, 0}});
  EXPECT_EQ(uint64_t{1} << 20, row.live_bytes);
  EXPECT_EQ(uint64_t{1} << 19, row.resident_bytes);
  EXPECT_FALSE(row.overhead_bytes);
  EXPECT_STREQ("large blocks only", row.note);
}

TEST(Instruments, WhatMallocHasIsNotKnown) {
  const char *const name = "memory/sql/errmsgs::server";
  // With a route to it, or beyond those that there is room for.
  for (const std::vector<routes::Row> &routes :
       {std::vector<routes::Row>{route(name, Pool::general)},
        std::vector<routes::Row>{}}) {
    const Row row = row_of(name, routes, {{name, true, 300, 3, 300}});
    EXPECT_STREQ("general", row.pool.value());
    EXPECT_EQ(300u, row.counted_bytes);
    expect_no_live(row);
    EXPECT_STREQ("not pooled", row.note);
  }
}

TEST(Instruments, RegionsAreNotTheAllocators) {
  const char *const name = "memory/innodb/buf_buf_pool";
  const Row row = row_of(name, {route(name, Pool::innodb, 0, 0)},
                         {{name, true, 1 << 27, 1, 1 << 27}});
  EXPECT_FALSE(row.pool);
  EXPECT_EQ(uint64_t{1} << 27, row.counted_bytes);
  expect_no_live(row);
  EXPECT_STREQ("region", row.note);
}

TEST(Instruments, PerformanceSchemasOwnLiveTogether) {
  const char *const own = "memory/performance_schema/table_handles";
  const std::vector<routes::Row> routes{
      route("performance_schema", Pool::perfschema, 5000, 3)};
  const std::vector<Counted> counted{{own, true, 4000, 1, 4000}};
  const Row row = row_of(own, routes, counted);
  EXPECT_EQ(4000u, row.counted_bytes);
  expect_no_live(row);
  EXPECT_STREQ("with performance_schema", row.note);
  const Row all = row_of("performance_schema", routes, counted);
  EXPECT_EQ(5000u, all.live_bytes);
  EXPECT_FALSE(all.counted_bytes);
  EXPECT_STREQ("not counted by Performance Schema", all.note);
}

constexpr const char *heaps = "memory/innodb/memory";

TEST(Instruments, HeapsAreOneInstrumentInSeveralPools) {
  const std::vector<Counted> counted{{heaps, true, 700, 7, 700}};
  const Row row = row_of(heaps,
                         {route("mem_heap/fts", Pool::fts_cache, 256, 1),
                          route("mem_heap/row", Pool::transaction, 512, 4),
                          route(heaps, Pool::innodb, 128, 2)},
                         counted);
  EXPECT_FALSE(row.pool);
  EXPECT_EQ(896u, row.live_bytes);
  EXPECT_EQ(7u, row.live_blocks);
  EXPECT_EQ(196, row.overhead_bytes);
  EXPECT_EQ(896u, row.resident_bytes);
  EXPECT_STREQ("exact", row.note);
}

TEST(Instruments, APlaceWithoutAPoolTakesItsInstrumentsRoute) {
  const std::vector<Counted> counted{{heaps, true, 700, 7, 700}};
  const auto with_pools = [&counted](Pool place, Pool own) {
    return row_of(
        heaps,
        {route("mem_heap/fts", Pool::fts_cache, 256, 1),
         route("mem_heap/row", place, 512, 4), route(heaps, own, 128, 2)},
        counted);
  };
  EXPECT_EQ(384u, with_pools(Pool::general, Pool::innodb).live_bytes);
  EXPECT_EQ(768u, with_pools(Pool::transaction, Pool::general).live_bytes);
  const Row row = with_pools(Pool::general, Pool::general);
  EXPECT_STREQ("not pooled", row.note);
  expect_no_live(row);
}

TEST(Instruments, WhereSomeHeapsAreLargeBlocksOnlySoIsTheInstrument) {
  const Row row = row_of(heaps,
                         {route("mem_heap/fts", Pool::fts_cache, 256, 1),
                          route("mem_heap/row", Pool::transaction, 4096, 1,
                                memdiag::large_heap_block),
                          route(heaps, Pool::innodb, 128, 2)},
                         {{heaps, true, 9000, 9, 9000}});
  EXPECT_EQ(4480u, row.live_bytes);
  EXPECT_FALSE(row.overhead_bytes);
  EXPECT_STREQ("large blocks only", row.note);
}

TEST(Instruments, TempTableIsCountedByItsPlace) {
  const char *const name = "memory/temptable/physical_ram";
  const Row row = row_of(name,
                         {route("temptable", Pool::temp_table, 1 << 20, 1),
                          route(name, Pool::general)},
                         {{name, true, 1 << 20, 1, 0}});
  EXPECT_STREQ("temp_table", row.pool.value());
  EXPECT_EQ(0, row.overhead_bytes);
  EXPECT_STREQ("exact", row.note);
}

TEST(Instruments, EachOnceInTheOrderOfNames) {
  const std::vector<routes::Row> routes{
      route("(without key)", Pool::statement, 0, 0, large_block),
      route("mem_heap/row", Pool::transaction), route(heaps, Pool::innodb),
      route("memory/a/b", Pool::session)};
  const std::vector<Counted> counted{{"memory/a/b", true, 0, 0, 0},
                                     {"memory/a/a", true, 0, 0, 0},
                                     {heaps, true, 0, 0, 0}};
  std::vector<std::string> names;
  for (const Row &row : rows(routes, counted, some_shares()))
    names.push_back(row.event_name);
  EXPECT_EQ((std::vector<std::string>{"(without key)", "memory/a/a",
                                      "memory/a/b", heaps}),
            names);
}

TEST(Instruments, WithoutTheLedgerNothingIsKnownToBeResident) {
  const Row row = row_of(variable, {route(variable, Pool::session, 20480, 2)},
                         {{variable, true, 17000, 2, 0}}, Shares{});
  EXPECT_FALSE(row.resident_bytes);
  EXPECT_EQ(3480, row.overhead_bytes);
  EXPECT_STREQ("exact", row.note);
}

TEST(InstrumentShares, PartOfAPoolsLiveBytesThatTheLedgerHas) {
  std::array<Pool_row, pool_count> pools{};
  for (Pool_row &pool : pools) pool.live_bytes = 1000;
  pools[index_of(Pool::ddl)].live_bytes = 0;
  pools[index_of(Pool::binlog)].live_bytes.reset();
  const auto row = [](const char *component, const char *name,
                      const char *state, std::optional<int64_t> bytes) {
    return ledger::Row{component, name, state, bytes, {}, {}};
  };
  const Shares found =
      shares(pools, std::vector{row("pool", "session", "live", 250),
                                row("pool", "session", "dirty", 900),
                                row("region", "session", "live", 900),
                                row("pool", "innodb", "live", 1200),
                                row("pool", "ddl", "live", 0),
                                row("pool", "binlog", "live", 10),
                                row("pool", "statement", "live", {})});
  EXPECT_EQ(0.25, found[index_of(Pool::session)]);
  EXPECT_EQ(1.0, found[index_of(Pool::innodb)]);
  EXPECT_EQ(1.0, found[index_of(Pool::ddl)]);
  EXPECT_FALSE(found[index_of(Pool::binlog)]);
  EXPECT_FALSE(found[index_of(Pool::statement)]);
  EXPECT_FALSE(found[index_of(Pool::fts_query)]);
}

}  // namespace
}  // namespace memdiag::instruments
