/* The advisor on literal situations: what it finds, and what it does not. */

#include "plugin/memdiag/advice/advisor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/memdiag/advice/holder_list.h"
#include "plugin/memdiag/advice/situation.h"
#include "plugin/memdiag/advice/start_option.h"
#include "plugin/memdiag/unittest/logged_statements.h"

namespace {

using memdiag::Pool;
using memdiag::pool_count;
using memdiag::Reading;
using memdiag::Trend;
using memdiag::advisor::Ceiling_situation;
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
  for (const auto &holder : memdiag::advisor::holders)
    all.holdings.push_back({&holder, 20 * mb, 20 * mb, Pool::session});
  all.variables = {{"stored_program_cache", 256},
                   {"key_buffer_size", 600 * mb},
                   {"innodb_log_buffer_size", 64 * mb},
                   {"table_definition_cache", 10000}};
  all.table_definitions = 8000;
  all.sessions_are_counted = all.documents_are_counted = true;
  all.locks_are_counted = true;
  all.idle_sessions = memdiag::advisor::Idle_sessions{400, 40 * mb, 40 * mb};
  all.largest_session = memdiag::advisor::Session{42, 20 * mb};
  all.buffer_pool_asked_bytes = 1 * gb;
  all.buffer_pool_unit_bytes = 128 * mb;
  return all;
}

/** A limit of 8 GiB, and a pool that has given all that it may. Nothing has
happened for two minutes. */
Ceiling_situation at_the_floor() {
  Ceiling_situation ceiling{};
  ceiling.level = memdiag::ceiling::Level::green;
  ceiling.marks = memdiag::ceiling::marks_of_limit(8 * gb, 0);
  ceiling.kept_bytes = static_cast<int64_t>(7 * gb);
  ceiling.parked_bytes = 600 * mb;
  ceiling.parkable_bytes = 16 << 10;
  ceiling.quiet_seconds = 120;
  return ceiling;
}

/** The same limit, at rest 7,400 MiB, and 550 MiB of sessions. */
Ceiling_situation too_low() {
  Ceiling_situation ceiling = at_the_floor();
  ceiling.level = memdiag::ceiling::Level::red;
  ceiling.kept_bytes = static_cast<int64_t>(8000 * mb);
  ceiling.quiet_seconds = 0;
  return ceiling;
}

/** What sessions and statements have does not count as needed. */
void let_sessions_hold(Situation *all, uint64_t bytes) {
  for (size_t i = 0; i < pool_count; ++i) {
    auto &pool = all->pools[i];
    pool.dirty_bytes = 0;
    pool.resident_live_bytes =
        static_cast<Pool>(i) == Pool::session ? bytes : 0;
  }
}

auto &pool_of(Situation *all, Pool pool) {
  return all->pools[static_cast<size_t>(pool)];
}

memdiag::advisor::Holding &holding_of(Situation *all, std::string_view name) {
  for (auto &holding : all->holdings)
    if (holding.holder->name == name) return holding;
  throw std::out_of_range(std::string(name));
}

/** All of it resident. */
void hold(Situation *all, std::string_view name, uint64_t bytes) {
  auto &holding = holding_of(all, name);
  holding.bytes = holding.allocated_bytes = bytes;
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
    {"the end is near as others use the machine's memory",
     [](Situation *all) {
       all->trend_without_buffer_pool = Trend{1e6, 0.95, 1.0 * gb, 890};
       all->host.limit_bytes.reset();
       all->host.available_bytes = 2 * gb;
     },
     Severity::critical, "server", "host",
     "with a full buffer pool of 1024 MiB it reaches the limit of 16.0 GiB, "
     "of which 12.0 GiB are in other use, in 36 min",
     "MEMDIAG_HISTORY"},
    {"the end is near as others use the control group's memory",
     [](Situation *all) {
       all->trend_without_buffer_pool = Trend{1e6, 0.95, 1.0 * gb, 600};
       all->host.usage_bytes = 7 * gb;
     },
     Severity::warning, "server", "host",
     "it reaches the limit of 8192 MiB, of which 5120 MiB are in other use, in "
     "18 min",
     "MEMDIAG_HISTORY"},
    {"others leave no room for the rest of the buffer pool",
     [](Situation *all) {
       all->trend_without_buffer_pool = Trend{1e6, 0.95, 1.5 * gb, 600};
       all->other_resident_bytes = 1536 * mb;
       all->host.usage_bytes = 7 * gb + 100 * mb;
     },
     Severity::warning, "server", "host",
     "it reaches the limit of 8192 MiB, of which 5220 MiB are in other use, in "
     "7 min",
     "MEMDIAG_HISTORY"},
    {"a forecast of less than two minutes is in seconds",
     [](Situation *all) {
       all->trend_without_buffer_pool = Trend{1e6, 0.95, 7.0 * gb - 20e6, 600};
     },
     Severity::warning, "server", "host",
     "it reaches the limit of 8192 MiB in 20 s", "MEMDIAG_HISTORY"},
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
     Severity::warning, "cgroup", "host", ": 3", "MEMDIAG_HISTORY"},
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
    {"buffers that cannot be there, with a pool of eight instances",
     [](Situation *all) {
       all->host.limit_bytes = 3 * gb;
       all->host.usage_bytes = 100 * mb;
       all->global_buffers_bytes = 4 * gb;
       all->buffer_pool_bytes = 2 * gb;
       // InnoDB would make 2 GiB of half the limit.
       all->buffer_pool_unit_bytes = 1 * gb;
     },
     Severity::critical, "server", "misconfiguration", "4096 MiB",
     "SET PERSIST innodb_buffer_pool_size = 1073741824"},
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
    {"half of what there is, in units that are not known",
     [](Situation *all) {
       all->global_buffers_bytes = 9 * gb;
       all->buffer_pool_bytes = 8 * gb;
       all->buffer_pool_unit_bytes.reset();
     },
     Severity::critical, "server", "misconfiguration", "9216 MiB",
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
     "of those that SET GLOBAL lowers, the largest is binlog_cache_size = "
     "268435456, which each connection may take: lower it first; SELECT "
     "VARIABLE"},
    {"more connections than memory, and those used are unknown",
     [](Situation *all) {
       all->max_connections = 10000;
       all->max_used_connections.reset();
     },
     Severity::warning, "server", "misconfiguration", "10000 connections",
     "which session buffers to lower"},
    {"prepared statements",
     [](Situation *all) { hold(all, "prepared statements", 200 * mb); },
     Severity::note, "session", "cache",
     "prepared statements hold 200 MiB, 20% of the memory besides the buffer "
     "pool: statements that sessions prepared and did not close",
     "have the application close its statements"},
    {"a quarter of the memory in prepared statements",
     [](Situation *all) { hold(all, "prepared statements", 256 * mb); },
     Severity::warning, "session", "cache", "hold 256 MiB, 25%",
     "have the application close its statements"},
    {"stored programs",
     [](Situation *all) {
       hold(all, "stored programs", 300 * mb);
       holding_of(all, "stored programs").pool = Pool::table_cache;
     },
     Severity::warning, "table_cache", "cache",
     "stored programs hold 300 MiB, 29%",
     "a lower stored_program_cache bounds the programs of a session from its "
     "next call on"},
    {"open tables, more than a fifth",
     [](Situation *all) { hold(all, "open tables", 210 * mb); }, Severity::note,
     "session", "cache", "open tables hold 210 MiB, 21%",
     "statements on tables in use wait"},
    {"many sessions that are idle",
     [](Situation *all) {
       all->idle_sessions =
           memdiag::advisor::Idle_sessions{600, 200 * mb, 200 * mb};
     },
     Severity::note, "session", "cache",
     "600 idle sessions hold up to 200 MiB, 20%", "wait_timeout"},
    {"a session",
     [](Situation *all) {
       all->largest_session = memdiag::advisor::Session{42, 600 * mb};
     },
     Severity::warning, "session", "cache",
     "session 42 holds up to 600 MiB, 59%",
     "KILL drops a session's temporary tables with their rows"},
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

TEST(Advisor, WithoutFunctionsNoPurgeIsOffered) {
  size_t offered = 0;
  for (const Expected &expected : all_expected) {
    Situation all = healthy();
    expected.make(&all);
    const auto count = [&all] {
      size_t purges = 0;
      for (const Finding &found : findings(all))
        if ((found.remedy + found.statement.value_or(""))
                .find("SELECT memdiag_purge(") != std::string::npos)
          ++purges;
      return purges;
    };
    offered += count();
    all.lacks_functions = true;
    EXPECT_EQ(0u, count()) << expected.name;
  }
  EXPECT_LE(4u, offered);
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
      [](Situation *all) {  // its usual share
        hold(all, "prepared statements", 102 * mb);
      },
      [](Situation *all) { hold(all, "open tables", 204 * mb); },
      [](Situation *all) { hold(all, "Performance Schema", 409 * mb); },
      [](Situation *all) {  // much of little
        all->other_resident_bytes = 100 * mb;
        hold(all, "prepared statements", 60 * mb);
      },
      [](Situation *all) {
        all->other_resident_bytes.reset();
        hold(all, "prepared statements", 300 * mb);
      },
      [](Situation *all) {  // few
        all->idle_sessions =
            memdiag::advisor::Idle_sessions{19, 200 * mb, 200 * mb};
      },
      [](Situation *all) {  // little of it is still there
        all->idle_sessions =
            memdiag::advisor::Idle_sessions{600, 200 * mb, 200 * mb};
        pool_of(all, Pool::session).resident_live_bytes = 30 * mb;
        pool_of(all, Pool::connection).resident_live_bytes = 33 * mb;
      },
      [](Situation *all) { all->largest_session.reset(); },
      [](Situation *all) { all->host.usage_bytes = 7 * gb; },
      [](Situation *all) { all->host.swapped_bytes = 1 * mb; },
      [](Situation *all) {  // nobody knows what was asked for
        all->buffer_pool_asked_bytes.reset();
      },
      [](Situation *all) {  // resized since
        all->buffer_pool_asked_bytes = 512 * mb;
      },
      [](Situation *all) {  // being resized
        all->buffer_pool_asked_bytes = 900 * mb;
        all->buffer_pool_unit_bytes.reset();
      },
      [](Situation *all) {  // by little
        all->buffer_pool_asked_bytes = 1000 * mb;
      },
      [](Situation *all) {  // the machine's memory is no limit of a group
        all->host.limit_bytes.reset();
        all->host.usage_bytes.reset();
        all->tmpdir_in_memory =
            memdiag::advisor::Folder_in_memory{"/dev/shm/tmp", 30 * mb};
      },
      [](Situation *all) {  // the ceiling has just taken the last frame
        all->ceiling = at_the_floor();
        all->ceiling->quiet_seconds = 59;
      },
      [](Situation *all) {  // little
        all->ceiling = at_the_floor();
        all->ceiling->parked_bytes = 60 * mb;
      },
      [](Situation *all) {  // the pool could give more
        all->ceiling = at_the_floor();
        all->ceiling->parkable_bytes = 100 * mb;
      },
      [](Situation *all) {  // a statement went on more than an hour ago
        all->ceiling = at_the_floor();
        all->ceiling->parked_bytes = 0;
        all->ceiling->went_on = 1;
        all->ceiling->went_on_seconds = 3601;
      },
      [](Situation *all) {  // the ceiling's log does not have it any more
        all->ceiling = at_the_floor();
        all->ceiling->parked_bytes = 0;
        all->ceiling->went_on = 1;
      },
      [](Situation *all) {  // the kernel's figures cannot be read
        all->ceiling = too_low();
        let_sessions_hold(all, 500 * mb);
        all->ceiling->level = memdiag::ceiling::Level::unknown;
      },
      [](Situation *all) {  // sessions have the rest
        all->ceiling = too_low();
        let_sessions_hold(all, 600 * mb);
      },
      [](Situation *all) {  // the pool can give the rest
        all->ceiling = too_low();
        let_sessions_hold(all, 500 * mb);
        all->ceiling->parkable_bytes = 100 * mb;
      },
      [](Situation *all) {  // unused pages are the rest
        all->ceiling = too_low();
        let_sessions_hold(all, 500 * mb);
        pool_of(all, Pool::table_cache).dirty_bytes = 63 * mb;
        pool_of(all, Pool::session).dirty_bytes = 63 * mb;
      },
      [](Situation *all) {  // what sessions have is not known
        all->ceiling = too_low();
        let_sessions_hold(all, 500 * mb);
        pool_of(all, Pool::statement).resident_live_bytes.reset();
        pool_of(all, Pool::statement).live_bytes.reset();
      },
      [](Situation *all) { all->host.oom_score_adj = -600; }};
  for (size_t i = 0; i < harmless.size(); ++i) {
    Situation all = healthy();
    harmless[i](&all);
    for (const Finding &one : findings(all))
      ADD_FAILURE() << i << ": " << one.subsystem << ' ' << one.evidence;
  }
}

TEST(Advisor, TheCeilingsFindingsHaveTheirRulesAndBytes) {
  const auto only = [](const std::function<void(Situation *)> &make) {
    Situation all = healthy();
    make(&all);
    const std::vector<Finding> found = findings(all);
    EXPECT_EQ(1u, found.size());
    return found.empty() ? Finding{} : found[0];
  };
  const auto rounded =
      only([](Situation *all) { all->buffer_pool_asked_bytes = 900 * mb; });
  EXPECT_EQ("ceiling_pool_rounded_up", rounded.rule);
  EXPECT_EQ(124 * mb, rounded.bytes) << "resident above what was asked for";
  const auto files = only([](Situation *all) {
    all->tmpdir_in_memory =
        memdiag::advisor::Folder_in_memory{"/dev/shm", 30 * mb};
  });
  EXPECT_EQ("ceiling_tmpdir_in_memory", files.rule);
  EXPECT_EQ(30 * mb, files.bytes);
  const auto floor =
      only([](Situation *all) { all->ceiling = at_the_floor(); });
  EXPECT_EQ("ceiling_floor_at_rest", floor.rule);
  EXPECT_EQ(424 * mb, floor.bytes) << "what the pool still has";
  Situation idle = healthy();
  idle.ceiling = at_the_floor();
  idle.ceiling->kept_bytes = static_cast<int64_t>(4 * gb);
  EXPECT_TRUE(findings(idle).empty()) << "frames that InnoDB does not use";
  const auto went_on = only([](Situation *all) {
    all->ceiling = at_the_floor();
    all->ceiling->parked_bytes = 0;
    all->ceiling->went_on = 1;
    all->ceiling->went_on_seconds = 3600;
  });
  EXPECT_EQ("ceiling_went_on", went_on.rule);
  EXPECT_FALSE(went_on.bytes);
  EXPECT_NE(std::string::npos,
            went_on.evidence.find("1 waits of running statements for memory "
                                  "ended without room since the server "
                                  "started, the last one 3600 s ago"))
      << went_on.evidence;
  EXPECT_EQ("SELECT * FROM INFORMATION_SCHEMA.MEMDIAG_CEILING",
            went_on.remedy.substr(0, 48));
  const auto low = only([](Situation *all) {
    all->ceiling = too_low();
    let_sessions_hold(all, 500 * mb);
  });
  EXPECT_EQ("ceiling_target_too_low", low.rule);
  EXPECT_EQ(2 * gb, low.bytes) << "never more than the process has";
  // 300 MB of 2 GiB are files. The rest of what is kept is not the server's.
  const auto crowded = only([](Situation *all) {
    all->ceiling = too_low();
    let_sessions_hold(all, 500 * mb);
    all->host.resident_file_bytes = 300 * mb;
    all->host.shared_bytes = 6000 * mb;
  });
  EXPECT_EQ("ceiling_target_too_low", crowded.rule);
  EXPECT_EQ((2 * gb - 800 * mb - (16 << 10)), crowded.bytes);
  EXPECT_TRUE(crowded.evidence.starts_with(
      "the server needs 1248 MiB at rest, without what sessions and statements "
      "have, and "))
      << crowded.evidence;
  EXPECT_NE(std::string::npos,
            crowded.evidence.find(
                "; besides, its control group keeps 6252 MiB of other "
                "processes, of the kernel and of files in tmpfs, which with "
                "shared memory have 6000 MiB; the ceiling's target is "))
      << crowded.evidence;
  EXPECT_TRUE(crowded.remedy.ends_with("processes of the control group"));
  EXPECT_EQ(crowded.remedy.substr(0, low.remedy.size()), low.remedy);
  for (const Finding &one : {rounded, files, floor, went_on, low})
    EXPECT_FALSE(one.statement) << "a smaller pool makes the server wait";
}

/** A group may live on for months. */
TEST(Advisor, AKillBeforeTheServersFirstHourIsANote) {
  Situation all = healthy();
  all.host.oom_kills = 3;
  for (const uint64_t seconds : {3599, 3600}) {
    all.up_seconds = seconds;
    const std::vector<Finding> found = findings(all);
    ASSERT_EQ(1u, found.size());
    EXPECT_EQ("oom_kills", found[0].rule);
    EXPECT_EQ(seconds < 3600, found[0].severity == Severity::warning);
    EXPECT_EQ(seconds < 3600, found[0].evidence.ends_with(": 3"))
        << found[0].evidence;
    EXPECT_EQ(seconds >= 3600,
              found[0].evidence.ends_with(
                  ": 3 since the group was made; the kernel does not say when"))
        << found[0].evidence;
  }
}

/** The kernel kills other servers in these states. Below a ceiling they are not
critical. */
TEST(Advisor, TheCeilingHoldsTheServerBelowItsLimit) {
  using memdiag::ceiling::Level;
  Situation all = healthy();
  all.trend_without_buffer_pool = Trend{1e6, 0.95, 6.0 * gb, 890};
  all.global_buffers_bytes = 9 * gb;
  all.host.usage_bytes = 7 * gb + 512 * mb;
  const auto found = [&all](std::string_view rule) -> std::optional<Finding> {
    for (const Finding &each : findings(all))
      if (each.rule == rule) return each;
    return std::nullopt;
  };
  Ceiling_situation ceiling{};
  ceiling.acts = true;
  ceiling.level = Level::green;
  ceiling.marks = memdiag::ceiling::marks_of_limit(8 * gb, 0);
  all.ceiling = ceiling;
  for (const char *rule : {"growth_of_the_process", "server_buffers"}) {
    ASSERT_TRUE(found(rule)) << rule;
    EXPECT_EQ(Severity::warning, found(rule)->severity) << rule;
    EXPECT_TRUE(found(rule)->evidence.ends_with(
        "; the ceiling keeps it below (memdiag_memory_target)"))
        << found(rule)->evidence;
  }
  EXPECT_FALSE(found("cgroup_near_its_limit")) << "no statement waits";
  all.ceiling->level = Level::yellow;
  EXPECT_EQ(Severity::warning, found("cgroup_near_its_limit")->severity);
  EXPECT_TRUE(found("cgroup_near_its_limit")
                  ->evidence.ends_with("; statements wait for memory "
                                       "(memdiag_memory_target)"));
  // A target of half the limit: others of the group use the rest.
  all.ceiling->marks = memdiag::ceiling::marks_of_limit(4 * gb, 0);
  EXPECT_EQ(Severity::critical, found("cgroup_near_its_limit")->severity);
  all.ceiling->marks = ceiling.marks;

  const auto is_critical = [&found] {
    for (const char *rule :
         {"growth_of_the_process", "server_buffers", "cgroup_near_its_limit"})
      EXPECT_EQ(Severity::critical, found(rule)->severity) << rule;
  };
  all.ceiling->level = Level::unknown;
  is_critical();
  all.ceiling->level = Level::green;
  all.ceiling->acts = false;
  is_critical();
  all.ceiling.reset();
  is_critical();
}

TEST(StartOption, TheLastOneCounts) {
  const auto asked = [](std::vector<const char *> arguments) {
    return memdiag::advisor::last_number(arguments, "innodb-buffer-pool-size");
  };
  EXPECT_EQ(900 * mb, asked({"mysqld", "--innodb_buffer_pool_size=900M"}));
  EXPECT_EQ(900 * mb, asked({"mysqld", "--innodb-buffer-pool-size=1G",
                             "--loose-innodb_buffer-pool_size=900m"}));
  EXPECT_EQ(943718400u,
            asked({"mysqld", "--innodb-buffer-pool-size", "943718400"}));
  EXPECT_EQ(1 * gb, asked({"mysqld", "--innodb-buffer-pool-size=1g"}));
  EXPECT_FALSE(asked({"mysqld"}));
  EXPECT_FALSE(asked({"mysqld", "--innodb-buffer-pool-size"}));
  EXPECT_FALSE(asked({"mysqld", "--innodb-buffer-pool-size="}));
  EXPECT_FALSE(asked({"mysqld", "--innodb-buffer-pool-size=1.5G"}));
  EXPECT_FALSE(asked({"mysqld", "--innodb-buffer-pool-size=99999999999G"}));
  EXPECT_FALSE(asked({"mysqld", "--innodb-buffer-pool-size=1G",
                      "--innodb-buffer-pool-size=wrong"}))
      << "the server has not taken the first";
  EXPECT_FALSE(asked({"mysqld", "--innodb-buffer-pool-size-max=1G"}));
  EXPECT_FALSE(asked({"mysqld", "--maximum-innodb-buffer-pool-size=1G"}));
  EXPECT_FALSE(asked(
      {"mysqld", "--innodb-buffer-pool-size=1G", "--innodb-buffer-pool-s=2G"}))
      << "an abbreviation may be the same option";
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
  memdiag::advisor::Server_facts server{};
  const std::vector<memdiag::ledger::Row> ledger = {
      {"pool", "session", "dirty", 4, {}, {}},
      {"pool", "session", "live", 3, {}, {}},
      {"pool", "session", "fragmentation", 2, {}, {}},
      {"region", "session", "live", 1, {}, {}},
      {"pool", "binlog", "live", {}, {}, {}},
      {"anonymous", "", "not of the allocator", 5, {}, {}},
      {"heap", "", "not of the allocator", 6, {}, {}},
      {"files", "", "mapped", 7, {}, {}},
      {"files", "", "data", 6, {}, {}},
      {"libraries", "", "data", 9, {}, {}},
      {"unexplained", "", "", -1, {}, {}}};
  memdiag::advisor::add_ledger(ledger, &server);
  EXPECT_EQ(11u, server.beside_allocator_bytes);
  EXPECT_EQ(13u, server.mapped_file_bytes);
  EXPECT_EQ(3u, server.resident_live_bytes[session]);
  EXPECT_FALSE(server.resident_live_bytes[static_cast<size_t>(Pool::binlog)]);
  const Situation resident = memdiag::advisor::make_situation(
      snapshot, {}, budget, samples, survivors, {}, server);
  EXPECT_EQ(4u, resident.pools[session].dirty_bytes);
  EXPECT_EQ(2u, resident.pools[session].resident_free_bytes);
  // A sum with an unknown variable is unknown.
  budget[1].worst_case_bytes.reset();
  EXPECT_FALSE(memdiag::advisor::make_situation(snapshot, {}, budget, {}, {})
                   .session_buffers_bytes);
}

TEST(Situation, TheLargestBufferIsOneThatSetGlobalLowers) {
  // Without a binary log nothing takes the first. The server reads the others
  // but the last one when it starts, and a lower thread_stack ends statements.
  const auto row = [](const char *variable, uint64_t value, uint64_t times) {
    return memdiag::budget::Row{
        .variable = variable,
        .value = value,
        .kind = "buffer",
        .times = times,
        .times_of =
            times == 0 ? "max_connections if log_bin is ON" : "max_connections",
        .worst_case_bytes = times * value};
  };
  std::vector<memdiag::budget::Row> budget = {
      row("binlog_cache_size", 4 * gb, 0), row("thread_stack", 9 * mb, 50),
      row("max_digest_length", 8 * mb, 50),
      row("read_buffer_size", 7 * mb, 50)};
  const auto largest = [&budget] {
    return memdiag::advisor::make_situation({}, {}, budget, {}, {})
        .largest_session_buffer;
  };
  EXPECT_FALSE(largest());
  budget.push_back(row("select_into_buffer_size", 1 * mb, 50));
  ASSERT_TRUE(largest());
  EXPECT_STREQ("select_into_buffer_size", largest()->variable);
}

/** A machine may have its right time only some minutes after its start. The
advice lowers max_connections for good after a day of use. */
TEST(Situation, AClockThatJumpsMakesNoServerOlder) {
  memdiag::advisor::Server_facts server{};
  const auto seconds = [&server] {
    return memdiag::advisor::make_situation({}, {}, {}, {}, {}, {}, server)
        .max_used_seconds;
  };
  server.max_used_seconds = 1'000'000;
  server.up_seconds = 60;
  EXPECT_EQ(60u, seconds());
  server.max_used_seconds = 50;
  EXPECT_EQ(50u, seconds()) << "FLUSH STATUS";
  server.max_used_seconds.reset();
  EXPECT_FALSE(seconds());
  EXPECT_EQ(60u,
            memdiag::advisor::make_situation({}, {}, {}, {}, {}, {}, server)
                .up_seconds);
}

/** Samples may come once in ten minutes, or no more. The buffer pool has grown
or given frames away since. */
TEST(Situation, TheBufferPoolIsThatOfNow) {
  memdiag::black_box::Sample old{};
  old.time_us = 1'000'000;
  old.buffer_pool_bytes = 900;
  memdiag::host::Figures host{};
  host.resident_bytes = 1000;
  using Row = memdiag::ledger::Row;
  const auto others = [&](const std::vector<Row> &ledger) {
    memdiag::advisor::Server_facts server{};
    memdiag::advisor::add_ledger(ledger, &server);
    return memdiag::advisor::make_situation({}, host, {}, {&old, 1}, {}, {},
                                            server)
        .other_resident_bytes;
  };
  EXPECT_EQ(700u, others({{"buffer_pool", "", "clean pages", 200, {}, {}},
                          {"buffer_pool", "", "dirty pages", 99, {}, {}},
                          {"buffer_pool", "", "never touched", 0, {}, {}},
                          {"buffer_pool", "", "free pages", 1, {}, {}}}));
  // The ledger could not read it.
  EXPECT_EQ(100u, others({{"buffer_pool", "", "", {}, {}, {}}}));
}

using memdiag::advisor::Holding;

std::optional<Holding> holding_in(const std::vector<Holding> &all,
                                  std::string_view name) {
  for (const Holding &one : all)
    if (one.holder->name == name) return one;
  return std::nullopt;
}

TEST(Situation, HoldersAreMadeOfRoutesAndOfTheServersFacts) {
  const auto route = [](const char *name, uint64_t bytes,
                        Pool pool = Pool::session) {
    return memdiag::routes::Row{name, pool,  memdiag::spec_of(pool).name,
                                0,    bytes, 1};
  };
  const std::vector<memdiag::routes::Row> routes = {
      route("memory/sql/Prepared_statement::main_mem_root", 5),
      route("memory/sql/Prepared_statement_map::name_hash", 6),
      route("memory/sql/sp_head::main_mem_root", 7 * mb, Pool::table_cache),
      route("memory/sql/sp_head::execute_mem_root", 8, Pool::statement),
      route("memory/sql/THD::sp_cache", 900, Pool::table_cache),
      route("memory/sql/binlog_cache_mngr", 20, Pool::binlog),
      route("memory/sql/Row_data_memory::memory", 30, Pool::binlog),
      route("memory/sql/Log_event", 700, Pool::binlog),
      route("binlog_event_rows", 200, Pool::binlog),
      {"memory/sql/Prepared_statement::infrastructure", Pool::general,
       "general", 0, std::nullopt, std::nullopt}};
  const std::vector<memdiag::budget::Row> budget = {
      {.variable = "stored_program_cache", .value = 256, .kind = "unbounded"}};
  memdiag::host::Figures host;
  host.resident_bytes = 1000;
  std::vector<memdiag::black_box::Sample> samples(1);
  samples[0].buffer_pool_bytes = 300;
  const std::vector<memdiag::instruments::Counted> counted = {
      {"memory/sql/Prepared_statement::infrastructure", true, 4, 1, 9}};
  const std::vector<memdiag::instruments::Held> held = {
      {"memory/sql/Prepared_statement::main_mem_root", 8},
      {"memory/sql/binlog_cache_mngr", 20},
      {"memory/sql/String::value", 30}};
  memdiag::advisor::Server_facts server{};
  server.max_used_connections = 9;
  server.largest_session = memdiag::advisor::Session{42, 11};
  server.held_by_largest = held;
  server.counted = counted;
  server.sessions = 3;
  const Situation all = memdiag::advisor::make_situation(
      {}, host, budget, samples, {}, routes, server);
  const auto statements = holding_in(all.holdings, "prepared statements");
  ASSERT_TRUE(statements);
  EXPECT_EQ(15u, statements->allocated_bytes) << "4 of them are malloc()'s";
  EXPECT_EQ(Pool::session, statements->pool);
  ASSERT_TRUE(statements->owner) << "8 are more than half";
  EXPECT_EQ(42u, statements->owner->processlist_id);
  EXPECT_EQ(8u, statements->owner->bytes);
  const auto programs = holding_in(all.holdings, "stored programs");
  ASSERT_TRUE(programs);
  EXPECT_EQ(7 * mb + 900, programs->allocated_bytes);
  EXPECT_TRUE(all.sessions_are_counted);
  EXPECT_FALSE(memdiag::advisor::make_situation({}, host, budget, samples, {},
                                                routes, {})
                   .sessions_are_counted);
  // With performance_schema_instrument='memory/%=OFF' its own still count.
  const std::vector<memdiag::instruments::Counted> own = {
      {"memory/performance_schema/threads", true, 4, 1, 9},
      {"memory/sql/user_var_entry", false, 0, 0, 0}};
  memdiag::advisor::Server_facts uncounted = server;
  uncounted.counted = own;
  EXPECT_FALSE(memdiag::advisor::make_situation({}, host, budget, samples, {},
                                                routes, uncounted)
                   .sessions_are_counted);
  // setup_actors has no more than one of three users.
  uncounted = server;
  uncounted.counted_sessions = 1;
  EXPECT_FALSE(memdiag::advisor::make_situation({}, host, budget, samples, {},
                                                routes, uncounted)
                   .sessions_are_counted);
  uncounted.counted_sessions = 2;
  EXPECT_TRUE(memdiag::advisor::make_situation({}, host, budget, samples, {},
                                               routes, uncounted)
                  .sessions_are_counted);
  for (const bool on : {true, false}) {
    const std::vector<memdiag::instruments::Counted> of_sql = {
        {"memory/sql/user_var_entry", true, 0, 0, 0},
        {"memory/sql/JSON", on, 0, 0, 0}};
    uncounted.counted = of_sql;
    const auto some = memdiag::advisor::make_situation(
        {}, host, budget, samples, {}, routes, uncounted);
    EXPECT_TRUE(some.sessions_are_counted);
    EXPECT_EQ(on, some.documents_are_counted);
  }
  EXPECT_FALSE(all.locks_are_counted);
  const auto caches = holding_in(all.holdings, "binary log caches");
  ASSERT_TRUE(caches);
  EXPECT_EQ(50u, caches->allocated_bytes)
      << "without events that a replica's workers have not applied";
  EXPECT_FALSE(caches->owner);
  EXPECT_EQ(900u,
            holding_in(all.holdings, "replication events")->allocated_bytes);
  EXPECT_FALSE(holding_in(all.holdings, "triggers"));
  EXPECT_EQ(256u, all.variables.at("stored_program_cache"));
  EXPECT_EQ(700u, all.other_resident_bytes);
  EXPECT_EQ(9u, all.max_used_connections);
  ASSERT_TRUE(all.largest_session);
  EXPECT_EQ(42u, all.largest_session->processlist_id);
  EXPECT_EQ(11u, all.largest_session->bytes);
  EXPECT_EQ(8u, all.largest_in_session_pool)
      << "without another pool's, and without strings that tables may keep";
  // Half of what Performance Schema counts was never written.
  constexpr auto session = static_cast<size_t>(Pool::session);
  memdiag::Snapshot snapshot{};
  snapshot.pools[session].live_bytes = 5;
  server.resident_live_bytes[session] = 2;
  server.held_by_largest = std::span(held).first(1);
  const Situation unwritten = memdiag::advisor::make_situation(
      snapshot, host, budget, samples, {}, routes, server);
  EXPECT_EQ(3u, unwritten.largest_session->bytes);
  EXPECT_EQ(3u, unwritten.largest_in_session_pool);
  const auto written = holding_in(unwritten.holdings, "prepared statements");
  EXPECT_FALSE(written->owner) << "3 of 8 that are resident";
  ASSERT_EQ(1u, unwritten.held_by_largest.size());
  EXPECT_STREQ("prepared statements",
               unwritten.held_by_largest[0].holder->name);
}

/** Pools of 1000 live bytes each, of which half is resident. */
std::vector<Holding> holdings_of(
    const std::vector<memdiag::routes::Row> &routes,
    uint64_t dump_thread_bytes = 0, uint64_t trigger_bytes = 0,
    const memdiag::advisor::Tables &tables = {},
    std::span<const memdiag::instruments::Counted> counted = {}) {
  std::array<memdiag::Pool_row, pool_count> pools{};
  for (auto &pool : pools) pool.live_bytes = 1000;
  memdiag::instruments::Shares shares;
  shares.fill(0.5);
  return memdiag::advisor::holdings({pools,
                                     shares,
                                     routes,
                                     counted,
                                     dump_thread_bytes,
                                     trigger_bytes,
                                     300,
                                     tables,
                                     {},
                                     {}});
}

TEST(Holdings, NoInstrumentCountsForTwo) {
  const std::array<memdiag::instruments::Counted, 2> counted{
      {{"memory/sql/JSON", true, 2000, 1, 2000},
       {"memory/sql/other", true, 5000, 1, 5000}}};
  const auto all = holdings_of(
      {{"memory/sql/dd::objects", Pool::dictionary, "", 0, 300, 1},
       {"memory/sql/sql_acl_memex", Pool::dictionary, "", 0, 200, 1},
       {"memory/sql/TABLE", Pool::table_cache, "", 0, 40, 1},
       {"mem_heap/row0mysql", Pool::table_cache, "", 0, 50, 1},
       {"memory/sql/TABLE::sort_io_cache", Pool::session, "", 0, 60, 1},
       {"memory/sql/JSON", Pool::statement, "", 16384, 100, 1}},
      0, 0, {}, counted);
  const auto bytes = [&](std::string_view name) {
    const auto found = holding_in(all, name);
    return found ? found->bytes : 0;
  };
  // The pool's other 800 bytes are definitions.
  EXPECT_EQ(400u, bytes("dictionary cache"));
  EXPECT_EQ(100u, bytes("accounts and privileges"));
  EXPECT_EQ(45u, bytes("open tables"));
  EXPECT_EQ(30u, bytes("sort buffers"));
  EXPECT_EQ(450u, bytes("running statements"));
  EXPECT_EQ(550u, bytes("JSON and containers"));
  EXPECT_EQ(1000u, holding_in(all, "transactions, locks")->allocated_bytes);
  // All of them have no more than is resident: of the pools with an owner,
  // and of the table cache and the sessions.
  uint64_t sum = 0;
  uint64_t owned = 0;
  for (const Holding &one : all) sum += one.bytes;
  for (const auto &holder : memdiag::advisor::holders)
    owned += holder.pools.empty() ? 0 : 1;
  EXPECT_EQ(owned * 500 + 45 + 30, sum);
}

/** malloc() serves them, in the pool of the threads that serve clients. */
TEST(Holdings, SetsOfGtidsAreNoJson) {
  const char *const intervals = "memory/sql/Gtid_set::Interval_chunk";
  const std::vector<memdiag::routes::Row> routes{
      {intervals, Pool::general, "", 0, {}, {}},
      {"memory/sql/Gtid_state::group_commit_sidno_locks", Pool::binlog, "", 0,
       60, 1}};
  for (const auto &[counted_bytes, gtids, json] :
       std::vector<std::array<uint64_t, 3>>{{800, 860, 200}, {5000, 5060, 0}}) {
    const std::array<memdiag::instruments::Counted, 2> counted{
        {{intervals, true, counted_bytes, 1, counted_bytes},
         {"memory/sql/JSON", true, 2000, 1, 2000}}};
    const auto all = holdings_of(routes, 0, 0, {}, counted);
    EXPECT_EQ(gtids, holding_in(all, "GTID sets")->allocated_bytes);
    const auto left = holding_in(all, "JSON and containers");
    EXPECT_EQ(json, left ? left->allocated_bytes : 0);
  }
}

TEST(Holdings, ThreadsThatSendTheBinaryLogHaveStringsOfTheirOwn) {
  const auto all = holdings_of(
      {{"memory/sql/String::value", Pool::session, "", 16384, 500, 1}}, 400);
  EXPECT_EQ(100u, holding_in(all, "strings")->allocated_bytes);
  EXPECT_EQ(50u, holding_in(all, "strings")->bytes);
  EXPECT_EQ(400u, holding_in(all, "binary log dump threads")->allocated_bytes);
  EXPECT_EQ(200u, holding_in(all, "binary log dump threads")->bytes);
}

/** Performance Schema counts blocks of a pool under an instrument that has
none. Those in mapped files are no pool's. */
TEST(Holdings, TemporaryTablesCountOnce) {
  const std::vector<memdiag::routes::Row> routes = {
      {"temptable", Pool::temp_table, "", 0, 800, 1},
      {"memory/temptable/physical_ram", Pool::general, "", 0, {}, {}},
      {"memory/temptable/physical_disk", Pool::general, "", 0, {}, {}}};
  const memdiag::instruments::Counted counted[] = {
      {"memory/temptable/physical_ram", true, 780, 1, 780},
      {"memory/temptable/physical_disk", true, 400, 1, 400}};
  auto found =
      holding_in(holdings_of(routes, 0, 0, {}, counted), "temporary tables");
  ASSERT_TRUE(found);
  EXPECT_EQ(800u + 400, found->allocated_bytes);
  EXPECT_EQ(400u + 300, found->bytes);
  // With the pool disabled, malloc() serves them.
  std::vector<memdiag::routes::Row> disabled = routes;
  disabled[0].pool = Pool::general;
  disabled[0].live_bytes.reset();
  found =
      holding_in(holdings_of(disabled, 0, 0, {}, counted), "temporary tables");
  ASSERT_TRUE(found);
  EXPECT_EQ(780u + 400, found->allocated_bytes);
}

/** However large a program is, and however few there are. */
TEST(Holdings, TriggersAreNotTheStoredProgramCache) {
  const std::vector<memdiag::routes::Row> programs = {
      {"memory/sql/sp_head::main_mem_root", Pool::table_cache, "", 0, 300 * mb,
       1},
      {"memory/sql/THD::sp_cache", Pool::table_cache, "", 0, 100, 1}};
  auto all = holdings_of(programs);
  EXPECT_FALSE(holding_in(all, "triggers"));
  EXPECT_EQ(300 * mb + 100,
            holding_in(all, "stored programs")->allocated_bytes);
  all = holdings_of(programs, 0, 200 * mb);
  EXPECT_EQ(200 * mb, holding_in(all, "triggers")->allocated_bytes);
  EXPECT_EQ(100 * mb, holding_in(all, "triggers")->bytes);
  EXPECT_EQ(100 * mb + 100,
            holding_in(all, "stored programs")->allocated_bytes);
}

/** By InnoDB's bytes of their definitions. */
TEST(Holdings, TemporaryTablesOfSessionsAreNotInTheCaches) {
  const std::vector<memdiag::routes::Row> routes = {
      {"memory/sql/TABLE", Pool::table_cache, "", 0, 900, 1},
      {"memory/sql/TABLE_SHARE::mem_root", Pool::table_cache, "", 0, 400, 1},
      {"mem_heap/row0mysql", Pool::table_cache, "", 0, 90, 1},
      {"memory/sql/dd::objects", Pool::dictionary, "", 0, 40, 1},
      {"mem_heap/dictionary", Pool::dictionary, "", 0, 80, 1},
      {"memory/innodb/dict0dict", Pool::dictionary, "", 0, 7, 1},
      {"memory/sql/sql_acl_memex", Pool::dictionary, "", 0, 100, 1}};
  // 30 of 40 KB are of temporary tables. Of the 10 others, 5 are open.
  const auto all = holdings_of(routes, 0, 0, {20, 30000, 10, 10000, 5});
  const auto bytes = [&](std::string_view name) {
    const auto found = holding_in(all, name);
    return found ? found->allocated_bytes : 0;
  };
  constexpr uint64_t definitions = 300 + 30 + 60;
  EXPECT_NEAR(definitions + 990.0 * 6 / 7, bytes("user temporary tables"), 3);
  EXPECT_NEAR(100 + 990.0 / 7, bytes("open tables"), 3);
  EXPECT_EQ(1000 - 100 - 30 - 60, bytes("dictionary cache"));
  EXPECT_EQ(100u, bytes("accounts and privileges"));
  EXPECT_FALSE(holding_in(holdings_of(routes, 0, 0, {0, 0, 10, 10000, 5}),
                          "user temporary tables"));
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

/** Samples may be switched off, or come once in some minutes. */
TEST(Situation, GrowthOfMinutesAgoIsNoneOfNow) {
  const auto none = [](uint64_t) { return uint64_t{0}; };
  const auto growing = [](uint64_t second) { return 300 * mb + second * mb; };
  const Samples each_second = samples_of(300, none, growing);
  Samples seldom;
  for (size_t i = 0; i < 300; i += 140) seldom.push_back(each_second[i]);
  const auto grows = [](const Samples &samples, uint64_t seconds_ago) {
    memdiag::advisor::Server_facts server{};
    server.now_us = samples.back().time_us + seconds_ago * 1'000'000;
    const Situation all =
        memdiag::advisor::make_situation({}, {}, {}, samples, {}, {}, server);
    EXPECT_EQ(all.trend_without_buffer_pool.has_value(),
              all.pools[0].trend.has_value());
    return all.trend_without_buffer_pool.has_value();
  };
  EXPECT_TRUE(grows(each_second, 0));
  EXPECT_TRUE(grows(each_second, 60));
  EXPECT_FALSE(grows(each_second, 63));
  EXPECT_TRUE(grows(seldom, 300));
  EXPECT_FALSE(grows(seldom, 350));
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
  holding_of(&all, "stored programs").bytes = 900 * mb;
  holding_of(&all, "stored programs").allocated_bytes = 1724 * mb;
  std::vector<Finding> found = findings(all);
  ASSERT_EQ(1u, found.size());
  EXPECT_EQ("stored_programs", found[0].rule);
  EXPECT_EQ("stored programs", found[0].holder);
  EXPECT_EQ(900 * mb, found[0].bytes);
  EXPECT_EQ(1724 * mb, found[0].allocated_bytes);
  EXPECT_TRUE(found[0].evidence.starts_with(
      "stored programs hold 900 MiB (1724 MiB allocated), 88%"))
      << found[0].evidence;

  // Never more than the process has besides the buffer pool.
  hold(&all, "stored programs", 5 * gb);
  found = findings(all);
  ASSERT_EQ(1u, found.size());
  EXPECT_EQ(all.other_resident_bytes, found[0].bytes);
}

/** The allocator counts bytes that no thread has written. They are no growth,
and no fragmentation. */
TEST(Advisor, GrowthAndFragmentationAreResidentBytes) {
  Situation all = healthy();
  auto &pool = pool_of(&all, Pool::session);
  pool.live_bytes = pool.active_bytes = 900 * mb;
  pool.trend = Trend{1e6, 0.99, 900.0 * mb, 600};
  pool.resident_live_bytes = 300 * mb;
  std::vector<Finding> found = findings(all);
  ASSERT_EQ(1u, found.size());
  EXPECT_TRUE(found[0].evidence.starts_with(
      "resident bytes grow by 1144 MiB an hour over "
      "the last 10 min, to 300 MiB (900 MiB "
      "allocated)"))
      << found[0].evidence;
  pool.resident_live_bytes = 30 * mb;
  EXPECT_TRUE(findings(all).empty());

  all = healthy();
  auto &torn = pool_of(&all, Pool::table_cache);
  torn.active_bytes = 3 * gb;
  torn.live_bytes = 500 * mb;
  torn.resident_live_bytes = 250 * mb;
  torn.resident_free_bytes = 750 * mb;
  found = findings(all);
  ASSERT_EQ(1u, found.size());
  EXPECT_EQ(750 * mb, found[0].bytes);
  EXPECT_TRUE(found[0].evidence.starts_with("750 MiB of 1000 MiB in use"))
      << found[0].evidence;
  torn.resident_free_bytes = 50 * mb;
  EXPECT_TRUE(findings(all).empty());
  // A third is usual.
  torn.resident_live_bytes = 670 * mb;
  torn.resident_free_bytes = 330 * mb;
  EXPECT_TRUE(findings(all).empty());
  torn.resident_free_bytes = 340 * mb;
  EXPECT_EQ(1u, findings(all).size());
}

/** A number of bytes of any size, often far more than there is. */
uint64_t any_bytes(std::mt19937 *random) {
  return static_cast<uint64_t>(std::exp2(
      std::uniform_real_distribution<>(18, 38)(*random)));  // up to 256 GiB
}

Reading any_reading(std::mt19937 *random) {
  return (*random)() % 4 == 0 ? Reading{} : Reading{any_bytes(random)};
}

/** Figures of different moments and sources, which need not agree. */
Situation any_situation(std::mt19937 *random) {
  Situation all = healthy();
  all.host.resident_bytes = (64 + (*random)() % 4096) * mb;
  all.other_resident_bytes = *all.host.resident_bytes / (1 + (*random)() % 10);
  for (auto &pool : all.pools) {
    for (Reading *one :
         {&pool.live_bytes, &pool.active_bytes, &pool.dirty_bytes,
          &pool.resident_live_bytes, &pool.resident_free_bytes})
      *one = any_reading(random);
    pool.survivors_bytes = (*random)() % 2 * any_bytes(random);
    pool.survivors_route = "memory/sql/thing";
    pool.trend = Trend{static_cast<double>(any_bytes(random)) / 600, 0.99,
                       static_cast<double>(any_bytes(random)), 600};
  }
  for (auto &holding : all.holdings) {
    holding.bytes = any_bytes(random);
    holding.allocated_bytes = any_bytes(random);
    if ((*random)() % 2 == 0)
      holding.owner = memdiag::advisor::Session{7, any_bytes(random)};
  }
  all.largest_session = memdiag::advisor::Session{8, any_bytes(random)};
  const uint64_t idle = any_bytes(random);
  all.idle_sessions = memdiag::advisor::Idle_sessions{400, idle, idle};
  all.row_locks =
      memdiag::advisor::Row_locks{any_bytes(random), {9, any_bytes(random)}};
  all.ceiling = (*random)() % 2 == 0 ? at_the_floor() : too_low();
  all.buffer_pool_bytes = any_reading(random);
  if ((*random)() % 4 == 0) let_sessions_hold(&all, 500 * mb);
  return all;
}

/** The largest of the sizes in a text, in MiB, but those that are shown to be
allocated or a rate. */
double largest_size(const std::string &text) {
  double largest = 0;
  for (const std::string_view unit : {" MiB", " GiB"})
    for (size_t at = text.find(unit); at != std::string::npos;
         at = text.find(unit, at + 1)) {
      const auto behind = std::string_view{text}.substr(at + unit.size());
      if (behind.starts_with(" allocated") || behind.starts_with(" an hour"))
        continue;
      const size_t before = text.find_last_not_of("0123456789.", at - 1);
      const double size = std::stod(text.substr(before + 1, at - before - 1));
      largest = std::max(largest, size * (unit == " GiB" ? 1024 : 1));
    }
  return largest;
}

TEST(Advisor, NoFindingNamesMoreThanTheProcessHas) {
  constexpr int rounds = 500;
  std::set<std::string> rules;
  for (int seed = 0; seed < rounds; ++seed) {
    std::mt19937 random(seed);
    const Situation all = any_situation(&random);
    const uint64_t rss = *all.host.resident_bytes;
    for (const Finding &found : findings(all)) {
      const std::string what =
          std::to_string(seed) + ' ' + found.rule + ": " + found.evidence;
      rules.insert(found.rule);
      EXPECT_GE(rss, found.bytes.value_or(0)) << what;
      if (found.allocated_bytes) {
        EXPECT_LT(*found.bytes, *found.allocated_bytes) << what;
      }
      if (found.owner) {
        EXPECT_GE(*found.bytes, found.owner->bytes) << what;
      }
      // These are about the limit or about settings.
      if (found.verdict == std::string_view{"host"} ||
          found.verdict == std::string_view{"misconfiguration"})
        continue;
      // Texts have three digits of GiB.
      EXPECT_GE(1.01 * static_cast<double>(rss) / mb + 1,
                largest_size(found.evidence))
          << what;
      const size_t percent = found.evidence.find("% of");
      if (percent != std::string::npos) {
        const size_t begin = found.evidence.rfind(' ', percent) + 1;
        EXPECT_GE(100, std::stod(found.evidence.substr(begin))) << what;
      }
    }
  }
  for (const char *rule :
       {"survivors", "growth_of_a_pool", "growth_of_a_cache", "unused_pages",
        "fragmentation", "user_variables", "transactions_locks", "session",
        "ceiling_floor_at_rest", "ceiling_target_too_low"})
    EXPECT_TRUE(rules.contains(rule)) << rule << " is not tried";
}

TEST(Advisor, WhatWasNeverWrittenIsNoLeakAndNoHolder) {
  Situation all = healthy();
  holding_of(&all, "binary log caches").allocated_bytes = 512 * mb;
  pool_of(&all, Pool::binlog).survivors_bytes = 512 * mb;
  pool_of(&all, Pool::binlog).resident_live_bytes = 1 * mb;
  EXPECT_TRUE(findings(all).empty());
  holding_of(&all, "binary log caches").bytes = 400 * mb;
  pool_of(&all, Pool::binlog).resident_live_bytes = 400 * mb;
  const std::vector<Finding> found = findings(all);
  ASSERT_EQ(2u, found.size());
  for (const Finding &one : found) EXPECT_EQ(400 * mb, one.bytes) << one.rule;
}

TEST(Advisor, EachHolderOfTheListIsJudged) {
  for (const auto &holder : memdiag::advisor::holders) {
    Situation all = healthy();
    hold(&all, holder.name, 600 * mb);
    const std::vector<Finding> found = findings(all);
    ASSERT_EQ(1u, found.size()) << holder.name;
    EXPECT_EQ(memdiag::advisor::rule_of(holder), found[0].rule);
    EXPECT_EQ(holder.name, found[0].holder);
    EXPECT_EQ(600 * mb, found[0].bytes) << holder.name;
    EXPECT_FALSE(found[0].allocated_bytes) << holder.name;
    EXPECT_EQ(Severity::warning, found[0].severity) << holder.name;
    EXPECT_NE("", found[0].remedy) << holder.name;
    EXPECT_GE(1024u, found[0].evidence.size()) << holder.name;
    EXPECT_GE(1024u, found[0].remedy.size()) << holder.name;
    EXPECT_EQ("", memdiag_test::logged_statement(found[0].remedy));
    EXPECT_GE(2048u, found[0].statement.value_or("").size()) << holder.name;
    const bool ends = holder.is_ended() || holder.statement;
    EXPECT_EQ(ends, found[0].statement.has_value()) << holder.name;
  }
}

TEST(Advisor, ALargeRedoLogBufferIsMadeSmaller) {
  Situation all = healthy();
  all.variables["innodb_log_buffer_size"] = 1 * gb;
  hold(&all, "redo log buffer", 940 * mb);
  const Finding found = findings(all).at(0);
  EXPECT_EQ("redo_log_buffer", found.rule);
  EXPECT_EQ("SET GLOBAL innodb_log_buffer_size = 536870912", found.statement);
  EXPECT_STREQ("redo log buffer",
               memdiag::advisor::holder_of("memory/innodb/log_buffer_memory",
                                           Pool::innodb)
                   ->name);
  // Its default is a large part of a small server.
  all.other_resident_bytes = 200 * mb;
  hold(&all, "redo log buffer", 128 * mb);
  EXPECT_TRUE(findings(all).empty());
  hold(&all, "redo log buffer", 129 * mb);
  EXPECT_FALSE(findings(all).empty());
}

/** Performance Schema counts them for the session that computed them. */
TEST(Advisor, NoSessionIsEndedForValuesThatOpenTablesKeep) {
  Situation all = healthy();
  hold(&all, "strings", 600 * mb);
  holding_of(&all, "strings").owner = memdiag::advisor::Session{42, 500 * mb};
  const auto found = [&all] { return findings(all).at(0); };
  const auto says = [&found](const char *words) {
    return found().remedy.find(words) != std::string::npos;
  };
  // None that is idle: it has what open tables keep.
  EXPECT_NE(std::string::npos,
            found().statement->find("PROCESSLIST_COMMAND IN ('Query', "
                                    "'Execute')"));
  EXPECT_TRUE(found().owner);
  all.kept_string_bytes = 299 * mb;
  EXPECT_TRUE(found().statement->starts_with("SELECT CONCAT("));
  // Those who are idle or gone computed most of it. No table is open that could
  // keep it.
  all.kept_string_bytes = 300 * mb;
  EXPECT_FALSE(found().statement);
  EXPECT_FALSE(says("open tables keep it"));
  EXPECT_FALSE(says("STATEMENT"));
  EXPECT_TRUE(says("no open table is known to keep it")) << found().remedy;
  all.value_tables = 4;
  EXPECT_EQ("FLUSH LOCAL TABLES", found().statement);
  EXPECT_FALSE(found().owner);
  EXPECT_TRUE(found().remedy.starts_with("sessions that are idle or gone "))
      << found().remedy;
  EXPECT_TRUE(says("statements on tables in use wait"));
  EXPECT_FALSE(says("KILL"));
  all.table_keepers = 2;
  EXPECT_FALSE(found().statement);
  EXPECT_TRUE(says("10 s): 2; FLUSH LOCAL TABLES before"));
  EXPECT_GE(1024u, found().remedy.size());
  // Not known.
  all.kept_string_bytes = 100 * mb;
  all.value_tables = 3;
  EXPECT_FALSE(found().statement);
  EXPECT_FALSE(found().owner);
  EXPECT_TRUE(says("3 of them have large values in generated columns"));
  EXPECT_GE(1024u, found().remedy.size());
  all.value_tables = 0;
  all.csv_tables = 2;
  EXPECT_FALSE(found().statement);
  EXPECT_TRUE(says("2 of them have large values in generated columns"));
  // The same of documents, but CSV has none, and no figure tells that tables
  // keep them.
  hold(&all, "strings", 0);
  hold(&all, "JSON and containers", 600 * mb);
  all.kept_string_bytes = 600 * mb;
  all.value_tables = 3;
  EXPECT_FALSE(found().statement);
  all.value_tables = 0;
  EXPECT_TRUE(found().statement->starts_with("SELECT CONCAT("));
  // Sessions that are idle have the same bytes, and are not ended either.
  all.idle_sessions = memdiag::advisor::Idle_sessions{600, 900 * mb, 900 * mb};
  EXPECT_EQ(1u, findings(all).size());
  // An idle one that computed them has none of them.
  holding_of(&all, "JSON and containers").owner =
      memdiag::advisor::Session{42, 500 * mb};
  EXPECT_TRUE(found().owner);
  all.largest_session->is_idle = true;
  EXPECT_FALSE(found().owner);
}

/** They keep strings in what they prepared or called, and in their traces. */
TEST(Advisor, IdleSessionsThatKeepStringsAreNamed) {
  Situation all = healthy();
  hold(&all, "strings", 600 * mb);
  holding_of(&all, "strings").owner = memdiag::advisor::Session{42, 500 * mb};
  all.largest_session->is_idle = true;
  // Those that run have most, and it has what tables keep.
  all.idle_string_bytes = 299 * mb;
  EXPECT_FALSE(findings(all).at(0).owner);
  EXPECT_NE(std::string::npos,
            findings(all).at(0).statement->find("'Query', 'Execute'"));
  all.idle_string_bytes = 300 * mb;
  Finding found = findings(all).at(0);
  ASSERT_TRUE(found.owner);
  EXPECT_NE(std::string::npos, found.evidence.find("; session 42 has up to"));
  for (const char *words :
       {"prepared statements", "programs that it called", "optimizer traces"})
    EXPECT_NE(std::string::npos, found.evidence.find(words)) << found.evidence;
  EXPECT_NE(std::string::npos,
            found.remedy.find("; sessions that are idle keep most of it; "
                              "STATEMENT names sessions of clients that have "
                              "at least half as much as the largest, but none "
                              "in a transaction or with locks"))
      << found.remedy;
  ASSERT_TRUE(found.statement);
  EXPECT_TRUE(found.statement->starts_with("SELECT CONCAT('KILL ', "));
  // One without any of these computed what a table kept.
  for (const char *condition :
       {"EVENT_NAME RLIKE _utf8mb4'^(memory/sql/String::value)'",
        "PROCESSLIST_COMMAND IN ('Sleep')",
        "'memory/sql/Prepared_statement::main_mem_root'",
        "'memory/sql/THD::sp_cache'", "VARIABLE_VALUE LIKE 'enabled=on%'",
        "'optimizer_trace_max_mem_size'", "2 * BYTES >= MOST", "INNODB_TRX",
        "performance_schema.metadata_locks WHERE OWNER_THREAD_ID IS NOT NULL)",
        "'%otelcol%'", "'%backup%'"})
    EXPECT_NE(std::string::npos, found.statement->find(condition)) << condition;
  EXPECT_GE(2048u, found.statement->size());
  EXPECT_EQ("", memdiag_test::logged_statement(*found.statement));
  EXPECT_GE(1024u, found.remedy.size());
  // None that keeps a lock could be left out.
  all.locks_are_counted = false;
  found = findings(all).at(0);
  EXPECT_FALSE(found.statement);
  EXPECT_TRUE(found.owner);
  EXPECT_NE(std::string::npos, found.remedy.find("sessions that keep locks"));
  EXPECT_EQ(std::string::npos, found.remedy.find("STATEMENT"));
  EXPECT_GE(1024u, found.remedy.size());
  all.locks_are_counted = true;
  // Open tables may keep them as well.
  all.value_tables = 3;
  found = findings(all).at(0);
  EXPECT_FALSE(found.owner);
  EXPECT_FALSE(found.statement);
}

TEST(Advisor, OpenTablesAreLookedAtForAFindingAloneThatTheyMayExplain) {
  using memdiag::advisor::asks_for_tables;
  for (const char *holder : {"strings", "JSON and containers"}) {
    Situation all = healthy();
    // More than is worth a look, and a usual share.
    hold(&all, holder, 100 * mb);
    EXPECT_FALSE(asks_for_tables(all)) << holder;
    hold(&all, holder, 600 * mb);
    EXPECT_TRUE(asks_for_tables(all)) << holder;
  }
  Situation all = healthy();
  hold(&all, "user variables", 600 * mb);
  EXPECT_FALSE(findings(all).empty());
  EXPECT_FALSE(asks_for_tables(all));
}

TEST(Advisor, NoSessionIsEndedForProgramsThatMayBeTriggers) {
  Situation all = healthy();
  hold(&all, "stored programs", 600 * mb);
  all.clients = 20;
  all.trigger_bytes = 30 * mb;
  EXPECT_TRUE(findings(all).at(0).statement);
  all.trigger_bytes = 31 * mb;
  const Finding found = findings(all).at(0);
  EXPECT_FALSE(found.statement);
  EXPECT_NE(std::string::npos, found.remedy.find("programs of triggers"));
  EXPECT_EQ(std::string::npos, found.remedy.find("STATEMENT"));
}

TEST(Advisor, TheDefaultKeyCacheIsNotMadeSmallerForOthers) {
  Situation all = healthy();
  hold(&all, "MyISAM key cache", 300 * mb);
  all.variables["key_buffer_size"] = 270 * mb;
  EXPECT_EQ("SET GLOBAL key_buffer_size = 141557760",
            findings(all).at(0).statement);
  all.variables["key_buffer_size"] = 8 * mb;
  const Finding found = findings(all).at(0);
  EXPECT_FALSE(found.statement);
  EXPECT_NE(std::string::npos, found.remedy.find("key caches with names"));
}

TEST(Advisor, WarningsEndWithTheirSession) {
  Situation all = healthy();
  hold(&all, "uncounted memory", 600 * mb);
  all.idle_warnings = 600 * mb / 800 - 1;
  EXPECT_FALSE(findings(all).at(0).statement);
  EXPECT_NE(std::string::npos,
            findings(all).at(0).remedy.find("no table tells whose they are"));
  all.idle_warnings = 600 * mb / 800;
  const Finding found = findings(all).at(0);
  EXPECT_EQ(memdiag::advisor::end_sessions_with_warnings(), found.statement);
  for (const char *condition :
       {"SELECT CONCAT('KILL ', ", "events_statements_current",
        "2 * KEPT >= MOST", "PROCESSLIST_COMMAND = 'Sleep'",
        "PROCESSLIST_ID <> CONNECTION_ID()", "INNODB_TRX", "metadata_locks",
        "'%otelcol%'"})
    EXPECT_NE(std::string::npos, found.statement->find(condition)) << condition;
  EXPECT_NE(std::string::npos,
            found.evidence.find("idle sessions have 786432 warnings, which "
                                "take 300 MiB at least"))
      << found.evidence;
  EXPECT_EQ(std::string::npos, found.remedy.find("no table tells"));
  EXPECT_NE(std::string::npos,
            found.remedy.find("temporary tables with their rows"));
  EXPECT_GE(1024u, found.evidence.size());
  all.locks_are_counted = false;
  EXPECT_FALSE(findings(all).at(0).statement);
}

TEST(Advisor, NoFlushThatWouldWaitForASession) {
  Situation all = healthy();
  hold(&all, "open tables", 600 * mb);
  hold(&all, "user variables", 300 * mb);
  ASSERT_EQ("FLUSH LOCAL TABLES", findings(all).at(0).statement);
  all.table_keepers = 2;
  const std::vector<Finding> found = findings(all);
  ASSERT_EQ(2u, found.size());
  EXPECT_EQ("open tables", found[0].holder);
  EXPECT_FALSE(found[0].statement);
  EXPECT_NE(std::string::npos, found[0].remedy.find("10 s): 2; FLUSH"))
      << found[0].remedy;
  EXPECT_GE(1024u, found[0].remedy.size());
  EXPECT_TRUE(found[1].statement) << found[1].rule;
  Situation growing = healthy();
  growing.table_keepers = 2;
  for (const Pool pool : {Pool::table_cache, Pool::dictionary})
    pool_of(&growing, pool).trend = Trend{1e6, 0.99, 900.0 * mb, 600};
  ASSERT_EQ(2u, findings(growing).size());
  for (const Finding &one : findings(growing))
    EXPECT_TRUE(one.remedy.starts_with("sessions that keep tables open"))
        << one.remedy;
}

/** FLUSH closes tables, and InnoDB keeps their definitions. */
TEST(Advisor, DefinitionsGoByALowerCache) {
  Situation all = healthy();
  hold(&all, "dictionary cache", 600 * mb);
  const auto statement = [&all] { return findings(all).at(0).statement; };
  const std::string lower =
      "SELECT 'FLUSH LOCAL TABLES' AS RUN UNION ALL SELECT 'SET GLOBAL "
      "table_definition_cache = ";
  EXPECT_EQ(lower + "2666'", statement());
  all.variables["table_definition_cache"] = 2000;
  EXPECT_EQ(lower + "1000'", statement());
  all.table_definitions = 1200;
  EXPECT_EQ(lower + "400'", statement());
  // It cannot be lower than that, and what is there is not known.
  all.table_definitions = 1199;
  EXPECT_FALSE(statement());
  all.table_definitions.reset();
  EXPECT_FALSE(statement());
  all.table_definitions = 8000;
  all.table_keepers = 1;
  EXPECT_FALSE(statement());
  EXPECT_NE(std::string::npos,
            findings(all).at(0).remedy.find("sessions that keep tables open"));
}

/** FLUSH and a lower table_definition_cache leave its cache. */
TEST(Advisor, DefinitionsOfTheDataDictionaryAreNotBoundByInnodbsCache) {
  Situation all = healthy();
  hold(&all, "dictionary cache", 600 * mb);
  all.data_dictionary_bytes = 300 * mb;
  EXPECT_TRUE(findings(all).at(0).statement);
  all.data_dictionary_bytes = 301 * mb;
  const Finding found = findings(all).at(0);
  EXPECT_FALSE(found.statement) << *found.statement;
  EXPECT_EQ(std::string::npos, found.remedy.find("table_definition_cache"));
  for (const char *words :
       {"stored_program_definition_cache", "max_connections", "open views"})
    EXPECT_NE(std::string::npos, found.remedy.find(words)) << found.remedy;
  EXPECT_NE(std::string::npos, found.evidence.find("stored programs"));
  // FLUSH would free what open tables have, which is more.
  hold(&all, "dictionary cache", 190 * mb);
  hold(&all, "open tables", 190 * mb);
  EXPECT_EQ("FLUSH LOCAL TABLES", findings(all).at(0).statement);
}

TEST(Situation, TheDataDictionaryHasItsInstruments) {
  const auto bytes = [](const char *route, Pool pool) {
    const std::array<memdiag::routes::Row, 2> routes{
        {{"memory/sql/dd::objects", Pool::dictionary, "", 0, 300, 1},
         {route, pool, "", 0, 40, 1}}};
    return memdiag::advisor::make_situation({}, {}, {}, {}, {}, routes)
        .data_dictionary_bytes;
  };
  EXPECT_EQ(340u, bytes("memory/sql/dd::String_type", Pool::dictionary));
  EXPECT_EQ(300u, bytes("mem_heap/dictionary", Pool::dictionary));
}

/** 8,000 tables: each place has no more than its usual share. */
TEST(Advisor, ManyTablesTakeMemoryInSeveralPlaces) {
  Situation all = healthy();
  hold(&all, "open tables", 190 * mb);
  holding_of(&all, "open tables").pool = Pool::table_cache;
  hold(&all, "triggers", 0);
  hold(&all, "dictionary cache", 100 * mb);
  std::vector<Finding> found = findings(all);
  ASSERT_EQ(1u, found.size());
  EXPECT_EQ("tables", found[0].rule);
  EXPECT_EQ("open tables", found[0].holder);
  EXPECT_EQ("table_cache", found[0].subsystem);
  EXPECT_EQ(290 * mb, found[0].bytes);
  EXPECT_EQ(Severity::warning, found[0].severity);
  EXPECT_EQ(
      "tables and their definitions hold 290 MiB, 28% of the memory besides "
      "the "
      "buffer pool: open tables 190 MiB, dictionary cache 100 MiB",
      found[0].evidence);
  EXPECT_TRUE(found[0].statement->ends_with("table_definition_cache = 2666'"));
  EXPECT_NE(std::string::npos,
            found[0].remedy.find("statements on tables in use wait"));
  // Few definitions: FLUSH frees more than half.
  all.table_definitions = 300;
  EXPECT_EQ("FLUSH LOCAL TABLES", findings(all).at(0).statement);
  hold(&all, "open tables", 100 * mb);
  hold(&all, "dictionary cache", 190 * mb);
  found = findings(all);
  ASSERT_EQ(1u, found.size());
  EXPECT_EQ("dictionary cache", found[0].holder);
  EXPECT_FALSE(found[0].statement);
  all.table_keepers = 1;
  EXPECT_NE(std::string::npos, findings(all).at(0).remedy.find("10 s): 1"));
  // One that has more than its usual share by itself is named by itself.
  hold(&all, "open tables", 210 * mb);
  ASSERT_EQ(1u, findings(all).size());
  EXPECT_EQ("open_tables", findings(all)[0].rule);
  hold(&all, "open tables", 100 * mb);
  hold(&all, "dictionary cache", 156 * mb);
  EXPECT_TRUE(findings(all).empty()) << "a quarter";
}

TEST(Advisor, ACacheThatGrowsNamesItsHolder) {
  Situation all = healthy();
  auto &pool = pool_of(&all, Pool::table_cache);
  pool.trend = Trend{1e6, 0.99, 150.0 * mb, 600};
  pool.live_bytes = pool.resident_live_bytes = 150 * mb;
  pool.active_bytes = 155 * mb;
  auto &holding = holding_of(&all, "open tables");
  holding.pool = Pool::table_cache;
  holding.bytes = holding.allocated_bytes = 110 * mb;
  std::vector<Finding> found = findings(all);
  ASSERT_EQ(1u, found.size());
  EXPECT_EQ("growth_of_a_cache", found[0].rule);
  EXPECT_EQ("open tables", found[0].holder);
  EXPECT_EQ(110 * mb, found[0].bytes);
  EXPECT_EQ("FLUSH LOCAL TABLES", found[0].statement);
  EXPECT_NE(std::string::npos,
            found[0].evidence.find("; open tables hold 110 MiB of it"));
  // Little, and less than half of the pool.
  holding.bytes = holding.allocated_bytes = 63 * mb;
  EXPECT_FALSE(findings(all).at(0).holder);
  holding.bytes = holding.allocated_bytes = 74 * mb;
  EXPECT_FALSE(findings(all).at(0).holder);
  // A finding of its own has it.
  holding.bytes = holding.allocated_bytes = 260 * mb;
  found = findings(all);
  ASSERT_EQ(2u, found.size());
  EXPECT_EQ("open_tables", found[0].rule);
  EXPECT_FALSE(found[1].holder);
}

TEST(Advisor, AStatementFreesWhatTheHolderHas) {
  const auto statement = [](const char *holder) {
    Situation all = healthy();
    hold(&all, holder, 600 * mb);
    const std::vector<Finding> found = findings(all);
    return found.empty() ? std::nullopt : found[0].statement;
  };
  EXPECT_EQ("FLUSH LOCAL TABLES", statement("open tables"));
  EXPECT_EQ("FLUSH LOCAL TABLES", statement("triggers"));
  EXPECT_EQ("SET GLOBAL key_buffer_size = 314572800",
            statement("MyISAM key cache"));
  // To list tables frees none.
  EXPECT_FALSE(statement("MEMORY tables"));
  for (const char *holder : {"user variables", "prepared statements"})
    EXPECT_TRUE(statement(holder)->starts_with("SELECT CONCAT('KILL ', "))
        << holder;
  // A cursor that a client has open is of no statement that runs.
  for (const char *holder : {"network buffers", "temporary tables"})
    EXPECT_NE(std::string::npos,
              statement(holder)->find(
                  "PROCESSLIST_COMMAND IN ('Sleep', 'Query', 'Fetch', "
                  "'Execute')"))
        << holder;
  EXPECT_NE(std::string::npos, statement("temporary tables")->find("2097152"));
  for (const char *condition :
       {"'KILL '", "INNODB_TEMP_TABLE_INFO", "PROCESSLIST_COMMAND = 'Sleep'",
        "PROCESSLIST_ID <> CONNECTION_ID()", "INNODB_TRX", "'memdiag'",
        "PROCESSLIST_USER NOT LIKE '%exporter%'", "'%otelcol%'"})
    EXPECT_NE(std::string::npos,
              statement("user temporary tables")->find(condition))
        << condition;
  // One whose client does not read looks for no KILL QUERY.
  for (const char *holder :
       {"sort buffers", "sets of DISTINCT", "temporary tables", "strings"}) {
    EXPECT_TRUE(statement(holder)->starts_with(
        "SELECT CONCAT(IF(PROCESSLIST_COMMAND = 'Sleep' OR "))
        << holder;
    EXPECT_NE(std::string::npos,
              statement(holder)->find("STATE IN ('Sending to client', "))
        << holder;
    EXPECT_NE(std::string::npos,
              statement(holder)->find("'KILL ', 'KILL QUERY '), "))
        << holder;
  }
  EXPECT_NE(std::string::npos, statement("binary log dump threads")
                                   ->find("'Binlog Dump', 'Binlog Dump GTID'"));
  EXPECT_NE(std::string::npos,
            statement("transactions, locks")->find("trx_lock_memory_bytes"));
}

/** Beside one session that has most, others with the usual little are no
cause. */
TEST(Advisor, AStatementEndsThoseWhoHaveMuch) {
  for (const auto &holder : memdiag::advisor::holders) {
    if (!holder.is_ended()) continue;
    Situation all = healthy();
    hold(&all, holder.name, 600 * mb);
    const Finding found = findings(all).at(0);
    const bool by_tables =
        holder.end == memdiag::advisor::End::temporary_tables;
    EXPECT_NE(std::string::npos,
              found.statement->find(by_tables ? " AND 2 * TABLES >= MOST"
                                              : " AND 2 * BYTES >= MOST"))
        << holder.name;
    EXPECT_EQ(!holder.of_sessions(),
              found.remedy.find("at least half as much") == std::string::npos)
        << found.remedy;
    EXPECT_EQ(!holder.of_sessions(),
              found.remedy.find("temporary tables with their rows") ==
                  std::string::npos)
        << found.remedy;
    using memdiag::advisor::End;
    const std::string_view no_ddl =
        " AND THREAD_ID NOT IN (SELECT OWNER_THREAD_ID FROM "
        "performance_schema.metadata_locks WHERE OWNER_THREAD_ID IS NOT NULL "
        "AND LOCK_DURATION <> 'EXPLICIT' AND LOCK_TYPE IN "
        "('SHARED_UPGRADABLE', ";
    EXPECT_EQ(holder.end == End::queries ||
                  holder.end == End::sessions_or_queries ||
                  holder.end == End::transactions,
              found.statement->find(no_ddl) != std::string::npos)
        << holder.name;
    EXPECT_EQ(found.statement->find(no_ddl) != std::string::npos,
              found.remedy.find("no DDL") != std::string::npos)
        << found.remedy;
    // The end of an idle session would roll back, or release a lock.
    EXPECT_EQ(holder.end == End::sessions ||
                  holder.end == End::temporary_tables ||
                  holder.end == End::sessions_or_queries,
              found.remedy.find("in a transaction or with locks") !=
                  std::string::npos)
        << found.remedy;
    // Replicas' threads have other names.
    EXPECT_EQ(holder.end != End::binlog_dump,
              found.statement->find("'%otelcol%'") != std::string::npos)
        << holder.name;
    // KILL of a backup would throw hours of work away.
    for (const char *backups :
         {"'mysqlpump'", "'mysqlsh'", "'%dump%'", "'%backup%'"})
      EXPECT_EQ(holder.end != End::binlog_dump,
                found.statement->find(backups) != std::string::npos)
          << holder.name << ' ' << backups;
    // KILL would release it.
    EXPECT_EQ(
        holder.end != End::binlog_dump,
        found.statement->find("performance_schema.metadata_locks WHERE ") !=
            std::string::npos)
        << holder.name;
  }
}

/** KILL QUERY would throw away hours of work, which then begins again. */
TEST(Advisor, DdlIsNotEnded) {
  Situation all = healthy();
  hold(&all, "online DDL", 600 * mb);
  holding_of(&all, "online DDL").owner =
      memdiag::advisor::Session{42, 500 * mb};
  const std::vector<Finding> found = findings(all);
  ASSERT_EQ(1u, found.size());
  EXPECT_EQ("online DDL", found[0].holder);
  EXPECT_FALSE(found[0].statement) << *found[0].statement;
  EXPECT_EQ(42u, found[0].owner->processlist_id);
  EXPECT_EQ(
      "it goes when the DDL ends, which KILL would only make begin again; for "
      "the next, lower innodb_ddl_buffer_size",
      found[0].remedy);
}

TEST(Advisor, RowLocksAreInTheBufferPool) {
  Situation all = healthy();
  all.host.resident_bytes = 1000 * mb;
  all.row_locks = memdiag::advisor::Row_locks{300 * mb, {42, 200 * mb}};
  std::vector<Finding> found = findings(all);
  ASSERT_EQ(1u, found.size());
  EXPECT_EQ("transactions_locks", found[0].rule);
  EXPECT_EQ("transactions, locks", found[0].holder);
  EXPECT_EQ(Severity::warning, found[0].severity);
  EXPECT_EQ(300 * mb, found[0].bytes);
  EXPECT_EQ(42u, found[0].owner->processlist_id);
  EXPECT_EQ(
      "transactions, locks hold 300 MiB of the buffer pool, 30% of RSS: locks "
      "of rows and other data of transactions that are open; session 42 has "
      "up to 200 MiB of it, and is in a transaction",
      found[0].evidence);
  EXPECT_NE(std::string::npos,
            found[0].statement->find("trx_lock_memory_bytes"));
  // Many sessions have them.
  all.row_locks = memdiag::advisor::Row_locks{200 * mb, {42, 90 * mb}};
  found = findings(all);
  ASSERT_EQ(1u, found.size());
  EXPECT_EQ(Severity::note, found[0].severity);
  EXPECT_FALSE(found[0].owner);
  // No session has them.
  all.row_locks->prepared_bytes = 100 * mb;
  found = findings(all);
  ASSERT_EQ(1u, found.size());
  EXPECT_FALSE(found[0].statement);
  EXPECT_TRUE(found[0].evidence.ends_with(
      "; XA transactions that are prepared, and whose sessions are gone, have "
      "100 MiB of it"))
      << found[0].evidence;
  EXPECT_TRUE(found[0].remedy.starts_with("XA RECOVER"));
  all.row_locks->prepared_bytes = 99 * mb;
  EXPECT_TRUE(findings(all).at(0).statement);
  all.row_locks->prepared_bytes = 0;
  // Less than a tenth of the process, and too little of a small one.
  all.row_locks->bytes = 99 * mb;
  EXPECT_TRUE(findings(all).empty());
  all.host.resident_bytes = 300 * mb;
  all.row_locks->bytes = 63 * mb;
  EXPECT_TRUE(findings(all).empty());
}

/** KILL rolls back what a session has changed. A session that reads the advice
cannot end itself and go on. */
TEST(Advisor, WhatKillDoesBesidesIsSaid) {
  using memdiag::advisor::Session;
  const auto found = [](std::string_view holder, auto change) {
    Situation all = healthy();
    hold(&all, holder, 600 * mb);
    holding_of(&all, holder).owner = Session{42, 500 * mb};
    change(&all);
    return findings(all).at(0);
  };
  const auto nothing = [](Situation *) {};
  const auto in_transaction = [](Situation *all) {
    all->largest_session = Session{42, 500 * mb, true};
  };
  const auto of_another = [](Situation *all) {
    all->largest_session = Session{43, 500 * mb, true};
  };
  const auto reader = [](Situation *all) { all->reader_processlist_id = 42; };
  for (const char *holder : {"user variables", "rows with large values"}) {
    EXPECT_FALSE(found(holder, nothing).owner->in_transaction) << holder;
    EXPECT_FALSE(found(holder, of_another).owner->in_transaction) << holder;
    const Finding open = found(holder, in_transaction);
    EXPECT_TRUE(open.owner->in_transaction) << holder;
    EXPECT_TRUE(open.evidence.ends_with(" of it, and is in a transaction"))
        << open.evidence;
    const Finding own = found(holder, reader);
    EXPECT_TRUE(own.owner->reads_this) << holder;
    EXPECT_TRUE(own.evidence.ends_with(
        "; session 42, which reads this, has up to 500 MiB of it"))
        << own.evidence;
  }
  EXPECT_FALSE(found("rows with large values", reader).statement);

  Situation all = healthy();
  all.row_locks = memdiag::advisor::Row_locks{300 * mb, {42, 200 * mb}};
  const Finding locks = findings(all).at(0);
  EXPECT_TRUE(locks.owner->in_transaction);
  EXPECT_NE(std::string::npos, locks.remedy.find("rolls its transaction back"));
  EXPECT_TRUE(locks.evidence.ends_with(" of it, and is in a transaction"));

  all = healthy();
  all.largest_session = Session{42, 500 * mb};
  all.reader_processlist_id = 42;
  EXPECT_EQ(std::string::npos, findings(all).at(0).remedy.find("KILL"));
  EXPECT_FALSE(findings(all).at(0).statement);
  all.reader_processlist_id = 43;
  EXPECT_NE(std::string::npos, findings(all).at(0).remedy.find("KILL"));
}

/** The statement looks for all that KILL would do harm to. Words did not. */
TEST(Advisor, ALargeSessionIsEndedLikeOthers) {
  Situation all = healthy();
  all.largest_session = memdiag::advisor::Session{42, 500 * mb};
  Finding found = findings(all).at(0);
  EXPECT_EQ("session", found.rule);
  EXPECT_EQ(memdiag::advisor::end_query(42), found.statement);
  EXPECT_EQ(std::string::npos, found.remedy.find("KILL 42"));
  all.largest_session->is_idle = true;
  EXPECT_EQ(memdiag::advisor::end_session(42), findings(all).at(0).statement);
  all.locks_are_counted = false;
  found = findings(all).at(0);
  EXPECT_FALSE(found.statement);
  EXPECT_EQ(std::string::npos, found.remedy.find("KILL 42"));
  EXPECT_NE(std::string::npos, found.remedy.find("sql/mdl"));
}

/** A lower value of a variable frees nothing of what idle sessions and running
searches have, and would be offered again, lower. */
TEST(Advisor, AStatementThatOnlyBoundsIsNone) {
  Situation all = healthy();
  all.variables["stored_program_cache"] = 256;
  all.variables["innodb_ft_result_cache_limit"] = 2 * gb;
  hold(&all, "stored programs", 600 * mb);
  const Finding programs = findings(all).at(0);
  EXPECT_TRUE(programs.statement->starts_with("SELECT CONCAT('KILL ', "))
      << *programs.statement;
  EXPECT_NE(std::string::npos, programs.statement->find("THD::sp_cache"));
  hold(&all, "stored programs", 20 * mb);
  hold(&all, "full-text queries", 600 * mb);
  const Finding searches = findings(all).at(0);
  EXPECT_FALSE(searches.statement);
  EXPECT_NE(std::string::npos, searches.remedy.find("KILL QUERY ends it"));
}

TEST(Advisor, FullTextCachesAreWrittenWhereTheyCanBe) {
  Situation all = healthy();
  hold(&all, "full-text caches", 600 * mb);
  Finding found = findings(all).at(0);
  // OPTIMIZE waits for idle transactions, and SELECT for OPTIMIZE.
  EXPECT_TRUE(found.statement->starts_with(
      "SELECT 'SET SESSION lock_wait_timeout = 5' AS RUN "));
  EXPECT_TRUE(found.statement->ends_with("@@lock_wait_timeout)"));
  EXPECT_NE(std::string::npos, found.remedy.find("wait meanwhile"));
  EXPECT_EQ(std::string::npos, found.remedy.find("super_read_only"));
  all.is_read_only = true;
  found = findings(all).at(0);
  EXPECT_FALSE(found.statement);
  EXPECT_NE(std::string::npos, found.remedy.find("super_read_only is ON"));
  hold(&all, "full-text caches", 20 * mb);
  hold(&all, "open tables", 600 * mb);
  EXPECT_EQ("FLUSH LOCAL TABLES", findings(all).at(0).statement);
}

TEST(Advisor, WithoutPerformanceSchemaNoStatementFindsTheSessions) {
  using memdiag::advisor::End;
  for (const bool without_locks : {false, true})
    for (const auto &holder : memdiag::advisor::holders) {
      Situation all = healthy();
      (without_locks ? all.locks_are_counted : all.sessions_are_counted) =
          false;
      hold(&all, holder.name, 600 * mb);
      const std::vector<Finding> found = findings(all);
      ASSERT_EQ(1u, found.size()) << holder.name;
      const bool ends_none = !holder.is_ended() ||
                             (without_locks && holder.end == End::binlog_dump);
      EXPECT_EQ(ends_none && (holder.statement != nullptr ||
                              holder.end == End::binlog_dump),
                found[0].statement.has_value())
          << holder.name;
      EXPECT_EQ(ends_none,
                found[0].remedy.find("Performance Schema does not count ") ==
                    std::string::npos)
          << found[0].remedy;
    }
  Situation all = healthy();
  all.locks_are_counted = false;
  hold(&all, "rows with large values", 600 * mb);
  holding_of(&all, "rows with large values").owner =
      memdiag::advisor::Session{42, 500 * mb};
  EXPECT_FALSE(findings(all).at(0).statement);
  EXPECT_NE(std::string::npos, findings(all).at(0).remedy.find("sql/mdl"));
}

/** It ends no session, asks a day for how many there are, and lowers no buffer
below its default. */
TEST(Advisor, AStatementMakesTheBuffersOfSessionsFit) {
  const auto statement = [](const std::function<void(Situation *)> &make) {
    Situation all = healthy();
    make(&all);
    for (const Finding &found : findings(all))
      if (found.rule == "session_buffers") return found.statement;
    ADD_FAILURE() << "no finding";
    return std::optional<std::string>{};
  };
  const auto crowd = [](Situation *all) { all->max_connections = 10000; };
  EXPECT_EQ("SET PERSIST max_connections = 3072", statement(crowd));
  EXPECT_FALSE(statement([&](Situation *all) {
    crowd(all);
    all->max_used_seconds = 86399;
  }));
  const auto buffer = [](const char *variable, uint64_t bytes) {
    return [variable, bytes](Situation *all) {
      all->max_used_seconds = 60;
      all->session_buffers_bytes = bytes + 2 * mb;
      all->largest_session_buffer = memdiag::advisor::Buffer{variable, bytes};
    };
  };
  // 6 GiB for 151 connections.
  const uint64_t fits = (6 * gb / 151 - 2 * mb) / 4096 * 4096;
  EXPECT_EQ("SET GLOBAL binlog_cache_size = " + std::to_string(fits),
            statement(buffer("binlog_cache_size", 256 * mb)));
  Situation all = healthy();
  buffer("binlog_cache_size", fits)(&all);
  EXPECT_TRUE(findings(all).empty());
  EXPECT_FALSE(statement([&](Situation *situation) {
    buffer("binlog_cache_size", 256 * mb)(situation);
    situation->max_connections = 6 * gb / (2 * mb + (256 << 10)) + 1;
  }));
  // No default is the cause.
  crowd(&all);
  all.largest_session_buffer =
      memdiag::advisor::Buffer{"read_rnd_buffer_size", 256 << 10};
  const auto found = findings(all);
  ASSERT_EQ(1u, found.size());
  EXPECT_EQ(std::string::npos, found[0].remedy.find("lower it first"));
}

TEST(Advisor, ASessionThatHasMostOfItIsNamedOnce) {
  Situation all = healthy();
  hold(&all, "user variables", 600 * mb);
  holding_of(&all, "user variables").owner =
      memdiag::advisor::Session{42, 590 * mb};
  all.largest_session = memdiag::advisor::Session{42, 610 * mb};
  std::vector<Finding> found = findings(all);
  ASSERT_EQ(1u, found.size());
  EXPECT_TRUE(
      found[0].evidence.ends_with("; session 42 has up to 590 MiB of it"))
      << found[0].evidence;
  ASSERT_TRUE(found[0].owner);
  EXPECT_EQ(42u, found[0].owner->processlist_id);
  // Another one.
  all.largest_session = memdiag::advisor::Session{43, 610 * mb};
  found = findings(all);
  ASSERT_EQ(2u, found.size());
  EXPECT_EQ("session", found[1].rule);
  // Its part of the user variables is in their finding.
  all.held_by_largest = {
      {memdiag::advisor::find_holder("user variables"), 200 * mb},
      {memdiag::advisor::find_holder("sort buffers"), 250 * mb}};
  found = findings(all);
  ASSERT_EQ(2u, found.size());
  EXPECT_EQ(410 * mb, found[1].bytes);
  EXPECT_TRUE(found[1].evidence.starts_with("besides, session 43 holds"))
      << found[1].evidence;
  all.held_by_largest[0].bytes = 590 * mb;
  ASSERT_EQ(1u, findings(all).size());
}

TEST(Advisor, FragmentationEndsTheIdleSessionThatKeepsMostOfThePages) {
  Situation all = healthy();
  pool_of(&all, Pool::session).active_bytes = 600 * mb;
  pool_of(&all, Pool::session).live_bytes = 200 * mb;
  all.largest_session = memdiag::advisor::Session{
      .processlist_id = 42, .bytes = 150 * mb, .is_idle = true};
  // The rest of it is in other pools.
  all.largest_in_session_pool = 99 * mb;
  const auto fragmented = [&all] {
    for (const Finding &found : findings(all))
      if (found.rule == "fragmentation") return found;
    ADD_FAILURE() << "no finding";
    return Finding{};
  };
  EXPECT_EQ(400 * mb, fragmented().bytes);
  EXPECT_FALSE(fragmented().statement);
  all.largest_in_session_pool = 100 * mb;
  // The statement ends no session that runs something.
  all.largest_session->is_idle = false;
  EXPECT_FALSE(fragmented().statement);
  all.largest_session->is_idle = true;
  // It would leave this one out.
  all.largest_session->in_transaction = true;
  EXPECT_FALSE(fragmented().statement);
  all.largest_session->in_transaction = false;
  const std::string statement = fragmented().statement.value_or("");
  for (const char *condition :
       {"PROCESSLIST_ID = 42 ", "PROCESSLIST_COMMAND = 'Sleep'",
        "PROCESSLIST_ID <> CONNECTION_ID()", "INNODB_TRX", "'memdiag'",
        "PROCESSLIST_USER NOT LIKE '%exporter%'", "'%otelcol%'"})
    EXPECT_NE(std::string::npos, statement.find(condition)) << condition;
  const auto says = [&fragmented](const char *words) {
    return fragmented().remedy.find(words) != std::string::npos;
  };
  EXPECT_TRUE(says("temporary tables with their rows"));
  // The statement leaves out the session that runs it.
  all.reader_processlist_id = 42;
  EXPECT_FALSE(fragmented().statement);
  EXPECT_FALSE(says("temporary tables with their rows"));
  all.reader_processlist_id = 43;
  EXPECT_TRUE(fragmented().statement);
  EXPECT_FALSE(says("does not count locks of names"));
  all.locks_are_counted = false;
  EXPECT_FALSE(fragmented().statement);
  EXPECT_TRUE(says("does not count locks of names"));
  EXPECT_FALSE(says("temporary tables with their rows"));
}

TEST(Advisor, IdleSessionsAreEndedButForSome) {
  Situation all = healthy();
  all.idle_sessions = memdiag::advisor::Idle_sessions{600, 200 * mb, 200 * mb};
  pool_of(&all, Pool::session).resident_live_bytes = 100 * mb;
  pool_of(&all, Pool::connection).resident_live_bytes = 80 * mb;
  std::vector<Finding> found = findings(all);
  ASSERT_EQ(1u, found.size());
  EXPECT_EQ("idle_sessions", found[0].rule);
  EXPECT_FALSE(found[0].holder);
  EXPECT_EQ(180 * mb, found[0].bytes);
  EXPECT_EQ(200 * mb, found[0].allocated_bytes);
  ASSERT_TRUE(found[0].statement);
  for (const char *condition :
       {"PROCESSLIST_COMMAND = 'Sleep'", "PROCESSLIST_TIME >= 60",
        // SET TIMESTAMP sets the former, and not this.
        "TIMER_END + 6e13 <= (SELECT MAX(TIMER_START)",
        "PROCESSLIST_ID <> CONNECTION_ID()", "INNODB_TRX", "'memdiag'",
        "PROCESSLIST_USER NOT LIKE '%exporter%'", "'%otelcol%'",
        "(NAME LIKE '%one_connection' OR NAME LIKE '%/mysqlx/worker')"})
    EXPECT_NE(std::string::npos, found[0].statement->find(condition))
        << condition;
  EXPECT_GE(2048u, found[0].statement->size());
  // The statement would leave most of them.
  all.idle_sessions->long_idle_bytes = 99 * mb;
  found = findings(all);
  ASSERT_EQ(1u, found.size());
  EXPECT_FALSE(found[0].statement);
  // The same bytes by another name.
  hold(&all, "network buffers", 150 * mb);
  found = findings(all);
  ASSERT_EQ(1u, found.size());
  EXPECT_EQ("network_buffers", found[0].rule);
  // Other bytes, in a pool of their own.
  hold(&all, "network buffers", 0);
  hold(&all, "temporary tables", 300 * mb);
  holding_of(&all, "temporary tables").pool = Pool::temp_table;
  found = findings(all);
  ASSERT_EQ(2u, found.size());
  EXPECT_EQ("temporary_tables", found[0].rule);
  EXPECT_EQ("idle_sessions", found[1].rule);
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

TEST(Holders, ASleepingSessionThatKeepsLocksForOthersIsLeft) {
  // A backup's LOCK INSTANCE FOR BACKUP or FLUSH TABLES WITH READ LOCK, LOCK
  // TABLES, and the leader's GET_LOCK() are in no transaction.
  const std::string spared =
      "THREAD_ID NOT IN (SELECT OWNER_THREAD_ID FROM "
      "performance_schema.metadata_locks WHERE OWNER_THREAD_ID IS NOT NULL)";
  std::vector<std::string> statements{memdiag::advisor::end_idle_sessions(),
                                      memdiag::advisor::end_session(42)};
  for (const auto &holder : memdiag::advisor::holders) {
    std::string statement = memdiag::advisor::ending_statement(holder);
    if (statement.find("'Sleep'") != std::string::npos &&
        holder.end != memdiag::advisor::End::queries)
      statements.push_back(std::move(statement));
  }
  EXPECT_LE(8u, statements.size());
  for (const std::string &statement : statements)
    EXPECT_NE(std::string::npos, statement.find(spared)) << statement;
}

TEST(Holders, APatternHasACharacterSetThatItsColumnHas) {
  // REGEXP refuses a pattern of SET NAMES binary (error 3995).
  size_t patterns = 0;
  for (const auto &holder : memdiag::advisor::holders) {
    const std::string statement = memdiag::advisor::ending_statement(holder);
    const size_t at = statement.find("RLIKE ");
    if (at == std::string::npos) continue;
    ++patterns;
    EXPECT_TRUE(statement.substr(at).starts_with("RLIKE _utf8mb4'^"))
        << statement;
  }
  EXPECT_LE(10u, patterns);
}

TEST(Holders, ClientsOfTheXProtocolAndOfAThreadPoolAreEndedAsWell) {
  for (const auto &holder : memdiag::advisor::holders) {
    if (!holder.is_ended()) continue;
    EXPECT_NE(std::string::npos,
              memdiag::advisor::ending_statement(holder).find(
                  "(NAME LIKE '%one_connection' OR NAME LIKE "
                  "'%/mysqlx/worker')"))
        << holder.name;
  }
}

TEST(Holders, RulesAndStatementsFitTheirColumns) {
  for (const auto &holder : memdiag::advisor::holders) {
    const std::string rule = memdiag::advisor::rule_of(holder);
    EXPECT_GE(64u, rule.size()) << holder.name;
    EXPECT_EQ(rule.npos,
              rule.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789"))
        << rule;
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
  // The server would set the least that it takes, which it has.
  const auto *const of = memdiag::advisor::find_holder("dictionary cache");
  EXPECT_FALSE(memdiag::advisor::statement_of(*of, 799));
  EXPECT_TRUE(memdiag::advisor::statement_of(*of, 800));
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
  EXPECT_TRUE(ends_with_session("memory/temptable/", Pool::temp_table));
  EXPECT_FALSE(ends_with_session("memory/memory/HP_PTRS", Pool::temp_table));
}

/** Pools as in holdings_of(). */
std::vector<Holding> holdings_of_plugins(
    std::span<const memdiag::instruments::Counted> counted,
    std::span<const memdiag::routes::Row> routes = {}) {
  std::array<memdiag::Pool_row, pool_count> pools{};
  for (auto &pool : pools) pool.live_bytes = 1000;
  memdiag::advisor::Holding_figures figures{.pools = pools,
                                            .resident_shares = {},
                                            .routes = routes,
                                            .counted = counted,
                                            .dump_thread_bytes = 0,
                                            .trigger_bytes = 0,
                                            .temp_table_file_bytes = {},
                                            .tables = {},
                                            .largest_processlist_id = {},
                                            .held_by_largest = {},
                                            .beside_allocator_bytes = 70,
                                            .mapped_file_bytes = 80};
  figures.resident_shares.fill(0.5);
  return memdiag::advisor::holdings(figures);
}

TEST(Holdings, WhatPluginsTakeIsNotCalledJson) {
  using memdiag::instruments::Counted;
  const auto bytes = [](const std::vector<Counted> &counted, const char *name) {
    const auto found = holding_in(holdings_of_plugins(counted), name);
    return found ? found->bytes : 0;
  };
  const std::vector<Counted> plugin = {{"memory/sql/JSON", true, 100, 1, 100},
                                       {"memory/sql/other", true, 400, 1, 9}};
  EXPECT_EQ(50u, bytes(plugin, "JSON and containers"));
  // Of malloc()'s 1000 bytes in sessions 900, and 600 of the others.
  EXPECT_EQ(450u + 300u, bytes(plugin, "uncounted memory"));
  const std::vector<Counted> documents = {
      {"memory/sql/JSON", true, 600, 1, 600},
      {"memory/sql/other", true, 400, 1, 9}};
  EXPECT_EQ(500u, bytes(documents, "JSON and containers"));
  EXPECT_EQ(300u, bytes(documents, "uncounted memory"));
  // Nobody has counted documents: without Performance Schema, and while their
  // instrument is off.
  EXPECT_EQ(0u, bytes({}, "JSON and containers"));
  EXPECT_EQ(1000u, bytes({}, "uncounted memory"));
  const std::vector<Counted> off = {{"memory/sql/JSON", false, 0, 0, 0},
                                    {"memory/sql/other", true, 400, 1, 9}};
  EXPECT_EQ(0u, bytes(off, "JSON and containers"));
  EXPECT_EQ(500u + 300u, bytes(off, "uncounted memory"));
  // Performance Schema's own memory is not malloc()'s.
  const std::vector<Counted> own = {
      {"memory/performance_schema/table_handles", true, 700, 1, 700}};
  const std::vector<memdiag::routes::Row> place = {
      {"performance_schema", Pool::perfschema, "", 0, 700, 1}};
  EXPECT_EQ(
      1000u,
      holding_in(holdings_of_plugins(own, place), "uncounted memory")->bytes);
  // Options have led these to malloc(), of whichever threads.
  const std::vector<Counted> led = {
      {"memory/sql/String::value", true, 400, 1, 9}};
  const std::vector<memdiag::routes::Row> here = {
      {"memory/sql/String::value", Pool::general, "", 0, {}, {}}};
  EXPECT_EQ(
      300u + 300u,
      holding_in(holdings_of_plugins(led, here), "uncounted memory")->bytes);
  // Warnings are statements' that have ended.
  const std::vector<memdiag::routes::Row> warnings = {
      {"(without key)", Pool::statement, "", 0, 800, 1}};
  const auto divided = holdings_of(warnings);
  EXPECT_EQ(100u, holding_in(divided, "running statements")->bytes);
  EXPECT_LE(400u, holding_in(divided, "uncounted memory")->bytes);
  EXPECT_EQ(70u, bytes({}, "mappings of plugins"));
  EXPECT_EQ(80u, bytes({}, "mapped files"));
}

/** A session that setup_actors excludes has 240 MB, and 20 others 0.1 MB each:
those would be ended for it. */
TEST(Advisor, NobodyIsNamedWhereMostIsNotCounted) {
  Situation all = healthy();
  hold(&all, "user variables", 600 * mb);
  const auto statement = [&all](Reading counted) {
    for (memdiag::advisor::Holding &each : all.holdings)
      if (each.holder == memdiag::advisor::find_holder("user variables"))
        each.counted_bytes = counted;
    return findings(all).at(0).statement;
  };
  EXPECT_TRUE(statement(std::nullopt));
  EXPECT_TRUE(statement(500 * mb));
  EXPECT_FALSE(statement(2 * mb));
  EXPECT_NE(std::string::npos,
            findings(all).at(0).remedy.find("no statement finds"));
}

/** They are another holder's: clients' strings may not be counted at all. */
TEST(Holdings, StringsOfDumpThreadsAreNotCountedForClients) {
  memdiag::instruments::Shares shares{};
  std::array<memdiag::Pool_row, pool_count> pools{};
  const std::vector<memdiag::routes::Row> routes{
      {"memory/sql/String::value", Pool::session, "", 0, 220, 1}};
  const std::vector<memdiag::instruments::Counted> of{
      {"memory/sql/String::value", true, 100, 1, 9}};
  const auto all = memdiag::advisor::holdings({.pools = pools,
                                               .resident_shares = shares,
                                               .routes = routes,
                                               .counted = of,
                                               .dump_thread_bytes = 90,
                                               .trigger_bytes = 0,
                                               .temp_table_file_bytes = {},
                                               .tables = {},
                                               .largest_processlist_id = {},
                                               .held_by_largest = {}});
  EXPECT_EQ(130u, holding_in(all, "strings")->allocated_bytes);
  EXPECT_EQ(10u, holding_in(all, "strings")->counted_bytes);
}

TEST(Holdings, HowMuchIsCountedComesFromAllInstrumentsOfAHolder) {
  memdiag::instruments::Shares shares{};
  std::array<memdiag::Pool_row, pool_count> pools{};
  const std::vector<memdiag::routes::Row> routes{
      {"memory/sql/user_var_entry::value", Pool::session, "", 0, 600, 1}};
  const auto counted = [&](std::vector<memdiag::instruments::Counted> of) {
    const auto all = memdiag::advisor::holdings({.pools = pools,
                                                 .resident_shares = shares,
                                                 .routes = routes,
                                                 .counted = of,
                                                 .dump_thread_bytes = 0,
                                                 .trigger_bytes = 0,
                                                 .temp_table_file_bytes = {},
                                                 .tables = {},
                                                 .largest_processlist_id = {},
                                                 .held_by_largest = {}});
    return holding_in(all, "user variables")->counted_bytes;
  };
  EXPECT_FALSE(counted({}));
  EXPECT_EQ(500u,
            counted({{"memory/sql/user_var_entry", true, 100, 1, 9},
                     {"memory/sql/user_var_entry::value", true, 400, 1, 9},
                     {"memory/sql/THD::variables", true, 1000, 1, 9}}));
  EXPECT_EQ(0u,
            counted({{"memory/sql/user_var_entry::value", false, 400, 1, 9}}));
}

TEST(Advisor, WithoutCountsBlocksOfMallocMayBeAnybodys) {
  Situation all = healthy();
  hold(&all, "uncounted memory", 600 * mb);
  const char *const words = "does not count JSON documents now";
  EXPECT_EQ(std::string::npos, findings(all).at(0).evidence.find(words));
  all.documents_are_counted = false;
  EXPECT_NE(std::string::npos, findings(all).at(0).evidence.find(words));
}

/** Performance Schema counts all heaps of InnoDB as one instrument. */
TEST(Holdings, ASessionHasTheRowsThatNoOtherHeapCanBe) {
  memdiag::instruments::Shares shares{};
  const auto owner = [&shares](uint64_t held, uint64_t of_others) {
    std::array<memdiag::Pool_row, pool_count> pools{};
    pools[static_cast<size_t>(Pool::transaction)].live_bytes = 1000;
    const std::vector<memdiag::routes::Row> routes{
        {"mem_heap/row", Pool::transaction, "", 0, 600, 1},
        {"mem_heap/transaction", Pool::transaction, "", 0, of_others, 1}};
    const auto all = memdiag::advisor::holdings(
        {.pools = pools,
         .resident_shares = shares,
         .routes = routes,
         .counted = {},
         .dump_thread_bytes = 0,
         .trigger_bytes = 0,
         .temp_table_file_bytes = {},
         .tables = {},
         .largest_processlist_id = {},
         .held_by_largest = {},
         .most_heaps = memdiag::advisor::Session{42, held}});
    return holding_in(all, "rows with large values")->owner;
  };
  ASSERT_TRUE(owner(500, 200));
  EXPECT_EQ(42u, owner(500, 200)->processlist_id);
  EXPECT_EQ(500u, owner(500, 200)->bytes);
  EXPECT_EQ(600u, owner(800, 200)->bytes);
  EXPECT_FALSE(owner(499, 200)) << "it may have all of the others";
  EXPECT_FALSE(owner(100, 200));
  // What was not yet written counts for it, too.
  shares[static_cast<size_t>(Pool::transaction)] = 0.5;
  EXPECT_FALSE(owner(499, 200));
  EXPECT_EQ(300u, owner(500, 200)->bytes);
}

TEST(Advisor, AStatementWithLargeValuesIsEnded) {
  Situation all = healthy();
  hold(&all, "rows with large values", 600 * mb);
  holding_of(&all, "rows with large values").owner =
      memdiag::advisor::Session{42, 500 * mb};
  const Finding found = findings(all).at(0);
  // Its client may not read.
  EXPECT_TRUE(found.statement->starts_with(
      "SELECT CONCAT(IF(PROCESSLIST_COMMAND = 'Sleep' OR "));
  EXPECT_NE(
      std::string::npos,
      found.statement->find(
          " WHERE PROCESSLIST_ID = 42 AND PROCESSLIST_COMMAND <> 'Sleep' AND "
          "THREAD_ID NOT IN (SELECT OWNER_THREAD_ID FROM "
          "performance_schema.metadata_locks WHERE OWNER_THREAD_ID IS NOT NULL "
          "AND LOCK_DURATION <> 'EXPLICIT' AND LOCK_TYPE IN "
          "('SHARED_UPGRADABLE', 'SHARED_NO_WRITE', 'SHARED_NO_READ_WRITE', "
          "'EXCLUSIVE')) AND PROCESSLIST_USER NOT LIKE '%exporter%'"))
      << *found.statement;
  EXPECT_EQ(42u, found.owner->processlist_id);
  // HANDLER keeps them, and no statement runs.
  holding_of(&all, "rows with large values").owner->is_idle = true;
  EXPECT_FALSE(findings(all).at(0).statement);
  EXPECT_NE(std::string::npos,
            findings(all).at(0).remedy.find("HANDLER ... CLOSE"));
}

TEST(Holders, LargeValuesAreNoLocks) {
  EXPECT_STREQ(
      "rows with large values",
      memdiag::advisor::holder_of("mem_heap/row", Pool::transaction)->name);
}

TEST(Holders, LocksOfNamesAreNoOpenTables) {
  const auto *const holder =
      memdiag::advisor::holder_of("memory/mysys/lf_node", Pool::table_cache);
  ASSERT_NE(nullptr, holder);
  EXPECT_STREQ("metadata locks", holder->name);
}

}  // namespace
