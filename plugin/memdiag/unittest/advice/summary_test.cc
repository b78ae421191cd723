// summary.h: the answers to five questions, from literal facts.

#include "plugin/memdiag/advice/summary.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plugin/memdiag/advice/advisor.h"
#include "plugin/memdiag/advice/holder_list.h"
#include "plugin/memdiag/advice/situation.h"
#include "plugin/memdiag/unittest/logged_statements.h"

namespace memdiag_test {

using memdiag::Pool;
using memdiag::pool_count;
using memdiag::pool_specs;
using memdiag::advisor::Finding;
using memdiag::advisor::Severity;
using memdiag::black_box::Sample;
using memdiag::summary::Facts;
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

  void set_log_buffer(size_t i, uint64_t bytes, uint64_t resident_bytes) {
    samples[i].log_buffer_bytes = bytes;
    samples[i].log_buffer_resident_bytes = resident_bytes;
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
  std::vector<Finding> findings;
};

/** A finding of the advisor about a holder. */
Finding finding_of(const char *holder, uint64_t bytes,
                   std::optional<std::string> statement = {}) {
  Finding finding{Severity::note, "session", "cache", "evidence", "remedy"};
  finding.holder = holder;
  finding.bytes = bytes;
  finding.statement = std::move(statement);
  return finding;
}

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

constexpr const char *advice =
    "SELECT * FROM information_schema.memdiag_advice";

TEST_F(SummaryTest, AnUnusualHolderHasItsStatement) {
  findings = {finding_of("open tables", 300 * mib, "FLUSH LOCAL TABLES"),
              finding_of("MEMORY tables", 500 * mib)};
  // One that is about no holder.
  findings.push_back({Severity::critical, "cgroup", "host", "", ""});
  const Texts found = answers("holds");
  ASSERT_EQ(found.size(), 8u);
  EXPECT_EQ(found[6],
            "holds|MEMORY tables|500 MiB|more than its usual share|"s + advice);
  EXPECT_EQ(found[7],
            "holds|open tables|300 MiB|more than its usual share|"
            "FLUSH LOCAL TABLES");
}

TEST_F(SummaryTest, AStatementThatDoesNotFitIsInTheAdvice) {
  // One that is cut would be another statement.
  const std::string fits(memdiag::summary::statement_length, 's');
  findings = {finding_of("open tables", 300 * mib, fits)};
  EXPECT_TRUE(answers("holds").back().ends_with('|' + fits));
  findings = {finding_of("open tables", 300 * mib, fits + 's')};
  EXPECT_TRUE(answers("holds").back().ends_with("|"s + advice));
}

/** The advice knows which session may end, and how: one with a lock may not. */
TEST_F(SummaryTest, OneSessionIsTheCause) {
  findings = {finding_of("user variables", 500 * mib, std::string(48, 's'))};
  findings[0].owner = memdiag::advisor::Session{42, 250 * mib};
  EXPECT_EQ(answers("holds").back(),
            "holds|user variables|500 MiB|session 42: 250 MiB|"s + advice);
  findings[0].owner = memdiag::advisor::Session{UINT32_MAX, 250 * mib, true};
  EXPECT_EQ(
      answers("holds").back(),
      "holds|user variables|500 MiB|session 4294967295: 250 MiB|"s + advice);
  findings[0].owner = memdiag::advisor::Session{42, 250 * mib, false, true};
  EXPECT_EQ(answers("holds").back(),
            "holds|user variables|500 MiB|this session: 250 MiB|"s + advice);
  findings[0].statement = "SELECT 1 AS RUN";
  EXPECT_TRUE(answers("holds").back().ends_with("|SELECT 1 AS RUN"));
}

TEST_F(SummaryTest, WhatTheAdvisorDoesNotFindIsNotNamed) {
  EXPECT_EQ(answers("holds").size(), 6u);
  findings = {finding_of("open tables", 300 * mib)};
  findings[0].bytes.reset();
  EXPECT_EQ(answers("holds").size(), 6u);
}

TEST_F(SummaryTest, EachHolderOfTheAdviceIsShown) {
  memdiag::advisor::Situation situation{};
  situation.host.resident_bytes = 4 * gib;
  situation.other_resident_bytes = 1 * gib;
  for (const auto &holder : memdiag::advisor::holders) {
    situation.holdings = {{&holder, 800 * mib, 800 * mib}};
    findings = memdiag::advisor::findings(situation);
    const std::string found = answers("holds").back();
    EXPECT_TRUE(found.starts_with("holds|"s + holder.name + "|800 MiB|"))
        << holder.name << ": " << found;
    EXPECT_FALSE(found.ends_with("|")) << "a statement of " << holder.name;
    const Texts wrong = answers("wrong");
    ASSERT_EQ(1u, wrong.size());
    EXPECT_TRUE(
        wrong[0].starts_with("wrong|"s + holder.name + "||warning: cache|"))
        << wrong[0];
  }
}

TEST_F(SummaryTest, WhatGrew) {
  add_sample(now_us - 30 * minute_us, 1 * gib);
  add_sample(now_us, 1 * gib + 300 * mib);
  samples[0].pools[index_of(Pool::session)].live_bytes = 400 * mib;
  samples[1].pools[index_of(Pool::session)].live_bytes = 600 * mib;
  samples[1].pools[index_of(Pool::table_cache)].live_bytes = 90 * mib;
  samples[1].pools[index_of(Pool::statement)].live_bytes = 10 * mib;
  samples[0].pools[index_of(Pool::innodb)].live_bytes = 10 * mib;
  EXPECT_EQ(answers("grew"),
            (Texts{"grew|process (RSS)|+300 MiB|in 30 min|",
                   "grew|pool session|+200 MiB|in 30 min, estimated|",
                   "grew|pool table_cache|+90 MiB|in 30 min, estimated|"}));
}

TEST_F(SummaryTest, WhatWasNeverWrittenDidNotGrow) {
  add_sample(now_us - 30 * minute_us, 1 * gib);
  add_sample(now_us, 1 * gib + 209 * mib);
  samples[1].buffer_pool_bytes = 105 * mib;
  samples[1].pools[index_of(Pool::perfschema)].live_bytes = 330 * mib;
  // What is resident of it is not known.
  samples[1].pools[index_of(Pool::ddl)].live_bytes = 900 * mib;
  facts.resident.push_back({"pool", "perfschema", "live", 66 * mib});
  EXPECT_EQ(answers("grew"),
            (Texts{"grew|process (RSS)|+209 MiB|in 30 min|",
                   "grew|buffer pool|+105 MiB|in 30 min|",
                   "grew|pool perfschema|+66 MiB|in 30 min, estimated|"}));
}

TEST_F(SummaryTest, WhatWasTakenBeforeAndIsWrittenNowGrew) {
  add_sample(now_us - 30 * minute_us, 1 * gib);
  add_sample(now_us, 1 * gib + 180 * mib);
  samples[1].buffer_pool_bytes = 115 * mib;
  samples[0].pools[index_of(Pool::innodb)].live_bytes = 70 * mib;
  samples[1].pools[index_of(Pool::innodb)].live_bytes = 75 * mib;
  facts.resident.push_back({"pool", "innodb", "live", 75 * mib});
  const auto grew = [this](const char *what) {
    return Texts{"grew|process (RSS)|+180 MiB|in 30 min|",
                 "grew|buffer pool|+115 MiB|in 30 min|",
                 "grew|"s + what + "|+60 MiB|in 30 min|"};
  };
  EXPECT_EQ(answers("grew"), grew("other")) << "the log buffer is not known";
  set_log_buffer(0, 64 * mib, 4 * mib);
  set_log_buffer(1, 64 * mib, 64 * mib);
  EXPECT_EQ(answers("grew"), grew("redo log buffer"));
}

TEST_F(SummaryTest, ALogBufferOfAnotherSizeIsNoGrowthOfItsPool) {
  add_sample(now_us - 30 * minute_us, 1 * gib);
  add_sample(now_us, 1 * gib + 320 * mib);
  samples[0].pools[index_of(Pool::innodb)].live_bytes = 84 * mib;
  samples[1].pools[index_of(Pool::innodb)].live_bytes = 572 * mib;
  // All of the pool's other 60 MiB is resident.
  facts.resident.push_back({"pool", "innodb", "live", 360 * mib});
  set_log_buffer(0, 64 * mib, 20 * mib);
  set_log_buffer(1, 512 * mib, 300 * mib);
  EXPECT_EQ(answers("grew"),
            (Texts{"grew|process (RSS)|+320 MiB|in 30 min|",
                   "grew|redo log buffer|+280 MiB|in 30 min|",
                   "grew|pool innodb|+40 MiB|in 30 min, estimated|"}));
}

TEST_F(SummaryTest, MappedFilesGrew) {
  add_sample(now_us - 30 * minute_us, 1 * gib);
  add_sample(now_us, 1 * gib + 300 * mib);
  samples[0].file_bytes = 50 * mib;
  samples[1].file_bytes = 250 * mib;
  // A plugin may map memory without a file. The row `other` has that.
  EXPECT_EQ(answers("grew"), (Texts{"grew|process (RSS)|+300 MiB|in 30 min|",
                                    "grew|mapped files|+200 MiB|in 30 min|",
                                    "grew|other|+100 MiB|in 30 min|"}));
  samples[0].file_bytes = memdiag::black_box::unknown;
  EXPECT_EQ(answers("grew"), (Texts{"grew|process (RSS)|+300 MiB|in 30 min|",
                                    "grew|other|+300 MiB|in 30 min|"}));
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

TEST_F(SummaryTest, ABufferPoolOfOneUnitStaysAsItIs) {
  memdiag::Snapshot snapshot{};
  memdiag::advisor::Situation situation{};
  situation.buffer_pool_bytes = 128 * mib;
  situation.buffer_pool_unit_bytes = 128 * mib;
  const auto step = [&] {
    return memdiag::summary::make_facts(now_us, snapshot, {}, {}, situation, {})
        .buffer_pool_step_bytes;
  };
  facts.buffer_pool_step_bytes = step();
  const auto is_offered = [this] {
    for (const std::string &row : answers("get back"))
      if (row.starts_with("get back|buffer pool|")) return true;
    return false;
  };
  EXPECT_FALSE(is_offered());
  situation.buffer_pool_bytes = 256 * mib;
  facts.buffer_pool_step_bytes = step();
  EXPECT_TRUE(is_offered());
  situation.buffer_pool_unit_bytes.reset();
  facts.buffer_pool_step_bytes = step();
  EXPECT_TRUE(is_offered()) << "not known";
}

TEST_F(SummaryTest, WhatCanBeHadBack) {
  facts.resident.push_back({"pool", "fts_cache", "live", 30 * mib});
  facts.resident.push_back({"pool", "dictionary", "live", 70 * mib});
  facts.resident.push_back({"pool", "ddl", "dirty", 2 * mib});
  // FLUSH does not free definitions, accounts and the programs that sessions
  // cached.
  std::vector<memdiag::advisor::Holding> holdings;
  for (const auto &[name, bytes] : {std::pair{"open tables", 50 * mib},
                                    {"triggers", 9 * mib},
                                    {"dictionary cache", 41 * mib},
                                    {"accounts and privileges", 29 * mib},
                                    {"stored programs", 31 * mib},
                                    {"network buffers", 99 * mib}})
    holdings.push_back({memdiag::advisor::find_holder(name), bytes, bytes});
  facts.holdings = holdings;
  const char *const unused = "unused: costs nothing";
  EXPECT_EQ(answers("get back"),
            (Texts{"get back|all pools|102 MiB|"s + unused +
                       "|SELECT memdiag_purge('all')",
                   "get back|pool statement|60 MiB|"s + unused +
                       "|SELECT memdiag_purge('statement')",
                   "get back|pool session|40 MiB|"s + unused +
                       "|SELECT memdiag_purge('session')",
                   "get back|table caches|59 MiB|at most; waits for queries|"
                   "FLUSH LOCAL TABLES",
                   "get back|full-text caches|30 MiB|by OPTIMIZE LOCAL TABLE|",
                   "get back|buffer pool|1.50 GiB|at most: read again on use|"
                   "SET GLOBAL innodb_buffer_pool_size = <less>"}));
  // FLUSH frees what open views have of it, too.
  facts.data_dictionary_bytes = 8 * mib;
  EXPECT_EQ(
      "get back|table caches|59 MiB|and views; waits for queries|"
      "FLUSH LOCAL TABLES",
      answers("get back")[3]);
  EXPECT_GE(memdiag::summary::detail_length,
            "and views; waits for queries"s.size());
  facts.lacks_functions = true;
  EXPECT_EQ("get back|all pools|102 MiB|"s + unused + '|',
            answers("get back")[0]);
  EXPECT_EQ("get back|pool statement|60 MiB|"s + unused + '|',
            answers("get back")[1]);
  // The advice has a statement that runs as it stands.
  findings = {finding_of("full-text caches", 30 * mib, std::string(48, 's'))};
  EXPECT_EQ(
      answers("get back")[4],
      "get back|full-text caches|30 MiB|by OPTIMIZE LOCAL TABLE|"s + advice);
}

/** FLUSH closes no temporary tables, and the row of the caches has none. */
TEST_F(SummaryTest, TemporaryTablesOfSessionsAreHadBackFromTheSessions) {
  const std::vector<memdiag::advisor::Holding> holdings = {
      {memdiag::advisor::find_holder("open tables"), 5 * mib, 5 * mib},
      {memdiag::advisor::find_holder("user temporary tables"), 131 * mib,
       131 * mib}};
  facts.holdings = holdings;
  const auto rows = [this] {
    Texts found;
    for (const std::string &row : answers("get back"))
      if (row.find("table") != std::string::npos) found.push_back(row);
    return found;
  };
  EXPECT_EQ(rows(), (Texts{"get back|table caches|5 MiB|at most; waits for "
                           "queries|FLUSH LOCAL TABLES",
                           "get back|user temporary tables|131 MiB|when their "
                           "sessions end|"}));
  facts.table_keepers = 1;
  EXPECT_EQ(rows().at(0),
            "get back|table caches|5 MiB|not while tables are kept|" +
                std::string(advice));
  findings = {
      finding_of("user temporary tables", 131 * mib, std::string(500, 'S'))};
  EXPECT_EQ(rows().at(1),
            "get back|user temporary tables|131 MiB|when their "
            "sessions end|" +
                std::string(advice));
}

/** The process gave memory back between the reading of its parts and that of
RSS. */
TEST_F(SummaryTest, NoPartIsMoreThanTheProcess) {
  facts.resident = {{"pool", "session", "live", 400 * mib},
                    {"pool", "statement", "dirty", 1500 * mib},
                    {"unexplained", "", "", -1400 * int64_t{mib}}};
  const std::vector<memdiag::advisor::Holding> holdings = {
      {memdiag::advisor::find_holder("open tables"), 9 * gib, 9 * gib}};
  facts.holdings = holdings;
  EXPECT_EQ(answers("holds"),
            (Texts{"holds|process (RSS)|500 MiB|limit: "
                   "8.00 GiB|",
                   "holds|unused pages|500 MiB|100% of RSS|",
                   "holds|pool session|400 MiB|80% of RSS|"}));
  Texts sizes;
  for (const Row &row : all_rows())
    if (std::string_view{row.question} == "get back") sizes.push_back(row.size);
  EXPECT_EQ(sizes, Texts(3, "500 MiB"));
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
  EXPECT_EQ(answers("peak"),
            (Texts{"peak|process (RSS)|3.00 GiB|3 h ago|",
                   "peak|pool ddl|950 MiB|2 days ago, estimated|",
                   "peak|pool session|900 MiB|3 min ago, estimated|"}));
}

TEST_F(SummaryTest, NoPeakIsBelowThePresent) {
  // The last sample is a second old, or an hour where samples are off.
  add_sample(now_us - 59 * minute_us, 1 * gib);
  samples[0].rss_peak_bytes = 1 * gib;
  samples[0].rss_peak_us = now_us - 59 * minute_us;
  EXPECT_EQ(answers("peak"), Texts{"peak|process (RSS)|2.88 GiB|now|"});
}

TEST_F(SummaryTest, ThePeakIsKnownWithoutSamples) {
  facts.rss_peak_bytes = 4 * gib;
  facts.pool_peaks[index_of(Pool::ddl)] = {
      3 * gib, memdiag::Timestamp{now_us - 3 * minute_us}, 0};
  EXPECT_EQ(answers("peak"),
            (Texts{"peak|process (RSS)|4.00 GiB||",
                   "peak|pool ddl|3.00 GiB|3 min ago, estimated|"}));
  // The last sample is older than the peak.
  add_sample(now_us - 20 * minute_us, 1 * gib);
  samples[0].rss_peak_bytes = 2 * gib;
  samples[0].rss_peak_us = now_us - 50 * minute_us;
  EXPECT_EQ("peak|process (RSS)|4.00 GiB|at most 20 min ago|",
            answers("peak").at(0));
  samples[0].rss_peak_bytes = 4 * gib;
  EXPECT_EQ("peak|process (RSS)|4.00 GiB|50 min ago|", answers("peak").at(0));
}

TEST_F(SummaryTest, WhatGrewLongAgoDoesNotGrowNow) {
  add_sample(now_us - 40 * minute_us, 1 * gib);
  add_sample(now_us - 39 * minute_us, 2 * gib);
  EXPECT_EQ(answers("grew"), Texts{}) << "samples are off";
  samples[1].time_us = now_us - 3 * minute_us;
  samples[0].time_us = now_us - 4 * minute_us;
  EXPECT_EQ(answers("grew").at(0), "grew|process (RSS)|+1.00 GiB|in 60 s|");
}

TEST_F(SummaryTest, APeakIsResidentBytes) {
  // Of 700 MiB that are live now, 600 are resident; 300 are gone.
  facts.pool_peaks[index_of(Pool::session)] = {
      1000 * mib, memdiag::Timestamp{now_us}, 700 * mib};
  EXPECT_EQ(answers("peak"),
            Texts{"peak|pool session|900 MiB|now, estimated|"});
  // What was allocated and never written is above RSS.
  facts.pool_peaks[index_of(Pool::session)] = {900 * gib,
                                               memdiag::Timestamp{now_us}, 0};
  EXPECT_EQ(answers("peak"),
            Texts{"peak|pool session|2.88 GiB|now, estimated|"});
  add_sample(now_us, 1 * gib);
  samples[0].rss_peak_bytes = 4 * gib;
  samples[0].rss_peak_us = now_us;
  EXPECT_EQ(answers("peak"),
            (Texts{"peak|process (RSS)|4.00 GiB|now|",
                   "peak|pool session|4.00 GiB|now, estimated|"}));
}

TEST_F(SummaryTest, WhatIsWrong) {
  findings = {{Severity::critical, "cgroup", "host", "evidence", "remedy"},
              {Severity::note, "allocator", "misconfiguration", "", ""},
              finding_of("open tables", 300 * mib, "FLUSH LOCAL TABLES")};
  EXPECT_EQ(answers("wrong"),
            (Texts{"wrong|cgroup||critical: host|"s + advice,
                   "wrong|allocator||note: misconfiguration|"s + advice,
                   "wrong|open tables||note: cache|FLUSH LOCAL TABLES"}));
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
  findings.assign(10, finding_of("binary log dump threads", 90 * gib,
                                 std::string(2048, 's')));
  for (size_t i = 0; i < findings.size(); ++i) {
    findings[i].verdict = "misconfiguration";
    findings[i].severity = Severity::critical;
    if (i % 2 == 0)
      findings[i].owner = memdiag::advisor::Session{UINT32_MAX, 60 * gib};
  }
  std::vector<memdiag::advisor::Holding> holdings;
  for (const auto &holder : memdiag::advisor::holders)
    holdings.push_back({&holder, 90 * gib, 90 * gib});
  facts.holdings = holdings;
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
  for (const char *pool : {"fts_cache", "ddl"})
    facts.resident.push_back({"pool", pool, "live", 30 * mib});
  const std::vector<memdiag::advisor::Holding> holdings = {
      {memdiag::advisor::find_holder("open tables"), 30 * mib, 30 * mib}};
  facts.holdings = holdings;
  const Texts found = answers("get back");
  ASSERT_FALSE(found.empty());
  for (const std::string &row : found)
    EXPECT_EQ("", logged_statement(row)) << row;
}

TEST_F(SummaryTest, NamesOfHoldersFit) {
  for (const auto &holder : memdiag::advisor::holders)
    EXPECT_LE(std::string(holder.name).size(), memdiag::summary::what_length);
}

TEST(SummaryFacts, AreMadeOfWhatTheCollectorsSay) {
  memdiag::Snapshot snapshot{};
  snapshot.pools[index_of(Pool::ddl)].peak_bytes = 7;
  snapshot.pools[index_of(Pool::ddl)].held_bytes = 6;
  snapshot.pools[index_of(Pool::ddl)].peak_time = memdiag::Timestamp{8};
  const std::vector<memdiag::ledger::Row> ledger = {
      {"pool", "ddl", "live", 5, 0.1, {}}, {"files", "", "", {}, {}, {}}};
  memdiag::advisor::Situation situation{};
  situation.host.resident_bytes = 9 * mib;
  situation.host.peak_resident_bytes = 10 * mib;
  situation.host.limit_bytes = 4 * gib;
  situation.holdings = {{memdiag::advisor::find_holder("online DDL"), 5, 6}};
  const std::vector<Finding> findings(3);
  const std::vector<Sample> samples(2);
  situation.data_dictionary_bytes = 8;
  const Facts facts = memdiag::summary::make_facts(
      now_us, snapshot, ledger, samples, situation, findings);
  EXPECT_EQ(now_us, facts.now_us);
  EXPECT_EQ(9 * mib, facts.rss_bytes);
  EXPECT_EQ(10 * mib, facts.rss_peak_bytes);
  EXPECT_EQ(4 * gib, facts.limit_bytes);
  ASSERT_EQ(1u, facts.resident.size()) << "an unknown figure is no fact";
  EXPECT_EQ("ddl", facts.resident[0].name);
  EXPECT_EQ(5, facts.resident[0].bytes);
  EXPECT_EQ(7u, facts.pool_peaks[index_of(Pool::ddl)].bytes);
  EXPECT_EQ(8u, facts.pool_peaks[index_of(Pool::ddl)].time->us);
  EXPECT_EQ(6u, facts.pool_peaks[index_of(Pool::ddl)].live_bytes);
  EXPECT_EQ(1u, facts.holdings.size());
  EXPECT_EQ(2u, facts.samples.size());
  EXPECT_EQ(3u, facts.findings.size());
  EXPECT_EQ(8u, facts.data_dictionary_bytes);
}

/** A pool of one unit cannot be made smaller. */
TEST(SummaryFacts, TheBufferPoolHasAStepIfItAndItsUnitAreKnown) {
  using memdiag::Reading;
  const auto step = [](const Reading &pool_bytes, const Reading &unit_bytes) {
    memdiag::advisor::Situation situation{};
    situation.buffer_pool_bytes = pool_bytes;
    situation.buffer_pool_unit_bytes = unit_bytes;
    const memdiag::Snapshot snapshot{};
    return memdiag::summary::make_facts(now_us, snapshot, {}, {}, situation, {})
        .buffer_pool_step_bytes;
  };
  EXPECT_EQ(128 * mib, step(gib, 128 * mib));
  EXPECT_EQ(128 * mib, step(128 * mib + 1, 128 * mib));
  EXPECT_EQ(0u, step(128 * mib, 128 * mib));
  EXPECT_FALSE(step(gib, {}));
  EXPECT_FALSE(step({}, 128 * mib));
  EXPECT_FALSE(step({}, {}));
}

TEST(SafeLimitRow, SaysWhyTheFigureIsNotKnown) {
  using memdiag::advisor::safe_limit_row;
  memdiag::limits::Figures figures{};
  EXPECT_FALSE(safe_limit_row(figures)) << "in no control group";
  figures.safe_source = "/sys/fs/cgroup/a/memory.current";
  auto row = safe_limit_row(figures);
  ASSERT_TRUE(row);
  EXPECT_FALSE(row->row.number);
  EXPECT_NE(std::string::npos, row->warning.find(figures.safe_source));
  figures.safe_bytes = 5 * mib;
  row = safe_limit_row(figures);
  ASSERT_TRUE(row);
  EXPECT_EQ(5.0 * mib, row->row.number);
  EXPECT_STREQ("cgroup", row->row.subject);
  EXPECT_EQ("safe_limit", row->row.name);
  EXPECT_EQ("", row->warning);
}

}  // namespace memdiag_test
