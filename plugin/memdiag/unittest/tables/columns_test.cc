// Each column of each table reads the member that its name promises: the
// member's own name in small letters, or the one that is declared here.

#include <gtest/gtest.h>

#include <cctype>
#include <map>
#include <set>
#include <string>

#include "plugin/memdiag/tables/tables.h"

namespace memdiag_test {

/** Members whose column has another name. */
const std::map<std::string, std::string> declared{
    {"MEMDIAG_ADVICE.SEVERITY", "severity_name"},
    {"MEMDIAG_POOLS.POOL", "name"},
    {"MEMDIAG_POOLS.LIVE_BYTES", "held_bytes"},
    {"MEMDIAG_POOLS.PURGE_MICROSECONDS", "purge_us"},
    {"MEMDIAG_INNODB.COMPONENT", "name"},
    {"MEMDIAG_DIGESTS.ACCUMULATED_BYTES", "taken_bytes"},
    {"MEMDIAG_DIGESTS.PEAK_STACK", "peak_site"},
    {"MEMDIAG_DIGESTS.LAST_SEEN", "last_us"},
    {"MEMDIAG_SURVIVORS.POOL", "pool_name"},
    {"MEMDIAG_SURVIVORS.SCOPE", "scope_name"},
    {"MEMDIAG_SURVIVORS.SINCE", "since_us"},
    {"MEMDIAG_SURVIVORS.LAST", "last_us"},
    {"MEMDIAG_SURVIVORS.AGE_SECONDS", "age_s"},
    {"MEMDIAG_PURGES.TIME", "time_us"},
    {"MEMDIAG_PURGES.RSS_BYTES_BEFORE", "rss_before_bytes"},
    {"MEMDIAG_PURGES.RSS_BYTES_AFTER", "rss_after_bytes"},
    {"MEMDIAG_PURGES.MICROSECONDS", "duration_us"},
    {"MEMDIAG_CEILING.TIME", "time_us"},
    {"MEMDIAG_CEILING.DURATION_MICROSECONDS", "duration_us"},
    {"MEMDIAG_PROFILE.OLDEST_SECONDS", "oldest_s"},
    {"MEMDIAG_PROFILE.MEDIAN_SECONDS", "median_s"},
    {"MEMDIAG_PINNED.MEDIAN_SECONDS", "median_s"},
    {"MEMDIAG_HISTORY.STARTED", "started_us"},
    {"MEMDIAG_HISTORY.TIME", "time_us"},
    {"MEMDIAG_HISTORY_POOLS.TIME", "time_us"},
    {"MEMDIAG_LAST_RUN_PROFILE.PEAK_TIME", "peak"},
    {"MEMDIAG_LAST_RUN_PROFILE.BEFORE_TIME", "before"},
    {"MEMDIAG_PROFILE_HISTORY.TIME", "time_us"},
    {"MEMDIAG_ARENAS.UPTIME_SECONDS", "uptime_s"},
    {"MEMDIAG_ROUTES.ROUTE", "name"},
    {"MEMDIAG_ROUTES.POOL", "pool_name"},
    {"MEMDIAG_SAMPLES.AGE_SECONDS", "age_s"},
    {"MEMDIAG_SAMPLES.PROCESSLIST_ID", "session"},
    {"MEMDIAG_REGIONS.REGION", "name"},
    {"MEMDIAG_REGIONS.REGIONS", "count"},
};

class Columns : public testing::Test {
 protected:
  template <typename Table>
  void check(const Table &table) {
    std::set<std::string> members;
    for (const auto &column : table.columns) {
      const std::string member(column.member);
      EXPECT_TRUE(members.insert(member).second)
          << table.name << ": two columns read " << member;
      const std::string name = std::string(table.name) + "." + column.name;
      const auto other = declared.find(name);
      EXPECT_EQ(other == declared.end() ? in_small_letters(column.name)
                                        : other->second,
                member)
          << name;
      m_met.insert(name);
    }
  }

  std::set<std::string> m_met;

 private:
  static std::string in_small_letters(std::string text) {
    for (char &c : text)
      c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
  }
};

TEST_F(Columns, ReadTheMemberOfTheirName) {
#define CHECK(name) check(memdiag::name##_table);
  MEMDIAG_EVERYDAY_TABLES(CHECK)
  MEMDIAG_INTERNAL_TABLES(CHECK)
#undef CHECK
  for (const auto &[name, member] : declared)
    EXPECT_TRUE(m_met.contains(name)) << name << " is no column any more";
}

}  // namespace memdiag_test
