/*
  profile.proto: Go's pprof reads it and finds the sums that went in.
*/

#include "plugin/memdiag/profile_export/pprof.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

#include "mysys/memdiag/unittest/file_tree.h"
#include "plugin/memdiag/profile_export/gzip.h"
#include "plugin/memdiag/unittest/profile_for_test.h"

namespace memdiag::profile {
namespace {

using memdiag_test::File_tree;
using memdiag_test::Profile_maker;

std::string unpacked(std::string packed) {
  z_stream stream{};
  EXPECT_EQ(Z_OK, inflateInit2(&stream, 15 + 16));
  std::string text(16 << 20, '\0');
  stream.next_in = reinterpret_cast<Bytef *>(packed.data());
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef *>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  EXPECT_EQ(Z_STREAM_END, inflate(&stream, Z_FINISH));
  text.resize(stream.total_out);
  EXPECT_EQ(Z_OK, inflateEnd(&stream));
  return text;
}

TEST(Gzip, WhatIsPackedIsUnpacked) {
  std::mt19937 random(20261122);
  for (const size_t size : {0, 1, 65535, 65536, 65537, 3000000}) {
    std::string bytes;
    for (size_t i = 0; i < size; ++i) bytes += static_cast<char>(random());
    EXPECT_EQ(bytes, unpacked(gzip(bytes))) << size;
    // It compresses.
    EXPECT_GT(size / 100 + 100, gzip(std::string(size, 'x')).size()) << size;
  }
}

TEST(Gzip, Base64) {
  // The examples of RFC 4648.
  EXPECT_EQ("", base64(""));
  EXPECT_EQ("Zg==", base64("f"));
  EXPECT_EQ("Zm8=", base64("fo"));
  EXPECT_EQ("Zm9v", base64("foo"));
  EXPECT_EQ("Zm9vYmFy", base64("foobar"));
  EXPECT_EQ("/+7dAA==", base64(std::string("\xff\xee\xdd\0", 4)));
}

/** The output of a command; "" if it failed. */
std::string output_of(const std::string &command) {
  FILE *const pipe = popen(command.c_str(), "re");
  if (pipe == nullptr) return "";
  std::string text;
  std::array<char, 4096> piece;
  for (size_t count; (count = fread(piece.data(), 1, piece.size(), pipe)) > 0;)
    text.append(piece.data(), count);
  return pclose(pipe) == 0 ? text : "";
}

/** The output of Go's pprof for a profile. */
class Pprof : public testing::Test {
 protected:
  void SetUp() override {
    if (output_of("go version 2>&1").empty())
      GTEST_SKIP() << "there is no go in PATH, whose pprof is the reader";
  }
  std::string shown(Profile_maker *maker, const std::string &options) {
    const Symbols symbols = maker->symbols();
    m_tree.write("/profile.pb.gz", gzip(pprof(maker->profile, symbols)));
    return output_of("TZ=UTC PPROF_TMPDIR=" + m_tree.at("") +
                     " go tool pprof " + options + " " +
                     m_tree.at("/profile.pb.gz") + " 2>&1");
  }
  /** A line that begins with that text, its blanks made one. */
  static std::string line(const std::string &text, const std::string &begin) {
    std::string found = " ";
    const size_t at = text.find("\n" + begin);
    if (at == std::string::npos) return "no line " + begin + " in:\n" + text;
    for (size_t i = at + 1; i < text.size() && text[i] != '\n'; ++i)
      if (text[i] != ' ' || found.back() != ' ') found += text[i];
    return found.substr(1);
  }

  File_tree m_tree;
};

Digest digest_of(unsigned char byte) {
  Digest digest;
  digest.fill(byte);
  return digest;
}

void fill(Profile_maker *maker) {
  const uint32_t leak = maker->add_site(
      {"malloc", "_Znwm", "_ZN5Cache3addEv", "_Z7executev", "main"},
      "table_cache", "memory/sql/TABLE");
  maker->add_live(leak, 3 << 20, 100.4, digest_of(0xab));
  maker->add_live(leak, 1 << 20, 10);
  maker->add({"parse", "_Z7executev", "main"}, 2 << 20, "statement");
  maker->add({"parse", "_Z7executev", "main"}, 1 << 20, "");
}

TEST_F(Pprof, GoSumsUpWhatWentIn) {
  Profile_maker maker;
  fill(&maker);
  const std::string top = shown(&maker, "-top -unit=B");
  EXPECT_EQ("Type: inuse_space", line(top, "Type:"));
  EXPECT_EQ("4194304B 57.14% 57.14% 4194304B 57.14% Cache::add",
            line(top, "  4194304B"));
  EXPECT_EQ("3145728B 42.86% 100% 3145728B 42.86% parse",
            line(top, "  3145728B"));
  EXPECT_NE(std::string::npos, top.find("7340032B   100%  execute\n")) << top;
  EXPECT_NE(std::string::npos, top.find("7340032B   100%  main\n")) << top;
  EXPECT_EQ(std::string::npos, top.find("operator new")) << top;
  const std::string objects = shown(&maker, "-top -sample_index=inuse_objects");
  EXPECT_EQ("110 98.21% 98.21% 110 98.21% Cache::add",
            line(objects, "       110"));
}

TEST_F(Pprof, LabelsMappingsAndTimes) {
  Profile_maker maker;
  fill(&maker);
  maker.profile.dropped_samples = 5;
  const std::string raw = shown(&maker, "-raw");
  for (const std::string &part :
       {std::string("PeriodType: space bytes\n"),
        std::string("Period: 524288\n"),
        std::string("inuse_objects/count inuse_space/bytes[dflt]\n"),
        std::string("Time: 2026-01-01 00:00:00"), std::string("Duration: 1h"),
        std::string("pool:[table_cache]"),
        std::string("route:[memory/sql/TABLE]"), std::string("pool:[unknown]"),
        std::string("route:[malloc]"), std::string("age:[30 seconds]"),
        std::string("oldest:[60 seconds]"),
        std::string("5 samples found no room"),
        std::string("1: 0x1000/0x10000000/0x0 /"),
        std::string("libtest.so 0123ab [FN]"),
        // _Z7executev: a return address at 5 of a function of 16 bytes.
        // As in the file: the load bias would tell where the process has it.
        std::string("0x1034 M=1 execute"), std::string("digest:[ababab")})
    EXPECT_NE(std::string::npos, raw.find(part)) << part << " in:\n" << raw;
}

TEST_F(Pprof, UnknownFunctionsAndStacks) {
  Profile_maker maker;
  maker.add({}, 1000);
  const uint32_t site = maker.add({"f"}, 500);
  maker.profile.sites[site - 1].addresses.insert(
      maker.profile.sites[site - 1].addresses.begin(),
      {Profile_maker::load_bias + 0xfff1, 0x11});
  maker.add_live(77, 4000);
  const std::string top = shown(&maker, "-top -unit=B");
  EXPECT_EQ("1000B 66.67% 66.67% 1000B 66.67% ?", line(top, "     1000B"));
  EXPECT_EQ("500B 33.33% 100% 500B 33.33% libtest.so+0xfff0",
            line(top, "      500B"));
  EXPECT_NE(std::string::npos, top.find("500B 33.33%  0x10\n")) << top;
}

TEST_F(Pprof, AnEmptyProfile) {
  Profile_maker maker;
  EXPECT_NE(std::string::npos, shown(&maker, "-raw").find("inuse_space/bytes"));
}

TEST_F(Pprof, ALargeProfile) {
  Profile_maker maker;
  std::mt19937 random(20261122);
  uint64_t total = 0;
  for (int i = 0; i < 3000; ++i) {
    std::vector<std::string> stack{"malloc"};
    for (size_t depth = 10 + random() % 30; depth > 0; --depth)
      stack.push_back("function_" + std::to_string(random() % 2000));
    stack.push_back("main");
    const uint64_t bytes = random() % 1000000;
    total += bytes;
    maker.add(stack, static_cast<double>(bytes));
  }
  const std::string top =
      shown(&maker, "-top -unit=B -nodecount=3 -nodefraction=0 -cum");
  EXPECT_NE(std::string::npos,
            top.find(std::to_string(total) + "B   100%  main\n"))
      << top;
}

}  // namespace
}  // namespace memdiag::profile
