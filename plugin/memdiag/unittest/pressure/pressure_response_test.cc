/*
  The response to pressure, tick by tick: on a tree of files, with a clock that
  the tests set and a server of their own.
*/

#include "plugin/memdiag/pressure/pressure_response.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/memdiag/unittest/file_tree.h"

namespace memdiag {
namespace {

using memdiag_test::File_tree;
using Mode = Pressure_response::Mode;

constexpr uint64_t mb = 1 << 20;
constexpr uint64_t second_us = 1'000'000;
constexpr uint64_t tick_us = second_us / 5;

uint64_t clock_now_us;
uint64_t test_clock(clockid_t) { return clock_now_us; }

class Test_server final : public Server_memory {
 public:
  bool statements_wait() override { return wait; }
  relief::Stock stock() override { return in_stock; }
  purging::Receipt purge(Pool pool) override {
    steps.push_back(std::string("purge ") + spec_of(pool).name);
    in_stock.dirty_bytes[static_cast<size_t>(pool)] = 0;
    return {};
  }
  Done write_full_text_caches() override {
    steps.push_back("write");
    return {};
  }
  Done close_unused_tables() override {
    steps.push_back("close");
    in_stock.table_cache_bytes = 0;
    return {9 * mb, "closed unused tables"};
  }
  Done shrink_buffer_pool(uint64_t bytes) override {
    steps.push_back("shrink by " + std::to_string(bytes / mb));
    return {bytes, "InnoDB was asked"};
  }
  void note(const std::string &text) override { lines.push_back(text); }
  void warn(const std::string &text) override {
    lines.push_back("warning: " + text);
  }

  bool wait = false;
  relief::Stock in_stock;
  std::vector<std::string> steps;
  std::vector<std::string> lines;
};

class Pressure_response_test : public testing::Test {
 protected:
  Pressure_response_test() {
    clock_now_us = 100 * second_us;
    available(50);
    server.in_stock.dirty_bytes[static_cast<size_t>(Pool::session)] = 64 * mb;
  }

  void available(unsigned percent) {
    tree.write("/proc/meminfo", "MemTotal: 1048576 kB\nMemAvailable: " +
                                    std::to_string(1048576 / 100 * percent) +
                                    " kB\n");
  }

  void ticks(Pressure_response *response, uint64_t seconds) {
    for (uint64_t i = 0; i < seconds * 5; ++i) {
      clock_now_us += tick_us;
      response->tick(settings);
    }
  }

  size_t lines_with(const char *text) const {
    return static_cast<size_t>(std::count_if(
        server.lines.begin(), server.lines.end(), [text](const std::string &s) {
          return s.find(text) != std::string::npos;
        }));
  }

  File_tree tree;
  Test_server server;
  Pressure_response::Settings settings{{90, 10}, 0};
  Pressure_response response{Mode::act, &server, test_clock, tree.at("")};
};

TEST_F(Pressure_response_test, WithoutPressureItSaysWhatItWatches) {
  ticks(&response, 120);
  ASSERT_EQ(1u, server.lines.size());
  EXPECT_EQ(
      "memory pressure is watched: use in /proc/meminfo, stalls in nowhere",
      server.lines[0]);
  EXPECT_TRUE(server.steps.empty());
}

TEST_F(Pressure_response_test, StepsAreTakenOnePerTick) {
  server.in_stock.table_cache_bytes = 9 * mb;
  server.in_stock.full_text_bytes = 9 * mb;
  available(5);
  response.tick(settings);
  EXPECT_EQ(std::vector<std::string>{"purge session"}, server.steps);
  ticks(&response, 1);
  const std::vector<std::string> expected{"purge session", "write", "close"};
  EXPECT_EQ(expected, server.steps);
  EXPECT_EQ(1u,
            lines_with("of 1073741824 bytes are used): purged pool session,"));
  EXPECT_EQ(1u, lines_with("closed unused tables"));
}

TEST_F(Pressure_response_test, StepsAreInThePurgeLog) {
  server.in_stock = {};
  server.in_stock.table_cache_bytes = 9 * mb;
  server.in_stock.full_text_bytes = 9 * mb;
  available(5);
  ticks(&response, 1);
  const auto log = purge_log::all();
  const auto find = [&log](std::string_view action) {
    return std::find_if(
        log.begin(), log.end(),
        [action](const purge_log::Row &row) { return row.action == action; });
  };
  const auto closed = find("close_tables");
  ASSERT_NE(log.end(), closed);
  EXPECT_EQ(9 * mb, closed->freed_bytes);
  EXPECT_FALSE(closed->error);
  EXPECT_STREQ("table_cache", closed->pool);
  const auto written = find("write_full_text");
  ASSERT_NE(log.end(), written);
  EXPECT_EQ(EBUSY, written->error) << "nothing could be done";
  EXPECT_FALSE(written->freed_bytes);
}

TEST_F(Pressure_response_test, ARoundThatFindsNothingIsOneLine) {
  server.in_stock = {};
  available(5);
  ticks(&response, 600);
  EXPECT_EQ(1u, lines_with("nothing is worth giving back"));
}

TEST_F(Pressure_response_test, ReportingTakesNoStepAndSpeaksOnceAMinute) {
  Pressure_response reporting{Mode::report, &server, test_clock, tree.at("")};
  server.in_stock.table_cache_bytes = 9 * mb;
  server.in_stock.buffer_pool_bytes = 16 * mb;
  available(5);
  ticks(&reporting, 59);
  EXPECT_TRUE(server.steps.empty());
  EXPECT_EQ(1u,
            lines_with(": would purge pool session (67108864 bytes unused), "
                       "close unused tables, pool table_cache (9437184 bytes "
                       "live), make the buffer pool smaller, pool innodb "
                       "(16777216 bytes less)"));
  EXPECT_EQ(1u, lines_with("would"));
  EXPECT_EQ(1u, lines_with("warning: memory pressure")) << "seen by default";
  ticks(&reporting, 2);
  EXPECT_EQ(2u, lines_with("would"));
}

TEST_F(Pressure_response_test, StatementsThatWaitAreAPressure) {
  server.in_stock.table_cache_bytes = 9 * mb;
  server.wait = true;
  ticks(&response, 1);
  const std::vector<std::string> expected{"purge session", "close"};
  EXPECT_EQ(expected, server.steps);
  EXPECT_EQ(2u, lines_with("; statements wait for memory): "));
}

TEST_F(Pressure_response_test, TheEndIsALine) {
  available(5);
  ticks(&response, 1);
  available(50);
  ticks(&response, 1);
  EXPECT_EQ(0u, lines_with("has ended")) << "it may come back at once";
  ticks(&response, 10);
  EXPECT_EQ(1u,
            lines_with("memory pressure has ended; 0 bytes were given back"));
}

TEST_F(Pressure_response_test, ChangedSettingsEndThePause) {
  // Rounds that give nothing back: the pause becomes a minute.
  available(5);
  ticks(&response, 300);
  ASSERT_EQ(std::vector<std::string>{"purge session"}, server.steps);
  server.in_stock.buffer_pool_bytes = 16 * mb;
  // In the middle of a pause.
  while (server.steps.size() == 1) ticks(&response, 1);
  EXPECT_EQ("shrink by 16", server.steps.back());
  EXPECT_EQ(0u, server.lines.back().find("warning: "));
  EXPECT_EQ(1u, lines_with("warning: ")) << "a purge is none";
  ticks(&response, 10);
  ASSERT_EQ(2u, server.steps.size());
  settings.buffer_pool_min_bytes = 128 * mb;
  ticks(&response, 1);
  EXPECT_EQ(3u, server.steps.size());
}

}  // namespace
}  // namespace memdiag
