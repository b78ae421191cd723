/*
  The budget of literal facts.
*/

#include "plugin/memdiag/budget/budget.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "mysys/memdiag/pools/pools.h"
#include "plugin/memdiag/tables/advice_tables.h"

namespace memdiag::budget {
namespace {

constexpr uint64_t sessions = 151;

/** Every variable has the value 8192; nothing was measured. */
Facts plain_facts() {
  Facts facts;
  for (const char *name : variables()) facts.values[name] = 8192;
  facts.values["max_connections"] = sessions;
  facts.values["log_bin"] = 1;
  facts.max_used_connections = 7;
  facts.replication_channels = 0;
  return facts;
}

Row row_of(const Facts &facts, std::string_view variable) {
  for (const Row &row : rows(facts))
    if (row.variable == variable) return row;
  ADD_FAILURE() << "no row " << variable;
  return {};
}

std::optional<uint64_t> worst_case(const Facts &facts, std::string_view name) {
  return row_of(facts, name).worst_case_bytes;
}

TEST(Budget, TheTotalIsTheSumOfTheRows) {
  Facts facts = plain_facts();
  facts.bytes_per_buffer_pool_page = 400;
  facts.bytes_per_open_table = 30000;
  facts.bytes_per_definition = 20000;
  facts.performance_schema_bytes = 100 << 20;
  facts.replication_channels = 3;
  uint64_t sum = 0;
  const auto all = rows(facts);
  for (const Row &row : all) {
    if (&row == &all.back()) continue;
    EXPECT_STRNE("TOTAL", row.variable);
    if (!row.worst_case_bytes) continue;
    EXPECT_EQ(*row.bytes_each * *row.times, row.worst_case_bytes)
        << row.variable;
    sum += *row.worst_case_bytes;
  }
  EXPECT_STREQ("TOTAL", all.back().variable);
  EXPECT_EQ(sum, all.back().worst_case_bytes);
}

TEST(Budget, EachVariableMovesItsOwnRow) {
  const Facts before = plain_facts();
  for (const char *name : variables()) {
    Facts facts = before;
    facts.values[name] = 16384;
    if (strcmp(name, "max_connections") == 0 || strcmp(name, "log_bin") == 0 ||
        strcmp(name, "innodb_page_size") == 0)
      continue;
    const auto was = rows(before);
    const auto is = rows(facts);
    ASSERT_EQ(was.size(), is.size());
    size_t own = 0;
    for (size_t i = 0; i < is.size() - 1; ++i) {
      if (strcmp(is[i].variable, name) == 0) {
        ++own;
        EXPECT_EQ(16384, is[i].value);
        if (is[i].worst_case_bytes) {
          EXPECT_EQ(*was[i].worst_case_bytes * 2, is[i].worst_case_bytes);
        }
      } else {
        EXPECT_EQ(was[i].worst_case_bytes, is[i].worst_case_bytes)
            << is[i].variable << " moves with " << name;
      }
    }
    EXPECT_EQ(1u, own) << name;
  }
}

TEST(Budget, SessionsMultiply) {
  Facts facts = plain_facts();
  EXPECT_EQ(8192 * sessions, worst_case(facts, "sort_buffer_size"));
  EXPECT_EQ(8192 * sessions * 2, worst_case(facts, "max_allowed_packet"));
  EXPECT_EQ(8192, worst_case(facts, "innodb_log_buffer_size"));
  EXPECT_EQ(8192 * sessions, worst_case(facts, "binlog_cache_size"));
  facts.values["log_bin"] = 0;
  EXPECT_EQ(0, worst_case(facts, "binlog_cache_size"));
  EXPECT_EQ(0, worst_case(facts, "replica_pending_jobs_size_max"));
  facts.replication_channels = 2;
  EXPECT_EQ(16384, worst_case(facts, "replica_pending_jobs_size_max"));
}

TEST(Budget, TheBufferPoolHasAControlBlockForEachPage) {
  Facts facts = plain_facts();
  facts.values["innodb_buffer_pool_size"] = uint64_t{1} << 30;
  facts.values["innodb_page_size"] = 16384;
  EXPECT_FALSE(worst_case(facts, "innodb_buffer_pool_size"));
  facts.bytes_per_buffer_pool_page = 400;
  EXPECT_EQ((uint64_t{1} << 30) + 65536 * 400,
            worst_case(facts, "innodb_buffer_pool_size"));
}

TEST(Budget, WhatIsMeasuredIsEmptyUntilItIs) {
  Facts facts = plain_facts();
  facts.values["table_open_cache"] = 4000;
  const auto total = worst_case(facts, "TOTAL");
  Row row = row_of(facts, "table_open_cache");
  EXPECT_FALSE(row.bytes_each);
  EXPECT_FALSE(row.worst_case_bytes);
  EXPECT_EQ(4000, row.times);
  facts.bytes_per_open_table = 30000;
  row = row_of(facts, "table_open_cache");
  EXPECT_EQ(30000, row.bytes_each);
  EXPECT_EQ(4000 * 30000, row.worst_case_bytes);
  EXPECT_EQ(*total + 4000 * 30000, worst_case(facts, "TOTAL"));
}

TEST(Budget, NoLimitIsUnbounded) {
  Facts facts = plain_facts();
  EXPECT_STREQ("growing", row_of(facts, "parser_max_mem_size").kind);
  facts.values["parser_max_mem_size"] = UINT64_MAX;
  facts.values["range_optimizer_max_mem_size"] = 0;
  facts.values["innodb_sort_buffer_size"] = 0;
  for (const char *name :
       {"parser_max_mem_size", "range_optimizer_max_mem_size"}) {
    const Row row = row_of(facts, name);
    EXPECT_STREQ("unbounded", row.kind) << name;
    EXPECT_FALSE(row.worst_case_bytes) << name;
  }
  EXPECT_EQ(0, worst_case(facts, "innodb_sort_buffer_size"));
  EXPECT_TRUE(worst_case(facts, "TOTAL"));
}

TEST(Budget, LimitsAndPartsTakeNothing) {
  for (const Row &row : rows(plain_facts())) {
    const std::string_view kind = row.kind;
    const bool taken = kind == "buffer" || kind == "growing";
    EXPECT_EQ(taken, row.times.has_value()) << row.variable;
    EXPECT_EQ(kind == "part", row.part_of.has_value()) << row.variable;
    if (row.part_of) {
      const Row whole = row_of(plain_facts(), *row.part_of);
      EXPECT_TRUE(whole.times) << row.variable;
    }
  }
}

TEST(Budget, AValueThatCannotBeReadLeavesTheTotalEmpty) {
  for (const char *name : {"join_buffer_size", "max_connections", "log_bin"}) {
    Facts facts = plain_facts();
    facts.values.erase(name);
    EXPECT_FALSE(worst_case(facts, "TOTAL")) << name;
  }
  Facts facts = plain_facts();
  facts.values.erase("join_buffer_size");
  EXPECT_FALSE(row_of(facts, "join_buffer_size").value);
  EXPECT_FALSE(worst_case(facts, "join_buffer_size"));
  EXPECT_TRUE(worst_case(facts, "sort_buffer_size"));
  // A limit adds nothing to the sum.
  facts = plain_facts();
  facts.values.erase("connection_memory_limit");
  EXPECT_TRUE(worst_case(facts, "TOTAL"));
}

TEST(Budget, WhatWasSeen) {
  Facts facts = plain_facts();
  Row row = row_of(facts, "thread_stack");
  EXPECT_EQ(8192 * 7, row.worst_seen_bytes);
  EXPECT_EQ("Max_used_connections", row.seen_by);
  facts.max_used_connections.reset();
  row = row_of(facts, "thread_stack");
  EXPECT_FALSE(row.worst_seen_bytes);
  EXPECT_FALSE(row.seen_by);

  EXPECT_FALSE(row_of(facts, "sort_buffer_size").worst_seen_bytes);
  facts.high_water_bytes["memory/sql/Filesort_buffer::sort_keys"] = 5;
  row = row_of(facts, "sort_buffer_size");
  EXPECT_EQ(5, row.worst_seen_bytes);
  EXPECT_EQ("memory/sql/Filesort_buffer::sort_keys", row.seen_by);

  facts.pool_peak_bytes["fts_query"] = 6;
  row = row_of(facts, "innodb_ft_result_cache_limit");
  EXPECT_EQ(6, row.worst_seen_bytes);
  EXPECT_EQ("pool fts_query", row.seen_by);
}

TEST(Budget, NamesAreUniqueAndOfThingsThatThereAre) {
  std::set<std::string_view> names;
  for (const Row &row : rows(plain_facts()))
    EXPECT_TRUE(names.insert(row.variable).second) << row.variable;
  // A pool that was seen: each of those that rows name.
  Facts facts = plain_facts();
  size_t seen_before = 0;
  for (const Row &row : rows(facts)) seen_before += row.seen_by.has_value();
  for (const Pool_spec &pool : pool_specs) facts.pool_peak_bytes[pool.name] = 1;
  size_t of_pools = 0;
  for (const Row &row : rows(facts)) of_pools += row.seen_by.has_value();
  EXPECT_EQ(5, of_pools - seen_before);
  for (const char *instrument : instruments())
    EXPECT_EQ(0, strncmp("memory/", instrument, 7)) << instrument;
}

TEST(Budget, TextsFitTheirColumns) {
  for (const Row &row : rows(plain_facts())) {
    for (const auto &column : budget_table.columns) {
      const Value value = column.value(row);
      const auto *text = std::get_if<std::string_view>(&value);
      if (text != nullptr) {
        EXPECT_LE(text->size(), column.length)
            << row.variable << ' ' << column.name;
      }
    }
  }
}

}  // namespace
}  // namespace memdiag::budget
