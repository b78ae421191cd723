/* The advisor on literal situations: what it finds, and what it does not. */

#include "plugin/memdiag/advice/advisor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "plugin/memdiag/advice/holder_list.h"
#include "plugin/memdiag/advice/situation.h"
#include "plugin/memdiag/unittest/logged_statements.h"

namespace {

using memdiag::Pool;
using memdiag::pool_count;
using memdiag::Trend;
using memdiag::advisor::Finding;
using memdiag::advisor::findings;
using memdiag::advisor::Severity;
using memdiag::advisor::Situation;

constexpr uint64_t mb = 1 << 20;
constexpr uint64_t gb = 1024 * mb;

/** A server of 2 GiB on a machine of 16, which nothing is wrong with. */
Situation healthy() {
  Situation all{};
  all.host.machine_bytes = 16 * gb;
  all.host.available_bytes = 9 * gb;
  all.host.resident_bytes = 2 * gb;
  all.host.swapped_bytes = 0;
  all.host.limit_bytes = 8 * gb;
  all.host.usage_bytes = 3 * gb;
  all.host.oom_kills = 0;
  // Everything but the buffer pool goes without them.
  all.host.transparent_huge_pages = "always";
  all.allocator_huge_pages = "never";
  all.host.pressure_some_avg10 = 0.5;
  all.host.oom_score_adj = 0;
  for (auto &pool : all.pools) {
    pool.live_bytes = 50 * mb;
    pool.active_bytes = 55 * mb;
    pool.dirty_bytes = 1 * mb;
    pool.trend = Trend{0, 1, 50.0 * mb, 600};
  }
  all.trend_without_buffer_pool = Trend{100, 0.1, 1.0 * gb, 600};
  all.background_threads = true;
  all.global_buffers_bytes = 2 * gb;
  all.session_buffers_bytes = 2 * mb;
  all.buffer_pool_bytes = 1 * gb;
  all.max_connections = 151;
  all.max_used_connections = 60;
  all.max_used_seconds = 100000;
  all.other_resident_bytes = 1 * gb;
  all.prepared_statements_bytes = 20 * mb;
  all.stored_programs_bytes = 20 * mb;
  all.stored_program_cache = 256;
  all.binlog_cache_size = 32768;
  all.largest_session = memdiag::advisor::Session{42, 20 * mb};
  return all;
}

auto &pool_of(Situation *all, Pool pool) {
  return all->pools[static_cast<size_t>(pool)];
}

struct Expected {
  const char *name;
  std::function<void(Situation *)> make;
  Severity severity;
  const char *subsystem;
  const char *verdict;
  /** In the evidence, and in the remedy. */
  const char *evidence;
  const char *remedy;
};

const std::vector<Expected> all_expected = {
    {"growth that is never freed",
     [](Situation *all) {
       pool_of(all, Pool::session).trend = Trend{1e6, 0.99, 900.0 * mb, 600};
     },
     Severity::warning, "session", "growth", "3433 MiB an hour",
     "memdiag_scope_survivors = ON; and after a while SELECT * FROM "
     "INFORMATION_SCHEMA.MEMDIAG_SESSIONS"},
    {"growth that may be tables of the MEMORY engine",
     [](Situation *all) {
       pool_of(all, Pool::temp_table).trend = Trend{1e6, 0.99, 900.0 * mb, 600};
     },
     Severity::warning, "temp_table", "growth", "no longer than its statement",
     "tables of the MEMORY engine"},
    {"a cache that grows",
     [](Situation *all) {
       pool_of(all, Pool::table_cache).trend =
           Trend{1e6, 0.99, 900.0 * mb, 600};
     },
     Severity::note, "table_cache", "cache", "to 900 MiB",
     "FLUSH LOCAL TABLES"},
    {"what connections take from malloc(), which no route leads to",
     [](Situation *all) {
       pool_of(all, Pool::connection).trend = Trend{1e6, 0.99, 900.0 * mb, 600};
     },
     Severity::note, "connection", "cache", "to 900 MiB",
     "performance_schema.memory_summary_global_by_event_name"},
    {"survivors",
     [](Situation *all) {
       pool_of(all, Pool::statement).survivors_bytes = 100 * mb;
       pool_of(all, Pool::statement).survivors_route = "memory/sql/thing";
     },
     Severity::warning, "statement", "leak", "memory/sql/thing",
     "MEMDIAG_SURVIVORS"},
    {"survivors of a pool that grows",
     [](Situation *all) {
       pool_of(all, Pool::session).trend = Trend{1e6, 0.99, 900.0 * mb, 600};
       pool_of(all, Pool::session).survivors_bytes = 100 * mb;
     },
     Severity::warning, "session", "leak", "100 MiB outlived",
     "MEMDIAG_SESSIONS"},
    {"a full-text cache that grows",
     [](Situation *all) {
       pool_of(all, Pool::fts_cache).trend = Trend{1e6, 0.99, 900.0 * mb, 600};
     },
     Severity::note, "fts_cache", "cache", "to 900 MiB",
     "SET PERSIST_ONLY innodb_ft_total_cache_size"},
    {"unused pages",
     [](Situation *all) {
       pool_of(all, Pool::fts_query).dirty_bytes = 300 * mb;
     },
     Severity::note, "fts_query", "cache", "300 MiB",
     "SELECT memdiag_purge('fts_query')"},
    {"fragmentation",
     [](Situation *all) {
       pool_of(all, Pool::table_cache).active_bytes = 600 * mb;
       pool_of(all, Pool::table_cache).live_bytes = 200 * mb;
     },
     Severity::warning, "table_cache", "fragmentation", "400 MiB of 600 MiB",
     "FLUSH LOCAL TABLES"},
    {"the end is near",
     [](Situation *all) {
       all->trend_without_buffer_pool = Trend{1e6, 0.95, 6.0 * gb, 600};
     },
     Severity::warning, "server", "host",
     "with a full buffer pool of 1024 MiB it reaches the limit of 8192 MiB in "
     "18 min",
     "MEMDIAG_HISTORY"},
    {"the end is near after a quarter of an hour of growth",
     [](Situation *all) {
       all->trend_without_buffer_pool = Trend{1e6, 0.95, 6.0 * gb, 890};
     },
     Severity::critical, "server", "host", "in 18 min", "MEMDIAG_HISTORY"},
    {"the end is near only if the buffer pool takes what it may",
     [](Situation *all) {
       all->trend_without_buffer_pool = Trend{15e3, 0.95, 6.0 * gb, 9000};
     },
     Severity::critical, "server", "host", "in 20 h", "MEMDIAG_HISTORY"},
    {"there is no room for the whole buffer pool any more",
     [](Situation *all) {
       all->trend_without_buffer_pool = Trend{1e6, 0.95, 7.5 * gb, 600};
     },
     Severity::warning, "server", "host",
     "with a full buffer pool of 1024 MiB it is above the limit of 8192 MiB "
     "already",
     "MEMDIAG_HISTORY"},
    {"the control group is full",
     [](Situation *all) { all->host.usage_bytes = 7 * gb + 512 * mb; },
     Severity::critical, "cgroup", "host", "7680 MiB", "MemoryMax=10240M"},
    {"the machine is full",
     [](Situation *all) {
       all->host.limit_bytes.reset();
       all->host.available_bytes = 1 * gb;
     },
     Severity::warning, "machine", "host", "1024 MiB of 16.0 GiB",
     "memdiag_purge('all')"},
    {"close to the limit of a group above, far from its own",
     [](Situation *all) {
       all->host.tightest = memdiag::host::Limit{
           "/sys/fs/cgroup/a.slice/memory.current", 20 * gb, 19 * gb};
     },
     Severity::critical, "cgroup", "host", "/sys/fs/cgroup/a.slice/",
     "MemoryMax=25600M"},
    {"killed before", [](Situation *all) { all->host.oom_kills = 3; },
     Severity::warning, "cgroup", "host", ": 3", "MEMDIAG_LAST_RUN"},
    {"buffers that cannot be there",
     [](Situation *all) {
       all->global_buffers_bytes = 9 * gb;
       all->buffer_pool_bytes = 8 * gb;
     },
     Severity::critical, "server", "misconfiguration", "9216 MiB",
     "SET PERSIST innodb_buffer_pool_size = 4294967296"},
    {"buffers that cannot be there, in huge pages of the machine",
     [](Situation *all) {
       all->host.limit_bytes.reset();
       all->global_buffers_bytes = 17 * gb;
       all->buffer_pool_bytes = 16 * gb;
       all->host.hugetlb_bytes = 16 * gb;
     },
     Severity::critical, "server", "misconfiguration", "17.0 GiB",
     "SET PERSIST innodb_buffer_pool_size = "},
    {"buffers that cannot be there, a little of them the buffer pool",
     [](Situation *all) {
       all->global_buffers_bytes = 9 * gb;
       all->buffer_pool_bytes = 4 * gb;
     },
     Severity::critical, "server", "misconfiguration", "9216 MiB",
     "MEMDIAG_BUDGET WHERE KIND = 'buffer'"},
    {"buffers that cannot be there, the buffer pool unknown",
     [](Situation *all) {
       all->global_buffers_bytes = 9 * gb;
       all->buffer_pool_bytes.reset();
     },
     Severity::critical, "server", "misconfiguration", "9216 MiB",
     "MEMDIAG_BUDGET WHERE KIND = 'buffer'"},
    {"half of what there is would be no buffer pool",
     [](Situation *all) {
       all->host.limit_bytes = 255 * mb;
       all->host.usage_bytes = 100 * mb;
     },
     Severity::critical, "server", "misconfiguration", "255 MiB",
     "MEMDIAG_BUDGET WHERE KIND = 'buffer'"},
    {"half of what there is, just large enough",
     [](Situation *all) {
       all->host.limit_bytes = 256 * mb;
       all->host.usage_bytes = 100 * mb;
     },
     Severity::critical, "server", "misconfiguration", "256 MiB",
     "SET PERSIST innodb_buffer_pool_size = 134217728"},
    {"more connections than memory",
     [](Situation *all) { all->max_connections = 10000; }, Severity::warning,
     "server", "misconfiguration", "10000 connections",
     "SET PERSIST max_connections = 3072"},
    {"more connections than memory, and many of them used",
     [](Situation *all) {
       all->max_connections = 10000;
       // 3072 fit, and a tenth more than were used has to be free.
       all->max_used_connections = 2794;
     },
     Severity::warning, "server", "misconfiguration", "10000 connections",
     "TIMES_OF LIKE '%max_connections%' ORDER BY WORST_CASE_BYTES DESC shows "
     "which session buffers to lower: up to 2794 clients were connected"},
    {"more connections than memory, with room above those used",
     [](Situation *all) {
       all->max_connections = 10000;
       all->max_used_connections = 2793;
     },
     Severity::warning, "server", "misconfiguration", "10000 connections",
     "SET PERSIST max_connections = 3072"},
    {"a connection that takes half of the memory",
     [](Situation *all) {
       all->session_buffers_bytes = 4 * gb;
       all->max_used_connections = 1;
     },
     Severity::warning, "server", "misconfiguration", "151 connections",
     "which session buffers to lower"},
    {"more connections than memory, on a server younger than a day",
     [](Situation *all) {
       all->max_connections = 10000;
       all->max_used_seconds = 86399;
       all->largest_session_buffer =
           memdiag::advisor::Buffer{"binlog_cache_size", 256 * mb};
     },
     Severity::warning, "server", "misconfiguration", "10000 connections",
     "the largest is binlog_cache_size = 268435456, which each connection may "
     "take: lower it first; SELECT VARIABLE"},
    {"more connections than memory, and those used are unknown",
     [](Situation *all) {
       all->max_connections = 10000;
       all->max_used_connections.reset();
     },
     Severity::warning, "server", "misconfiguration", "10000 connections",
     "which session buffers to lower"},
    {"prepared statements",
     [](Situation *all) { all->prepared_statements_bytes = 300 * mb; },
     Severity::note, "session", "cache",
     "prepared statements hold 300 MiB, 29% of the memory besides the buffer "
     "pool",
     "performance_schema.prepared_statements_instances"},
    {"stored programs",
     [](Situation *all) { all->stored_programs_bytes = 300 * mb; },
     Severity::note, "table_cache", "cache",
     "stored programs hold 300 MiB, 29%",
     "SET GLOBAL stored_program_cache = 128 bounds"},
    {"stored programs that no variable bounds any lower",
     [](Situation *all) {
       all->stored_programs_bytes = 300 * mb;
       all->stored_program_cache = 1;
     },
     Severity::note, "table_cache", "cache",
     "stored programs hold 300 MiB, 29%", "lower stored_program_cache"},
    {"caches of the binary log",
     [](Situation *all) {
       pool_of(all, Pool::binlog).live_bytes = 300 * mb;
       all->binlog_caches_bytes = 300 * mb;
       pool_of(all, Pool::binlog).active_bytes = 300 * mb;
       all->binlog_cache_size = 64 * mb;
     },
     Severity::note, "binlog", "cache", "caches of the binary log hold 300 MiB",
     "SET GLOBAL binlog_cache_size = 33554432; "},
    {"a session",
     [](Situation *all) {
       all->largest_session = memdiag::advisor::Session{42, 600 * mb};
     },
     Severity::note, "session", "cache", "session 42 holds up to 600 MiB, 59%",
     "KILL 42 frees what it still holds"},
    {"background threads off",
     [](Situation *all) { all->background_threads = false; }, Severity::warning,
     "allocator", "misconfiguration", "background threads",
     "background_thread:false"},
    {"another allocator",
     [](Situation *all) { all->preloaded = "libtcmalloc.so.4"; },
     Severity::note, "allocator", "misconfiguration", "libtcmalloc.so.4",
     "LD_PRELOAD"},
    {"huge pages",
     [](Situation *all) {
       all->host.transparent_huge_pages = "always";
       all->allocator_huge_pages = "default";
     },
     Severity::warning, "allocator", "misconfiguration", "thp:default",
     "take thp out of MALLOC_CONF"},
    {"swap in use", [](Situation *all) { all->host.swapped_bytes = 100 * mb; },
     Severity::warning, "machine", "host", "100 MiB", "vm.swappiness=1"},
    {"pressure", [](Situation *all) { all->host.pressure_some_avg10 = 25; },
     Severity::warning, "machine", "host", "25%", "memdiag_purge('all')"},
    {"pressure in the control group",
     [](Situation *all) {
       all->host.pressure_some_avg10 = 25;
       all->host.is_pressure_of_cgroup = true;
     },
     Severity::warning, "cgroup", "host", "25%", "memdiag_purge('all')"},
    {"first to be killed",
     [](Situation *all) { all->host.oom_score_adj = 500; }, Severity::note,
     "machine", "misconfiguration", "500", "OOMScoreAdjust=-600"},
};

TEST(Advisor, EachSituationHasItsFindingAndNoOther) {
  for (const Expected &expected : all_expected) {
    Situation all = healthy();
    expected.make(&all);
    const std::vector<Finding> found = findings(all);
    ASSERT_EQ(1u, found.size()) << expected.name;
    const Finding &one = found[0];
    EXPECT_EQ(expected.severity, one.severity) << expected.name;
    EXPECT_EQ(expected.subsystem, one.subsystem) << expected.name;
    EXPECT_STREQ(expected.verdict, one.verdict) << expected.name;
    EXPECT_NE(std::string::npos, one.evidence.find(expected.evidence))
        << expected.name << ": " << one.evidence;
    EXPECT_NE(std::string::npos, one.remedy.find(expected.remedy))
        << expected.name << ": " << one.remedy;
    EXPECT_GE(1024u, one.evidence.size());
    EXPECT_GE(1024u, one.remedy.size());
    EXPECT_NE("", one.rule) << expected.name;
    if (one.statement) {
      EXPECT_GE(2048u, one.statement->size()) << expected.name;
      EXPECT_EQ("", memdiag_test::logged_statement(*one.statement));
    }
    EXPECT_EQ("", memdiag_test::logged_statement(one.remedy)) << expected.name;
  }
}

TEST(Advisor, NothingIsWrongWithAHealthyServer) {
  EXPECT_TRUE(findings(healthy()).empty());
}

TEST(Advisor, WhatIsNotKnownProvesNothing) {
  EXPECT_TRUE(findings(Situation{}).empty());
}

TEST(Advisor, WhatIsSmallOrShortOrUnsteadyIsNoFinding) {
  const std::vector<std::function<void(Situation *)>> harmless = {
      [](Situation *all) {  // a pool in huge pages, which no limit counts
        all->global_buffers_bytes = 9 * gb;
        all->host.hugetlb_bytes = 8 * gb;
      },
      [](Situation *all) {  // a warm-up
        pool_of(all, Pool::session).trend = Trend{1e8, 0.99, 900.0 * mb, 20};
      },
      [](Situation *all) {  // up and down
        pool_of(all, Pool::session).trend = Trend{1e6, 0.5, 900.0 * mb, 600};
      },
      [](Situation *all) {  // little
        pool_of(all, Pool::session).trend = Trend{1e4, 0.99, 900.0 * mb, 600};
      },
      [](Situation *all) { pool_of(all, Pool::session).dirty_bytes = 60 * mb; },
      [](Situation *all) {  // much of an unknown amount
        all->host.resident_bytes.reset();
        pool_of(all, Pool::session).dirty_bytes = 300 * mb;
      },
      [](Situation *all) {  // much, but not of 20 GiB
        all->host.resident_bytes = 20 * gb;
        pool_of(all, Pool::session).dirty_bytes = 300 * mb;
      },
      [](Situation *all) {  // a quarter is usual
        pool_of(all, Pool::session).active_bytes = 1200 * mb;
        pool_of(all, Pool::session).live_bytes = 900 * mb;
      },
      [](Situation *all) {  // for days
        all->trend_without_buffer_pool = Trend{1e4, 0.95, 3.0 * gb, 9000};
      },
      [](Situation *all) {  // connections that warm up within a minute
        all->trend_without_buffer_pool = Trend{1e6, 0.99, 6.0 * gb, 75};
      },
      [](Situation *all) {  // for longer than a day, where there is no pool
        all->trend_without_buffer_pool = Trend{15e3, 0.95, 6.0 * gb, 9000};
        all->buffer_pool_bytes = 0;
      },
      [](Situation *all) {  // towards a limit that is not known
        all->trend_without_buffer_pool = Trend{1e6, 0.95, 6.0 * gb, 600};
        all->buffer_pool_bytes.reset();
      },
      [](Situation *all) { all->prepared_statements_bytes = 100 * mb; },
      [](Situation *all) {  // much of little
        all->other_resident_bytes = 100 * mb;
        all->prepared_statements_bytes = 60 * mb;
      },
      [](Situation *all) {
        all->other_resident_bytes.reset();
        all->prepared_statements_bytes = 300 * mb;
      },
      [](Situation *all) { all->largest_session.reset(); },
      [](Situation *all) { all->host.usage_bytes = 7 * gb; },
      [](Situation *all) { all->host.swapped_bytes = 1 * mb; },
      [](Situation *all) { all->host.oom_score_adj = -600; }};
  for (size_t i = 0; i < harmless.size(); ++i) {
    Situation all = healthy();
    harmless[i](&all);
    for (const Finding &one : findings(all))
      ADD_FAILURE() << i << ": " << one.subsystem << ' ' << one.evidence;
  }
}

TEST(Advisor, TheMostSevereComesFirst) {
  Situation all = healthy();
  for (const Expected &expected : all_expected) expected.make(&all);
  const std::vector<Finding> found = findings(all);
  EXPECT_LT(10u, found.size());
  for (size_t i = 1; i < found.size(); ++i)
    EXPECT_GE(found[i - 1].severity, found[i].severity);
}

TEST(Situation, IsMadeOfWhatTheCollectorsSay) {
  memdiag::Snapshot snapshot{};
  const auto session = static_cast<size_t>(Pool::session);
  snapshot.pools[session].live_bytes = 7;
  snapshot.pools[session].active_bytes = 8;
  snapshot.pools[session].dirty_bytes = 9;
  snapshot.allocator.preloaded = "other.so";
  snapshot.allocator.huge_pages = "default";
  std::vector<memdiag::black_box::Sample> samples;
  for (uint64_t second = 0; second < 1000; ++second) {
    memdiag::black_box::Sample sample{};
    sample.time_us = second * 1000000;
    // It fell before what is looked at, and rises since.
    sample.rss_bytes = second < 99 ? 1000000 : 1000 * second;
    sample.buffer_pool_bytes = 7;
    sample.pools[session].live_bytes = 10 * second;
    samples.push_back(sample);
  }
  std::vector<memdiag::budget::Row> budget = {
      {.variable = "innodb_buffer_pool_size",
       .value = 100,
       .kind = "buffer",
       .times_of = "server",
       .worst_case_bytes = 110},
      {.variable = "thread_stack",
       .kind = "buffer",
       .times = 50,
       .times_of = "max_connections",
       .worst_case_bytes = 5000},
      {.variable = "sort_buffer_size",
       .kind = "growing",
       .times = 50,
       .times_of = "max_connections",
       .worst_case_bytes = 1 << 30}};
  const std::vector<memdiag::scopes::Row> survivors = {
      {"small", "session", "session", 10, 1, 1, 0, 0, 0},
      {"large", "session", "session", 30, 1, 1, 0, 0, 0},
      {"other", "statement", "statement", 50, 1, 1, 0, 0, 0},
      {"memory/memory/HP_PTRS", "temp_table", "statement", 70, 1, 1, 0, 0, 0},
      {"memory/memory", "temp_table", "statement", 20, 1, 1, 0, 0, 0}};
  const Situation all = memdiag::advisor::make_situation(snapshot, {}, budget,
                                                         samples, survivors);
  const auto &pool = all.pools[session];
  EXPECT_EQ(7u, pool.live_bytes);
  EXPECT_EQ(8u, pool.active_bytes);
  EXPECT_EQ(9u, pool.dirty_bytes);
  EXPECT_EQ(40u, pool.survivors_bytes);
  EXPECT_EQ("large", pool.survivors_route);
  const auto &tables = all.pools[static_cast<size_t>(Pool::temp_table)];
  EXPECT_EQ(20u, tables.survivors_bytes) << "tables are there until dropped";
  EXPECT_EQ("memory/memory", tables.survivors_route);
  ASSERT_TRUE(pool.trend);
  EXPECT_NEAR(10, pool.trend->bytes_per_second, 1e-6);
  EXPECT_NEAR(900, pool.trend->seconds, 1);
  ASSERT_TRUE(all.trend_without_buffer_pool);
  EXPECT_NEAR(1000, all.trend_without_buffer_pool->bytes_per_second, 1e-6);
  EXPECT_EQ("other.so", all.preloaded);
  EXPECT_EQ("default", all.allocator_huge_pages);
  EXPECT_EQ(110u, all.global_buffers_bytes);
  EXPECT_EQ(100u, all.session_buffers_bytes);
  EXPECT_EQ(50u, all.max_connections);
  EXPECT_EQ(100u, all.buffer_pool_bytes);
  EXPECT_FALSE(all.other_resident_bytes) << "VmRSS is not known";
  // Pages that jemalloc counts as dirty and that were never written take no
  // memory.
  memdiag::advisor::Server_facts server;
  server.resident_dirty_bytes[session] = 4;
  EXPECT_EQ(4u, memdiag::advisor::make_situation(snapshot, {}, budget, samples,
                                                 survivors, {}, server)
                    .pools[session]
                    .dirty_bytes);
  // A sum with an unknown variable is unknown.
  budget[1].worst_case_bytes.reset();
  EXPECT_FALSE(memdiag::advisor::make_situation(snapshot, {}, budget, {}, {})
                   .session_buffers_bytes);
}

TEST(Situation, HoldersAreMadeOfRoutesAndOfTheServersFacts) {
  const auto route = [](const char *name, uint64_t bytes) {
    return memdiag::routes::Row{name, Pool::session, "session", 0, bytes, 1};
  };
  const std::vector<memdiag::routes::Row> routes = {
      route("memory/sql/Prepared_statement::main_mem_root", 5),
      route("memory/sql/Prepared_statement_map::name_hash", 6),
      route("memory/sql/sp_head::main_mem_root", 7),
      route("memory/sql/sp_head::execute_mem_root", 8),
      route("memory/sql/binlog_cache_mngr", 20),
      route("memory/sql/Row_data_memory::memory", 30),
      // Events that a replica's workers have not applied.
      route("memory/sql/Log_event", 900),
      route("binlog_event_rows", 900),
      {"memory/sql/Prepared_statement::infrastructure", Pool::general,
       "general", 0, std::nullopt, std::nullopt}};
  const std::vector<memdiag::budget::Row> budget = {
      {.variable = "stored_program_cache", .value = 256, .kind = "unbounded"},
      {.variable = "binlog_cache_size", .value = 32768, .kind = "part"}};
  memdiag::host::Figures host;
  host.resident_bytes = 1000;
  std::vector<memdiag::black_box::Sample> samples(1);
  samples[0].buffer_pool_bytes = 300;
  const Situation all = memdiag::advisor::make_situation(
      {}, host, budget, samples, {}, routes,
      {.max_used_connections = 9,
       .largest_session = memdiag::advisor::Session{42, 11}});
  EXPECT_EQ(11u, all.prepared_statements_bytes);
  EXPECT_EQ(7u, all.stored_programs_bytes);
  EXPECT_EQ(50u, all.binlog_caches_bytes);
  EXPECT_EQ(256u, all.stored_program_cache);
  EXPECT_EQ(32768u, all.binlog_cache_size);
  EXPECT_EQ(700u, all.other_resident_bytes);
  EXPECT_EQ(9u, all.max_used_connections);
  ASSERT_TRUE(all.largest_session);
  EXPECT_EQ(42u, all.largest_session->processlist_id);
}

using Samples = std::vector<memdiag::black_box::Sample>;

/** A sample each second, of a process that has nothing but its buffer pool and
what is given, in bytes. */
Samples samples_of(uint64_t count,
                   const std::function<uint64_t(uint64_t second)> &pool,
                   const std::function<uint64_t(uint64_t second)> &others) {
  Samples samples;
  for (uint64_t second = 0; second < count; ++second) {
    memdiag::black_box::Sample sample{};
    sample.time_us = second * 1000000;
    sample.buffer_pool_bytes = pool(second);
    sample.rss_bytes = sample.buffer_pool_bytes + others(second);
    samples.push_back(sample);
  }
  return samples;
}

std::optional<Trend> trend_of(const Samples &samples) {
  return memdiag::advisor::make_situation({}, {}, {}, samples, {})
      .trend_without_buffer_pool;
}

TEST(Situation, ABufferPoolThatWarmsUpIsNoGrowth) {
  const auto warming = [](uint64_t second) { return second * 10 * mb; };
  const auto same = [](uint64_t) { return 300 * mb; };
  const auto growing = [](uint64_t second) { return 300 * mb + second * mb; };
  const auto trend = trend_of(samples_of(300, warming, same));
  ASSERT_TRUE(trend);
  EXPECT_NEAR(0, trend->bytes_per_second, 1);
  EXPECT_NEAR(300.0 * mb, trend->last_bytes, 1);
  const auto real = trend_of(samples_of(300, warming, growing));
  ASSERT_TRUE(real);
  EXPECT_NEAR(mb, real->bytes_per_second, 1);
  EXPECT_NEAR(599.0 * mb, real->last_bytes, 1);

  // From the samples to what is said.
  for (const bool grows : {false, true}) {
    Situation all = healthy();
    // Within ten times the five minutes that the growth has lasted.
    all.host.limit_bytes = 3 * gb;
    all.host.usage_bytes = 2 * gb;
    all.trend_without_buffer_pool =
        trend_of(samples_of(300, warming, grows ? +growing : +same));
    EXPECT_EQ(grows ? 1u : 0u, findings(all).size());
  }
}

TEST(Situation, SamplesOfBeforeTheClockWasSetBackDoNotCount) {
  const auto none = [](uint64_t) { return uint64_t{0}; };
  const auto falling = [](uint64_t second) { return (1000 - second) * mb; };
  const auto growing = [](uint64_t second) { return 500 * mb + second * mb; };
  constexpr uint64_t hour = 3600;
  const auto add = [](Samples *to, Samples samples, uint64_t begin) {
    for (memdiag::black_box::Sample &sample : samples) {
      sample.time_us += begin * 1000000;
      to->push_back(sample);
    }
  };
  for (const uint64_t length : {300, 5000}) {
    Samples samples;
    add(&samples, samples_of(600, none, falling), 2 * hour);
    // Back by an hour; the longer one goes on until that time has come again.
    add(&samples, samples_of(length, none, growing), hour);
    const auto trend = trend_of(samples);
    ASSERT_TRUE(trend) << length;
    EXPECT_NEAR(mb, trend->bytes_per_second, 1) << length;
    EXPECT_NEAR(std::min<double>(length - 1, 900), trend->seconds, 1);
    // The last one alone is no trend.
    add(&samples, samples_of(1, none, growing), 0);
    EXPECT_FALSE(trend_of(samples)) << length;
  }
}

TEST(Situation, WithoutTheBufferPoolsFigureASampleDoesNotCount) {
  const auto pool = [](uint64_t) { return 100 * mb; };
  const auto others = [](uint64_t second) { return second * mb; };
  Samples samples = samples_of(100, pool, others);
  for (size_t i = 0; i < samples.size(); ++i) {
    memdiag::black_box::Sample &sample = samples[i];
    if (i % 4 == 1) sample.buffer_pool_bytes = memdiag::black_box::unknown;
    if (i % 4 == 2) sample.rss_bytes = memdiag::black_box::unknown;
    // It was looked at before most of it went.
    if (i % 4 == 3) sample.rss_bytes = sample.buffer_pool_bytes - 1;
  }
  const auto trend = trend_of(samples);
  ASSERT_TRUE(trend);
  EXPECT_NEAR(mb, trend->bytes_per_second, 1);
  EXPECT_NEAR(1, trend->r2, 1e-9);
  for (memdiag::black_box::Sample &sample : samples)
    sample.buffer_pool_bytes = memdiag::black_box::unknown;
  EXPECT_FALSE(trend_of(samples));
}

TEST(Advisor, AFindingIsAboutResidentBytes) {
  Situation all = healthy();
  all.stored_programs_bytes = 1724 * mb;
  pool_of(&all, Pool::table_cache).resident_live_bytes = 900 * mb;
  std::vector<Finding> found = findings(all);
  ASSERT_EQ(1u, found.size());
  EXPECT_EQ("stored_programs", found[0].rule);
  EXPECT_EQ("stored programs", found[0].holder);
  EXPECT_EQ(900 * mb, found[0].bytes);
  EXPECT_EQ(1724 * mb, found[0].allocated_bytes);
  EXPECT_TRUE(found[0].evidence.starts_with(
      "stored programs hold 900 MiB (1724 MiB allocated), 88%"))
      << found[0].evidence;

  // Never more than the process has.
  pool_of(&all, Pool::table_cache).resident_live_bytes.reset();
  all.stored_programs_bytes = 5 * gb;
  found = findings(all);
  ASSERT_EQ(1u, found.size());
  EXPECT_EQ(all.host.resident_bytes, found[0].bytes);
}

TEST(Advisor, WhatWasNeverWrittenIsNoLeakAndNoHolder) {
  Situation all = healthy();
  all.binlog_caches_bytes = 512 * mb;
  pool_of(&all, Pool::binlog).survivors_bytes = 512 * mb;
  pool_of(&all, Pool::binlog).resident_live_bytes = 1 * mb;
  EXPECT_TRUE(findings(all).empty());
  pool_of(&all, Pool::binlog).resident_live_bytes = 400 * mb;
  const std::vector<Finding> found = findings(all);
  ASSERT_EQ(2u, found.size());
  for (const Finding &one : found) EXPECT_EQ(400 * mb, one.bytes) << one.rule;
}

TEST(Holders, EachPoolOfTheListIsOneHoldersAlone) {
  for (size_t i = 0; i < pool_count; ++i) {
    size_t owners = 0;
    for (const auto &holder : memdiag::advisor::holders)
      for (const Pool pool : holder.pools)
        owners += pool == static_cast<Pool>(i) ? 1 : 0;
    EXPECT_GE(1u, owners) << i;
  }
}

TEST(Holders, RulesAndStatementsFitTheirColumns) {
  for (const auto &holder : memdiag::advisor::holders) {
    EXPECT_GE(64u, memdiag::advisor::rule_of(holder).size()) << holder.name;
    EXPECT_EQ(&holder, memdiag::advisor::find_holder(holder.name));
    const auto statement = memdiag::advisor::statement_of(holder, UINT64_MAX);
    if (!statement) continue;
    EXPECT_GE(2048u, statement->size()) << holder.name;
    EXPECT_EQ("", memdiag_test::logged_statement(*statement)) << *statement;
    EXPECT_EQ(std::string::npos, statement->find("<less>"));
  }
}

TEST(Holders, AStatementHasHalfTheVariablesValue) {
  const auto *const holder = memdiag::advisor::find_holder("MyISAM key cache");
  ASSERT_NE(nullptr, holder);
  EXPECT_EQ("SET GLOBAL key_buffer_size = 500",
            memdiag::advisor::statement_of(*holder, 1000));
  EXPECT_FALSE(memdiag::advisor::statement_of(*holder, 1));
  EXPECT_FALSE(memdiag::advisor::statement_of(*holder, {}));
}

TEST(Holders, WhatKillDoesNotFreeIsNotTheSessions) {
  using memdiag::advisor::ends_with_session;
  for (const Pool pool : {Pool::fts_cache, Pool::dictionary, Pool::table_cache,
                          Pool::innodb, Pool::perfschema})
    EXPECT_FALSE(ends_with_session(pool)) << static_cast<int>(pool);
  for (const Pool pool :
       {Pool::session, Pool::statement, Pool::temp_table, Pool::binlog,
        Pool::transaction, Pool::connection, Pool::general})
    EXPECT_TRUE(ends_with_session(pool)) << static_cast<int>(pool);
}

}  // namespace
