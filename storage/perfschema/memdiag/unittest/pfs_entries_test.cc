/* Entries of Performance Schema's arrays of statistics. */

#include "storage/perfschema/memdiag/entries.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace memdiag_test {

using Memory_entries = memdiag::Entries<memdiag::memory_of_sessions>;
using Statement_entries = memdiag::Entries<memdiag::statements_of_sessions>;

TEST(PfsEntries, InstrumentsOfSessionsComeFirst) {
  Memory_entries entries;
  const auto &names = memdiag::memory_of_sessions;
  EXPECT_EQ(Memory_entries::of_sessions, entries.take(0, "other", 470));
  EXPECT_EQ(3u, entries.take(1, names[3], 470));
  EXPECT_EQ(0u, entries.take(2, names[0], 470));
  EXPECT_EQ(Memory_entries::of_sessions + 1, entries.take(3, "another", 470));
}

TEST(PfsEntries, EachInstrumentHasAnEntryOfItsOwn) {
  for (unsigned size :
       {1u, 10u, Memory_entries::of_sessions, Memory_entries::of_sessions + 1,
        470u, Memory_entries::most, Memory_entries::most + 1}) {
    Memory_entries entries;
    std::set<unsigned> taken;
    for (unsigned number = 0; number < size; ++number) {
      // Some of the sessions' instruments come late, some not at all.
      const bool of_session = number % 3 == 2;
      const unsigned place = number / 3;
      const auto name = of_session && place < Memory_entries::of_sessions
                            ? std::string(memdiag::memory_of_sessions[place])
                            : "memory/" + std::to_string(number);
      const unsigned entry = entries.take(number, name, size);
      EXPECT_LT(entry, size);
      EXPECT_TRUE(taken.insert(entry).second) << size << ": " << number;
    }
  }
}

TEST(PfsEntries, TheFirstInstrumentBeginsAnew) {
  Memory_entries entries;
  const auto name = memdiag::memory_of_sessions[1];
  EXPECT_EQ(1u, entries.take(0, name, 470));
  EXPECT_EQ(1u, entries.take(0, name, 470));
}

TEST(PfsEntries, StatementsOfSessionsComeFirst) {
  Statement_entries entries;
  EXPECT_EQ(0u, entries.take(0, "statement/sql/select", 218));
  EXPECT_EQ(Statement_entries::of_sessions,
            entries.take(1, "statement/sql/create_table", 218));
}

}  // namespace memdiag_test
