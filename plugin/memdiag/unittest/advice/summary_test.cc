// summary.h: the answers to five questions, from literal facts.

#include "plugin/memdiag/advice/summary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "plugin/memdiag/advice/usual_shares.h"
#include "plugin/memdiag/unittest/logged_statements.h"

namespace memdiag_test {

using memdiag::Pool;
using memdiag::pool_count;
using memdiag::pool_specs;
using memdiag::black_box::Sample;
using memdiag::summary::Facts;
using memdiag::summary::Instrument;
using memdiag::summary::Row;
using memdiag::summary::rows;
using std::string_literals::operator""s;

constexpr uint64_t mib = 1 << 20;
constexpr uint64_t gib = 1024 * mib;
constexpr uint64_t minute_us = 60'000'000;
constexpr uint64_t now_us = 1'000'000 * minute_us;

size_t index_of(Pool pool) { return static_cast<size_t>(pool); }

class SummaryTest : public testing::Test {
 protected:
  /** 3 GiB: two in the buffer pool, the rest in pools. */
  SummaryTest() {
    facts.now_us = now_us;
    facts.limit_bytes = 8 * gib;
    facts.resident = {{"buffer_pool", "", "clean pages", 1536 * mib},
                      {"buffer_pool", "", "dirty pages", 512 * mib},
                      {"pool", "session", "live", 600 * mib},
                      {"pool", "session", "dirty", 40 * mib},
                      {"pool", "table_cache", "live", 90 * mib},
                      {"pool", "table_cache", "fragmentation", 20 * mib},
                      {"pool", "statement", "live", 10 * mib},
                      {"pool", "statement", "dirty", 60 * mib},
                      {"program", "", "", 80 * mib},
                      {"libraries", "", "", 4 * mib},
                      {"unexplained", "", "", -4 * int64_t{mib}}};
  }

  void add_sample(uint64_t time_us, uint64_t rss_bytes) {
    Sample sample{};
    sample.time_us = time_us;
    sample.rss_bytes = rss_bytes;
    sample.rss_peak_bytes = memdiag::black_box::unknown;
    samples.push_back(sample);
  }

  /** A row as one text, its parts divided by bars. */
  static std::string text_of(const Row &row) {
    return row.question + "|"s + row.what + "|" + row.size + "|" + row.detail +
           "|" + row.statement;
  }

  std::vector<Row> all_rows() {
    facts.samples = samples;
    facts.findings = findings;
    // As the ledger adds up.
    int64_t rss = 0;
    for (const auto &part : facts.resident) rss += part.bytes;
    if (rss > 0) facts.rss_bytes = static_cast<uint64_t>(rss) + unread_bytes;
    return rows(facts);
  }

  std::vector<std::string> answers(std::string_view question) {
    std::vector<std::string> found;
    for (const Row &row : all_rows())
      if (row.question == question) found.push_back(text_of(row));
    return found;
  }

  Facts facts{};
  /** The bytes of parts that the ledger could not read. */
  uint64_t unread_bytes{0};
  std::vector<Sample> samples;
  std::vector<memdiag::advisor::Finding> findings;
};

using Texts = std::vector<std::string>;

TEST_F(SummaryTest, WhoHolds) {
  EXPECT_EQ(answers("holds"),
            (Texts{"holds|process (RSS)|2.88 GiB|limit: 8.00 GiB|",
                   "holds|buffer pool|2.00 GiB|69% of RSS|",
                   "holds|pool session|600 MiB|20% of RSS|",
                   "holds|unused pages|100 MiB|3% of RSS|",
                   "holds|pool table_cache|90 MiB|3% of RSS|",
                   "holds|program and files|84 MiB|3% of RSS|"}));
}

TEST_F(SummaryTest, APartThatCouldNotBeReadCountsInTheWhole) {
  unread_bytes = 2 * gib;
  const Texts found = answers("holds");
  EXPECT_EQ("holds|process (RSS)|4.88 GiB|limit: 8.00 GiB|", found[0]);
  EXPECT_EQ("holds|buffer pool|2.00 GiB|41% of RSS|", found[1]);
}

TEST_F(SummaryTest, NothingIsKnown) {
  facts = Facts{};
  EXPECT_EQ(answers("holds"), Texts{});
  EXPECT_EQ(answers("grew"), Texts{});
  EXPECT_EQ(answers("get back"), Texts{});
  EXPECT_EQ(answers("peak"), Texts{});
  EXPECT_EQ(answers("wrong"), Texts{"wrong|nothing|||"});
}

TEST_F(SummaryTest, AnUnusualHolderHasItsStatement) {
  facts.instruments = {
      {"memory/sql/Prepared_statement::main_mem_root", 400 * mib},
      {"memory/sql/Prepared_statement::infrastructure", 100 * mib},
      {"memory/sql/NET::buff", 80 * mib}};
  const Texts found = answers("holds");
  ASSERT_EQ(found.size(), 7u);
  EXPECT_EQ(found.back(),
            "holds|prepared statements|500 MiB|more than its usual share|"
            "SELECT * FROM information_schema.memdiag_advice");
}

TEST_F(SummaryTest, OneSessionIsTheCause) {
  facts.instruments = {{"memory/sql/user_var_entry::value", 500 * mib, ""}};
  std::vector<Instrument> held = {
      {"memory/sql/user_var_entry::value", 250 * mib},
      {"memory/sql/NET::buff", 900 * mib}};
  facts.largest_session = {42, held};
  EXPECT_EQ(answers("holds").back(),
            "holds|user variables|500 MiB|session 42: 250 MiB|KILL 42");
  // A whole pool.
  facts.instruments = {};
  held = {{"memory/sql/Log_event", 390 * mib, "transaction"}};
  facts.largest_session = {42, held};
  facts.resident.push_back({"pool", "transaction", "live", 400 * mib});
  EXPECT_EQ(answers("holds").back(),
            "holds|transactions, locks|400 MiB|session 42: 390 MiB|KILL 42");
  facts.resident.pop_back();
  // The session holds much of another holder. KILL would free too little here.
  facts.instruments = {{"memory/sql/user_var_entry::value", 500 * mib, ""}};
  held = {{"memory/sql/user_var_entry::value", 249 * mib},
          {"memory/sql/Filesort_buffer::sort_keys", 900 * mib}};
  facts.largest_session = {42, held};
  EXPECT_EQ(answers("holds").back(),
            "holds|user variables|500 MiB|more than its usual share|"
            "SET @<each large one> = NULL");
}

TEST_F(SummaryTest, ASessionIsNotTheCauseOfASharedCache) {
  facts.instruments = {{"memory/sql/TABLE", 300 * mib, ""}};
  const std::vector<Instrument> held = {{"memory/sql/TABLE", 300 * mib}};
  facts.largest_session = {42, held};
  EXPECT_EQ(answers("holds").back(),
            "holds|open tables|300 MiB|more than its usual share|"
            "FLUSH LOCAL TABLES");
}

TEST_F(SummaryTest, ItsUsualShareIsNotNamed) {
  // 20% of the 900 MiB outside the buffer pool.
  facts.instruments = {{"memory/sql/TABLE", 180 * mib}};
  EXPECT_EQ(answers("holds").size(), 6u);
  facts.instruments = {{"memory/sql/TABLE", 181 * mib}};
  EXPECT_EQ(answers("holds").size(), 7u);
}

TEST_F(SummaryTest, ASmallHolderIsNotNamed) {
  facts.resident = {{"pool", "session", "live", 70 * mib}};
  facts.instruments = {{"memory/sql/NET::buff", 64 * mib - 1}};
  EXPECT_EQ(answers("holds").size(), 2u);
  facts.instruments[0].bytes = 64 * mib;
  EXPECT_EQ(answers("holds").size(), 3u);
}

TEST_F(SummaryTest, AStatementHasHalfTheVariablesValue) {
  facts.instruments = {{"memory/sql/sp_head::main_mem_root", 300 * mib},
                       {"memory/sql/THD::sp_cache", 20'000}};
  EXPECT_EQ(answers("holds").back(),
            "holds|stored programs|300 MiB|more than its usual share|"
            "SET GLOBAL stored_program_cache = <less>");
  facts.variables["stored_program_cache"] = 256;
  EXPECT_EQ(answers("holds").back(),
            "holds|stored programs|300 MiB|more than its usual share|"
            "SET GLOBAL stored_program_cache = 128");
  // A number that does not fit would be cut to a smaller one.
  facts.variables["stored_program_cache"] = UINT64_MAX;
  EXPECT_EQ(answers("holds").back(),
            "holds|stored programs|300 MiB|more than its usual share|"
            "SET GLOBAL stored_program_cache = <less>");
}

TEST_F(SummaryTest, TriggersAreNotTheStoredProgramCache) {
  facts.variables = {{"stored_program_cache", 256}, {"table_open_cache", 4000}};
  facts.instruments = {{"memory/sql/sp_head::main_mem_root", 300 * mib},
                       {"memory/sql/THD::sp_cache", 200}};
  EXPECT_EQ(answers("holds").back(),
            "holds|triggers|300 MiB|more than its usual share|"
            "SET GLOBAL table_open_cache = 2000");
}

TEST_F(SummaryTest, AHolderCanBeAPool) {
  facts.resident.push_back({"pool", "transaction", "live", 200 * mib});
  facts.resident.push_back({"pool", "transaction", "dirty", 200 * mib});
  EXPECT_EQ(answers("holds").back(),
            "holds|transactions, locks|200 MiB|more than its usual share|"
            "SELECT * FROM information_schema.innodb_trx");
}

TEST_F(SummaryTest, EachHolderOfTheListIsFound) {
  const auto usual = facts.resident;
  for (const auto &holder : memdiag::summary::holders) {
    const std::string_view part = holder.parts[0];
    facts.resident = usual;
    facts.instruments.clear();
    if (part.starts_with("pool:"))
      facts.resident.push_back(
          {"pool", part.substr(5), "live", 800 * int64_t{mib}});
    else
      facts.instruments = {{part, 800 * mib}};
    if (holder.name == "stored programs"s)
      facts.instruments.push_back({"memory/sql/THD::sp_cache", 100'000});
    const std::string found = answers("holds").back();
    EXPECT_TRUE(found.starts_with("holds|"s + holder.name + "|8"))
        << holder.name << ": " << found;
    EXPECT_FALSE(found.ends_with("|")) << "a statement of " << holder.name;
  }
}

TEST_F(SummaryTest, PoolsOfTheListExist) {
  for (const auto &holder : memdiag::summary::holders)
    for (const std::string_view part : holder.parts) {
      if (part.starts_with("pool:")) {
        EXPECT_TRUE(std::any_of(pool_specs.begin(), pool_specs.end(),
                                [part](const memdiag::Pool_spec &spec) {
                                  return part.substr(5) == spec.name;
                                }))
            << part;
      }
    }
}

TEST_F(SummaryTest, WhatGrew) {
  add_sample(now_us - 30 * minute_us, 1 * gib);
  add_sample(now_us, 1 * gib + 300 * mib);
  samples[1].pools[index_of(Pool::session)].live_bytes = 200 * mib;
  samples[1].pools[index_of(Pool::ddl)].live_bytes = 90 * mib;
  samples[1].pools[index_of(Pool::binlog)].live_bytes = 10 * mib;
  samples[0].pools[index_of(Pool::innodb)].live_bytes = 10 * mib;
  EXPECT_EQ(answers("grew"), (Texts{"grew|process (RSS)|+300 MiB|in 30 min|",
                                    "grew|pool session|+200 MiB|in 30 min|",
                                    "grew|pool ddl|+90 MiB|in 30 min|"}));
}

TEST_F(SummaryTest, AProcessCanShrink) {
  add_sample(now_us - 119'000'000, 2 * gib);
  add_sample(now_us, 1 * gib);
  EXPECT_EQ(answers("grew"), Texts{"grew|process (RSS)|-1.00 GiB|in 119 s|"});
}

TEST_F(SummaryTest, UnknownSamplesProveNothing) {
  add_sample(now_us - minute_us, memdiag::black_box::unknown);
  add_sample(now_us, 1 * gib);
  samples[0].pools[0].live_bytes = memdiag::black_box::unknown;
  EXPECT_EQ(answers("grew"), Texts{});
}

TEST_F(SummaryTest, AClockThatWentBackProvesNothing) {
  add_sample(now_us, 1 * gib);
  add_sample(now_us - minute_us, 2 * gib);
  EXPECT_EQ(answers("grew"), Texts{});
}

TEST_F(SummaryTest, WhatCanBeHadBack) {
  facts.resident.push_back({"pool", "fts_cache", "live", 30 * mib});
  facts.resident.push_back({"pool", "dictionary", "live", 10 * mib});
  facts.resident.push_back({"pool", "ddl", "dirty", 2 * mib});
  const char *const unused = "unused: costs nothing";
  EXPECT_EQ(answers("get back"),
            (Texts{"get back|all pools|102 MiB|"s + unused +
                       "|SELECT memdiag_purge('all')",
                   "get back|pool statement|60 MiB|"s + unused +
                       "|SELECT memdiag_purge('statement')",
                   "get back|pool session|40 MiB|"s + unused +
                       "|SELECT memdiag_purge('session')",
                   "get back|table caches|100 MiB|waits for running queries|"
                   "FLUSH LOCAL TABLES",
                   "get back|full-text caches|30 MiB|then OPTIMIZE LOCAL TABLE|"
                   "SET GLOBAL innodb_optimize_fulltext_only = ON",
                   "get back|buffer pool|1.50 GiB|at most: read again on use|"
                   "SET GLOBAL innodb_buffer_pool_size = <less>"}));
}

TEST_F(SummaryTest, LessThanOneMebibyteIsNotWorthAStatement) {
  facts.resident = {{"pool", "session", "dirty", mib - 1}};
  EXPECT_EQ(answers("get back"), Texts{});
}

TEST_F(SummaryTest, ThePeak) {
  add_sample(now_us, 1 * gib);
  samples[0].rss_peak_bytes = 3 * gib;
  samples[0].rss_peak_us = now_us - 200 * minute_us;
  const auto peak_of = [this](Pool pool, uint64_t bytes, uint64_t ago_us) {
    facts.pool_peaks[index_of(pool)] = {bytes,
                                        memdiag::Timestamp{now_us - ago_us}};
  };
  peak_of(Pool::session, 900 * mib, 3 * minute_us);
  peak_of(Pool::ddl, 950 * mib, 3000 * minute_us);
  peak_of(Pool::innodb, 20 * mib, 0);
  EXPECT_EQ(answers("peak"), (Texts{"peak|process (RSS)|3.00 GiB|3 h ago|",
                                    "peak|pool ddl|950 MiB|2 days ago|",
                                    "peak|pool session|900 MiB|3 min ago|"}));
}

TEST_F(SummaryTest, WhatIsWrong) {
  using memdiag::advisor::Severity;
  findings = {{Severity::critical, "cgroup", "host", "evidence", "remedy"},
              {Severity::note, "allocator", "misconfiguration", "", ""}};
  const char *const advice = "SELECT * FROM information_schema.memdiag_advice";
  EXPECT_EQ(answers("wrong"),
            (Texts{"wrong|cgroup||critical: host|"s + advice,
                   "wrong|allocator||note: misconfiguration|"s + advice}));
}

TEST_F(SummaryTest, ItFitsOnAScreen) {
  add_sample(now_us - 59 * minute_us, 1 * gib);
  add_sample(now_us, 1000 * gib);
  for (size_t i = 0; i < pool_count; ++i) {
    facts.pool_peaks[i] = {1023 * mib + i, memdiag::Timestamp{1}};
    samples[1].pools[i].live_bytes = (i + 1) * 1023 * mib;
    for (const char *state : {"live", "fragmentation", "dirty", "muzzy"})
      facts.resident.push_back(
          {"pool", pool_specs[i].name, state, 1023 * int64_t{mib}});
  }
  for (const auto &holder : memdiag::summary::holders)
    for (const std::string_view part : holder.parts)
      if (!part.empty()) facts.instruments.push_back({part, 90 * gib});
  for (const char *name : memdiag::summary::variables())
    facts.variables[name] = UINT64_MAX;
  std::vector<Instrument> held;
  for (const auto &instrument : facts.instruments)
    held.push_back({instrument.name, 60 * gib});
  facts.largest_session = {UINT32_MAX, held};
  findings.assign(10, {memdiag::advisor::Severity::critical, "temp_table",
                       "misconfiguration", "", ""});
  samples[1].rss_peak_bytes = 1000 * gib;
  samples[1].rss_peak_us = 1;

  const std::vector<Row> all = all_rows();
  EXPECT_EQ(all.size(), memdiag::summary::max_rows);
  for (const Row &row : all) {
    EXPECT_LE(std::string(row.question).size(),
              memdiag::summary::question_length);
    EXPECT_LE(row.what.size(), memdiag::summary::what_length) << row.what;
    EXPECT_LE(row.size.size(), memdiag::summary::size_length) << row.size;
    EXPECT_LE(row.detail.size(), memdiag::summary::detail_length) << row.detail;
    EXPECT_LE(row.statement.size(), memdiag::summary::statement_length)
        << row.statement;
  }
}

TEST_F(SummaryTest, NoStatementEntersTheBinaryLog) {
  for (const auto &holder : memdiag::summary::holders)
    EXPECT_EQ("", logged_statement(holder.statement)) << holder.name;
  EXPECT_EQ("", logged_statement(memdiag::summary::triggers.statement));
  for (const char *pool : {"fts_cache", "dictionary", "ddl"})
    facts.resident.push_back({"pool", pool, "live", 30 * mib});
  const Texts found = answers("get back");
  ASSERT_FALSE(found.empty());
  for (const std::string &row : found)
    EXPECT_EQ("", logged_statement(row)) << row;
}

TEST_F(SummaryTest, StatementsFit) {
  for (const auto &holder : memdiag::summary::holders) {
    EXPECT_LE(std::string(holder.name).size(), memdiag::summary::what_length);
    EXPECT_LE(std::string(holder.statement).size(),
              memdiag::summary::statement_length)
        << holder.statement;
  }
}

}  // namespace memdiag_test
