/* The name of a relay log in an event that waits for a worker. */

#include "mysys/memdiag/upstream/relay_log_name.h"

#include <cstring>
#include <string>
#include <thread>

#include "mysys/memdiag/unittest/test.h"

namespace memdiag_test {

using memdiag::Relay_log_name;

/** As upstream's functions write it and read it. */
std::string written_and_read(const std::string &name) {
  Relay_log_name to = {'\0'};
  strcpy(to, name.c_str());
  char from[600];
  strcpy(from, to);
  return from;
}

TEST(RelayLogName, IsSmallerThanTheArray) {
  EXPECT_LE(sizeof(Relay_log_name), 16u);
}

TEST(RelayLogName, IsEmptyAtFirst) {
  EXPECT_STREQ("", Relay_log_name());
  EXPECT_STREQ("", Relay_log_name({'\0'}));
}

TEST(RelayLogName, IsReadAsItWasWritten) {
  for (const size_t length : {0u, 1u, 79u, 80u, 81u, 512u}) {
    const std::string name(length, 'n');
    EXPECT_EQ(name, written_and_read(name));
  }
}

TEST(RelayLogName, CopiesKeepALongNameAfterTheirOriginal) {
  const std::string name(200, 'n');
  Relay_log_name copy;
  {
    Relay_log_name first;
    strcpy(first, name.c_str());
    copy = first;
    const char *const text = first;
    EXPECT_EQ(text, static_cast<const char *>(copy));
    strcpy(first, "short");
    EXPECT_STREQ("short", first);
  }
  EXPECT_STREQ(name.c_str(), copy);
}

/** The names come from a buffer that upstream writes anew. */
TEST(RelayLogName, EventsOfOneRelayLogShareIt) {
  const auto text = [](const Relay_log_name &name) {
    return static_cast<const char *>(name);
  };
  for (const size_t length : {20u, 100u}) {
    std::string buffer(length, 'n');
    Relay_log_name first, second, other;
    strcpy(first, buffer.c_str());
    strcpy(second, buffer.c_str());
    EXPECT_EQ(text(first), text(second));
    buffer.back() = 'o';
    strcpy(other, buffer.c_str());
    EXPECT_EQ(buffer, text(other));
    EXPECT_EQ(std::string(length, 'n'), text(first));
  }
}

TEST(RelayLogName, OutlivesTheThreadThatMadeIt) {
  const std::string text(100, 'n');
  Relay_log_name name;
  std::thread([&] { strcpy(name, text.c_str()); }).join();
  EXPECT_EQ(text, static_cast<const char *>(name));
}

TEST(RelayLogName, AShortNameReplacesALongOne) {
  Relay_log_name name;
  strcpy(name, std::string(100, 'n').c_str());
  strcpy(name, "./relay-bin.000002");
  EXPECT_STREQ("./relay-bin.000002", name);
}

}  // namespace memdiag_test
