/*
  The file of samples: what is written is read again, whatever became of the
  process or of the file, and nothing that is in a file does harm.
*/

#include "plugin/memdiag/history/black_box.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "mysys/memdiag/unittest/file_tree.h"
#include "mysys/memdiag/unittest/stopped_in_malloc.h"
#include "mysys/memdiag/unittest/test.h"
#include "plugin/memdiag/unittest/collect_rows.h"
#include "plugin/memdiag/unittest/failing_writes.h"
#include "plugin/memdiag/unittest/killed_writer.h"
#include "plugin/memdiag/unittest/recorded.h"

namespace {
/** So many reads at an offset work; those after them fail. */
unsigned reads_left = UINT_MAX;
}  // namespace

/** In place of the C library's. */
extern "C" ssize_t pread(int file, void *to, size_t count, off_t offset) {
  if (reads_left != 0) {
    --reads_left;
    return syscall(SYS_pread64, file, to, count, offset);
  }
  errno = EIO;
  return -1;
}

namespace memdiag::black_box {
namespace {

using memdiag_test::Bytes;
using memdiag_test::failing_writes;
using memdiag_test::in_child;
using memdiag_test::page;
using memdiag_test::read_file;
using memdiag_test::write_file;
using memdiag_test::writes;

constexpr size_t record_size = 8 + sizeof(Saved_sample);

class Black_box : public testing::Test {
 protected:
  const memdiag_test::File_tree m_tree;
  const std::string m_path = m_tree.at("/history.bin");
};

/** A sample all of whose figures are the same. */
Sample sample_of(uint64_t n) {
  Sample sample{};
  sample.time_us = sample.run_us = sample.rss_peak_us = n;
  sample.process = sample.version = static_cast<uint32_t>(n);
  for (uint64_t Sample::*const figure :
       {&Sample::rss_bytes, &Sample::swap_bytes, &Sample::rss_peak_bytes,
        &Sample::allocated_bytes, &Sample::active_bytes,
        &Sample::resident_bytes, &Sample::dirty_bytes, &Sample::metadata_bytes,
        &Sample::purges, &Sample::purged_bytes, &Sample::buffer_pool_bytes})
    sample.*figure = n;
  sample.pools.fill({n, n});
  return sample;
}

bool is_sample_of(const Sample &sample, uint64_t n) {
  Sample expected = sample_of(n);
  expected.sequence = sample.sequence;
  return memcmp(&sample, &expected, sizeof expected) == 0;
}

/** Samples of first, first + 1, ... */
void expect_samples(const std::vector<Sample> &samples, uint64_t first,
                    size_t count) {
  ASSERT_EQ(count, samples.size());
  for (size_t i = 0; i < count; ++i)
    EXPECT_TRUE(is_sample_of(samples[i], first + i)) << i;
}

/** A file with `count` samples of a run after that many of a former one. */
Bytes file_with(const std::string &path, size_t count) {
  std::vector<Sample> former;
  for (size_t i = 0; i < count; ++i) former.push_back(sample_of(100 + i));
  Box box;
  EXPECT_EQ(0, box.open(path, count, former, 0));
  for (size_t i = 0; i < count; ++i) box.append(sample_of(200 + i));
  return read_file(path);
}

TEST_F(Black_box, WhatIsWrittenIsRead) {
  Contents contents;
  EXPECT_EQ("", load(m_path, 0, &contents));
  EXPECT_TRUE(contents.samples.empty());
  {
    Box box;
    ASSERT_EQ(0, box.open(m_path, 20, {}, 0));
    EXPECT_TRUE(box.this_run().empty());
    for (uint64_t i = 0; i < 5; ++i) box.append(sample_of(i));
    expect_samples(box.this_run(), 0, 5);
    EXPECT_TRUE(box.former_runs().empty());
  }
  EXPECT_EQ("", load(m_path, 0, &contents));
  expect_samples(contents.samples, 0, 5);
  EXPECT_EQ(0u, contents.damaged);

  Box next;
  ASSERT_EQ(0, next.open(m_path, 20, contents.samples, 0));
  EXPECT_TRUE(next.this_run().empty());
  expect_samples(next.former_runs(), 0, 5);
  next.append(sample_of(5));
  EXPECT_EQ("", load(m_path, 0, &contents));
  expect_samples(contents.samples, 0, 6);
}

/** Builds before and after this one read the file. */
TEST_F(Black_box, WhatOnlyMemoryHasIsNotInTheFile) {
  EXPECT_EQ(200 + 16 * pool_count, sizeof(Saved_sample));
  Sample sample = sample_of(1);
  sample.log_buffer_bytes = 2;
  sample.log_buffer_resident_bytes = 3;
  sample.file_bytes = 4;
  Box box;
  ASSERT_EQ(0, box.open(m_path, 10, {}, 0));
  box.append(sample);
  EXPECT_EQ(2u, box.this_run()[0].log_buffer_bytes);
  EXPECT_EQ(3u, box.this_run()[0].log_buffer_resident_bytes);
  EXPECT_EQ(4u, box.this_run()[0].file_bytes);
  Contents contents;
  EXPECT_EQ("", load(m_path, 0, &contents));
  expect_samples(contents.samples, 1, 1);
  EXPECT_EQ(unknown, contents.samples[0].log_buffer_bytes);
  EXPECT_EQ(unknown, contents.samples[0].log_buffer_resident_bytes);
  EXPECT_EQ(unknown, contents.samples[0].file_bytes);
}

TEST_F(Black_box, TheOldestGiveWay) {
  Contents contents;
  {
    Box box;
    ASSERT_EQ(0, box.open(m_path, 10, {}, 0));
    for (uint64_t i = 0; i < 25; ++i) box.append(sample_of(i));
    const auto run = box.this_run();
    expect_samples(run, 15, 10);
    EXPECT_EQ(run.size(), run.capacity()) << "no memory for more";
    expect_samples(box.this_run(18), 18, 7);
    expect_samples(box.this_run(24), 24, 1);
    EXPECT_TRUE(box.this_run(25).empty());
  }
  {
    // A short run drives out little of what the one before it left.
    EXPECT_EQ("", load(m_path, 0, &contents));
    Box box;
    ASSERT_EQ(0, box.open(m_path, 10, contents.samples, 0));
    expect_samples(box.former_runs(), 15, 10);
    box.append(sample_of(25));
    box.append(sample_of(26));
  }
  EXPECT_EQ("", load(m_path, 0, &contents));
  expect_samples(contents.samples, 15, 12);
  Box same;
  ASSERT_EQ(0, same.open(m_path, 10, contents.samples, 0));
  expect_samples(same.former_runs(), 17, 10);
  Box smaller;
  ASSERT_EQ(0, smaller.open(m_path, 4, contents.samples, 0));
  expect_samples(smaller.former_runs(), 23, 4);
}

TEST_F(Black_box, TheFileIsReservedAndOthersMayNotReadIt) {
  Box box;
  ASSERT_EQ(0, box.open(m_path, 1000, {}, 0));
  struct stat about;
  ASSERT_EQ(0, lstat(m_path.c_str(), &about));
  EXPECT_EQ(page + 2000 * record_size, static_cast<size_t>(about.st_size));
  EXPECT_GE(about.st_blocks * 512, about.st_size);
  EXPECT_EQ(0u, about.st_mode & 0137);
  EXPECT_FALSE(std::filesystem::exists(m_path + ".new"));
}

TEST_F(Black_box, WhatASampleTakes) {
  const auto size = [this](size_t capacity) {
    Box box;
    EXPECT_EQ(0, box.open(m_path, capacity, {}, 0));
    return std::filesystem::file_size(m_path);
  };
  EXPECT_EQ(size(10) + 90 * file_bytes_per_sample, size(100));
}

TEST_F(Black_box, ItMayBeRemoved) {
  Box box;
  ASSERT_EQ(0, box.open(m_path, 10, {}, 0));
  box.append(sample_of(1));
  std::filesystem::remove(m_path);
  box.append(sample_of(2));
  expect_samples(box.this_run(), 1, 2);
}

/** Samples as load() finds them, without a remark. */
std::vector<Sample> loaded(const std::string &path) {
  Contents contents;
  EXPECT_EQ("", load(path, 0, &contents));
  return contents.samples;
}

TEST_F(Black_box, ASampleIsOneWrite) {
  Box box;
  ASSERT_EQ(0, box.open(m_path, 10, {}, 0));
  writes = 0;
  for (uint64_t i = 0; i < 25; ++i) EXPECT_EQ(0, box.append(sample_of(i)));
  EXPECT_EQ(25u, writes);
}

TEST_F(Black_box, AFileThatIsCutShortIsWrittenAnew) {
  const std::vector<Sample> former{sample_of(1), sample_of(2)};
  Box box;
  ASSERT_EQ(0, box.open(m_path, 10, former, 0));
  for (uint64_t i = 3; i < 16; ++i) EXPECT_EQ(0, box.append(sample_of(i)));
  for (const size_t size :
       {size_t{0}, size_t{1}, page, size_t{5000}, page + 19 * record_size}) {
    ASSERT_EQ(0, truncate(m_path.c_str(), static_cast<off_t>(size)));
    EXPECT_EQ(0, box.append(sample_of(16)));
    expect_samples(box.former_runs(), 1, 2);
    const auto samples = loaded(m_path);
    ASSERT_EQ(12u, samples.size()) << size;
    EXPECT_TRUE(is_sample_of(samples.front(), 1));
    EXPECT_TRUE(is_sample_of(samples.back(), 16));
  }
}

TEST_F(Black_box, AFileThatIsCopiedOverThisOneLeavesNothing) {
  // As `: >` and rsync --inplace of another server's file do it.
  const Bytes other = file_with(m_path, 10);
  Box box;
  ASSERT_EQ(0, box.open(m_path, 10, {}, 0));
  for (uint64_t i = 0; i < 3; ++i) EXPECT_EQ(0, box.append(sample_of(i)));
  const auto copy = [this](const Bytes &bytes) {
    std::fstream file(m_path, std::ios::in | std::ios::out | std::ios::binary);
    file.write(reinterpret_cast<const char *>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  };
  Bytes of_another_build = other;
  of_another_build[8] ^= std::byte{1};
  copy(of_another_build);
  EXPECT_EQ(0, box.append(sample_of(3)));
  expect_samples(loaded(m_path), 0, 4);
  copy(Bytes(20000, std::byte{0x5a}));
  EXPECT_EQ(0, box.append(sample_of(4)));
  expect_samples(loaded(m_path), 0, 5);
}

TEST_F(Black_box, AFailedWriteIsToldAndMadeUpFor) {
  for (const int error : {EIO, ENOSPC, EDQUOT}) {
    Box box;
    ASSERT_EQ(0, box.open(m_path, 200, {}, 0));
    EXPECT_EQ(0, box.append(sample_of(0)));
    failing_writes = {error, 1};
    EXPECT_EQ(error, box.append(sample_of(1)));
    // Until the next attempt, nothing is written.
    writes = 0;
    uint64_t n = 2;
    for (unsigned i = 1; i < Box::retry_after_samples; ++i)
      EXPECT_EQ(0, box.append(sample_of(n++)));
    EXPECT_EQ(0u, writes);
    failing_writes = {error, 1};
    EXPECT_EQ(error, box.append(sample_of(n++))) << "still";
    for (unsigned i = 0; i < Box::retry_after_samples; ++i)
      EXPECT_EQ(0, box.append(sample_of(n++)));
    expect_samples(box.this_run(), 0, n);
    expect_samples(loaded(m_path), 0, n);
  }
}

TEST_F(Black_box, TheLastSampleDoesNotWaitForTheNextAttempt) {
  Box box;
  ASSERT_EQ(0, box.open(m_path, 10, {}, 0));
  failing_writes = {ENOSPC, 1};
  EXPECT_EQ(ENOSPC, box.append(sample_of(0)));
  Sample last = sample_of(1);
  last.ended = 1;
  EXPECT_EQ(0, box.append(last));
  const std::vector<Sample> found = loaded(m_path);
  ASSERT_EQ(2u, found.size());
  EXPECT_EQ(1u, found.back().ended);
}

TEST_F(Black_box, TheEndIsInTheNewestSample) {
  for (const size_t samples : {1, 9, 10, 11, 25}) {
    Box box;
    ASSERT_EQ(0, box.open(m_path, 10, {}, 0));
    EXPECT_EQ(0, box.end()) << "of no sample";
    for (uint64_t n = 0; n < samples; ++n) box.append(sample_of(n));
    for (const Sample &sample : loaded(m_path)) EXPECT_EQ(0u, sample.ended);
    EXPECT_EQ(0, box.end());
    const std::vector<Sample> found = loaded(m_path);
    ASSERT_EQ(std::min<size_t>(samples, 10), found.size());
    for (const Sample &sample : found)
      EXPECT_EQ(sample.time_us == samples - 1 ? 1u : 0u, sample.ended);
  }
}

TEST_F(Black_box, TheEndDoesNotWaitForTheNextAttempt) {
  Box box;
  ASSERT_EQ(0, box.open(m_path, 10, {}, 0));
  failing_writes = {ENOSPC, 1};
  EXPECT_EQ(ENOSPC, box.append(sample_of(0)));
  writes = 0;
  EXPECT_EQ(0, box.append(sample_of(1)));
  EXPECT_EQ(0u, writes);
  EXPECT_EQ(0, box.end());
  const std::vector<Sample> found = loaded(m_path);
  ASSERT_EQ(2u, found.size());
  EXPECT_EQ(1u, found.back().ended);
}

TEST_F(Black_box, AFailedWriteAtTheStartLeavesNoFile) {
  failing_writes = {EIO, 1};
  Box box;
  EXPECT_EQ(EIO, box.open(m_path, 10, {}, 0));
  EXPECT_FALSE(std::filesystem::exists(m_path));
  EXPECT_FALSE(std::filesystem::exists(m_path + ".new"));
  writes = 0;
  EXPECT_EQ(0, box.append(sample_of(1)));
  EXPECT_EQ(0u, writes);
  expect_samples(box.this_run(), 1, 1);
}

TEST_F(Black_box, AFileThatCouldNotBeMadeIsTriedAgain) {
  const std::vector<Sample> former{sample_of(1), sample_of(2)};
  // A folder stands for a full disk.
  std::filesystem::create_directory(m_path + ".new");
  Box box;
  EXPECT_EQ(EISDIR, box.open(m_path, 200, former, 0));
  uint64_t n = 10;
  for (unsigned i = 1; i < Box::retry_after_samples; ++i)
    EXPECT_EQ(0, box.append(sample_of(n++)));
  EXPECT_EQ(EISDIR, box.append(sample_of(n++))) << "still";
  std::filesystem::remove(m_path + ".new");
  for (unsigned i = 1; i < Box::retry_after_samples; ++i)
    EXPECT_EQ(0, box.append(sample_of(n++)));
  EXPECT_FALSE(std::filesystem::exists(m_path));
  EXPECT_EQ(0, box.append(sample_of(n++)));
  EXPECT_EQ(0, box.append(sample_of(n++)));
  EXPECT_FALSE(std::filesystem::exists(m_path + ".new"));
  const std::vector<Sample> found = loaded(m_path);
  ASSERT_EQ(n - 10 + 2, found.size());
  EXPECT_TRUE(is_sample_of(found[1], 2));
  EXPECT_TRUE(is_sample_of(found[2], 10));
  EXPECT_TRUE(is_sample_of(found.back(), n - 1));
}

TEST_F(Black_box, AReaderOfTheRunHoldsNobodyInMalloc) {
  Box box;
  ASSERT_EQ(0, box.open(m_path, 100, {}, 0));
  for (uint64_t n = 1; n <= 100; ++n) box.append(sample_of(n));
  uint64_t next = 101;
  EXPECT_TRUE(memdiag_test::others_go_on(
      [&box] { EXPECT_EQ(100u, box.this_run().size()); },
      [&box, &next] { box.append(sample_of(next++)); }));
}

TEST_F(Black_box, AFormerFileThatCannotBeReadToItsEndStaysAsItIs) {
  {
    Box box;
    ASSERT_EQ(0, box.open(m_path, 10, {}, 0));
    for (uint64_t n = 1; n <= 10; ++n) box.append(sample_of(n));
  }
  const Bytes former = read_file(m_path);
  std::filesystem::create_directory(m_path + ".new");
  Box box;
  EXPECT_EQ(EISDIR, box.open(m_path, 10, {}, 0));
  // The header, and half of the samples, which the file has behind ten places.
  reads_left = 1 + 10 + 5;
  EXPECT_EQ(0, box.append(sample_of(200)));
  reads_left = UINT_MAX;
  EXPECT_EQ(former, read_file(m_path));
}

TEST_F(Black_box, WithoutAFileOfItsOwnARunLeavesOneSampleInTheFormer) {
  // A run of ten samples, which was killed; the second one has room for both.
  for (const size_t samples : {3, 10}) {
    {
      Box box;
      ASSERT_EQ(0, box.open(m_path, 10, {}, 0));
      for (uint64_t i = 0; i < samples; ++i) {
        Sample sample = sample_of(100 + i);
        sample.run_us = 100;
        box.append(sample);
      }
    }
    std::vector<Sample> former = loaded(m_path);
    std::filesystem::create_directory(m_path + ".new");
    const auto of_second_run = [](uint64_t n) {
      Sample sample = sample_of(n);
      sample.run_us = 200;
      sample.process = 200;
      return sample;
    };
    {
      Box box;
      EXPECT_EQ(EISDIR, box.open(m_path, 10, former, 0));
      EXPECT_EQ(0, box.append(of_second_run(200)));
      EXPECT_EQ(200u, loaded(m_path).back().process) << "if it is killed now";
      for (uint64_t n = 201; n < 400; ++n) box.append(of_second_run(n));
      Sample last = of_second_run(400);
      last.ended = 1;
      EXPECT_EQ(EISDIR, box.append(last));
    }
    const std::vector<Sample> found = loaded(m_path);
    ASSERT_EQ(samples + 1, found.size());
    EXPECT_EQ(100u, found.front().time_us);
    EXPECT_EQ(100 + samples - 1, found[samples - 1].time_us);
    EXPECT_EQ(400u, found.back().time_us);
    EXPECT_EQ(1u, found.back().ended);
    std::filesystem::remove(m_path + ".new");
    std::filesystem::remove(m_path);
  }
}

TEST_F(Black_box, WithoutAFileSamplesAreInMemory) {
  const std::vector<Sample> former{sample_of(1), sample_of(2)};
  const auto expect_memory = [&former](int error, const std::string &path) {
    Box box;
    EXPECT_EQ(error, box.open(path, 10, former, 0)) << path;
    for (uint64_t i = 0; i < 12; ++i) box.append(sample_of(10 + i));
    expect_samples(box.former_runs(), 1, 2);
    expect_samples(box.this_run(), 12, 10);
  };
  expect_memory(ENOENT, m_tree.at("/none/history.bin"));
  std::filesystem::create_directory(m_path);
  expect_memory(EISDIR, m_path);
  EXPECT_FALSE(std::filesystem::exists(m_path + ".new"));
  Contents contents;
  EXPECT_NE("", load(m_path, 0, &contents));
  std::filesystem::create_directory(m_path + ".new");
  expect_memory(EISDIR, m_path);
}

TEST_F(Black_box, NoRoomForTheFile) {
  EXPECT_EQ(0, in_child([this] {
              signal(SIGXFSZ, SIG_IGN);
              const rlimit limit{100000, 100000};
              if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
              Box box;
              if (box.open(m_path, 1000, {}, 0) != EFBIG) return 2;
              if (access(m_path.c_str(), F_OK) == 0 ||
                  access((m_path + ".new").c_str(), F_OK) == 0)
                return 3;
              for (uint64_t i = 0; i < 1001; ++i) box.append(sample_of(i));
              return box.this_run().size() == 1000 ? 0 : 4;
            }));
}

TEST_F(Black_box, NoLinkIsFollowed) {
  const std::string other = m_tree.at("/other");
  const std::string text = "another file";
  write_file(other, std::as_bytes(std::span{text}));
  std::filesystem::create_symlink(other, m_path);
  std::filesystem::create_symlink(other, m_path + ".new");
  Contents contents;
  EXPECT_NE(std::string::npos,
            load(m_path, 0, &contents).find("cannot be read"));
  Box box;
  EXPECT_EQ(0, box.open(m_path, 10, {}, 0));
  EXPECT_TRUE(std::filesystem::is_regular_file(
      std::filesystem::symlink_status(m_path)));
  EXPECT_EQ(text.size(), std::filesystem::file_size(other));
}

TEST_F(Black_box, OtherFilesAreNotOurs) {
  Contents contents;
  const auto expect_foreign = [this, &contents](const Bytes &bytes) {
    write_file(m_path, bytes);
    EXPECT_NE("", load(m_path, 0, &contents));
    EXPECT_TRUE(contents.samples.empty());
  };
  const Bytes ours = file_with(m_path, 3);
  expect_foreign({});
  expect_foreign(Bytes(100));
  expect_foreign(Bytes(100000));
  expect_foreign(Bytes(ours.begin(), ours.begin() + page - 1));
  // The name, the format, the size of a record, the pools.
  for (const size_t at : {0, 8, 12, 16, 23}) {
    Bytes other = ours;
    other[at] ^= std::byte{1};
    expect_foreign(other);
  }
  ASSERT_EQ(0, truncate(m_path.c_str(), off_t{1} << 32));
  EXPECT_NE(std::string::npos, load(m_path, 0, &contents).find("not a file"));
  std::filesystem::remove(m_path);
  ASSERT_EQ(0, mkfifo(m_path.c_str(), 0600));
  EXPECT_NE(std::string::npos, load(m_path, 0, &contents).find("not a file"));
}

TEST_F(Black_box, HalfWrittenRecordsAreSeen) {
  const Bytes file = file_with(m_path, 3);
  // The record of 101 is written over that of 202, and this is interrupted.
  const size_t from = page + record_size;
  const size_t to = page + 5 * record_size;
  for (size_t written = 0; written <= record_size; ++written) {
    Bytes torn = file;
    std::copy_n(&file[from], written, &torn[to]);
    Contents contents;
    ASSERT_TRUE(parse(torn, &contents));
    // Their last bytes are the same, so that it may be whole before its end.
    if (memcmp(&torn[to], &file[to], record_size) == 0 ||
        memcmp(&torn[to], &file[from], record_size) == 0) {
      EXPECT_EQ(0u, contents.damaged) << written;
      EXPECT_EQ(6u, contents.samples.size());
      continue;
    }
    EXPECT_EQ(1u, contents.damaged) << written;
    ASSERT_EQ(5u, contents.samples.size());
    EXPECT_TRUE(is_sample_of(contents.samples[4], 201));
  }
  // The first record of an empty slot.
  for (size_t written = 1; written < record_size; ++written) {
    Bytes torn = file;
    std::fill_n(&torn[to + written], record_size - written, std::byte{0});
    if (torn == file) continue;
    Contents contents;
    ASSERT_TRUE(parse(torn, &contents));
    EXPECT_EQ(1u, contents.damaged) << written;
  }
}

TEST_F(Black_box, OfAFileThatWasCutShortTheRestIsRead) {
  const Bytes file = file_with(m_path, 3);
  for (size_t size = page; size <= file.size(); ++size) {
    Contents contents;
    ASSERT_TRUE(parse(std::span{file}.first(size), &contents));
    EXPECT_EQ((size - page) / record_size, contents.samples.size());
    EXPECT_EQ(0u, contents.damaged);
  }
}

TEST_F(Black_box, MomentsThatCannotBeShownAreDamage) {
  for (uint64_t Sample::*const moment :
       {&Sample::time_us, &Sample::run_us, &Sample::rss_peak_us}) {
    Box box;
    ASSERT_EQ(0, box.open(m_path, 10, {}, 0));
    Sample sample = sample_of(7);
    sample.*moment = uint64_t{1} << 31 << 20;
    box.append(sample);
    box.append(sample_of(8));
    Contents contents;
    EXPECT_NE("", load(m_path, 0, &contents));
    expect_samples(contents.samples, 8, 1);
    EXPECT_EQ(1u, contents.damaged);
  }
}

/** Does something to a file. */
void mutate(std::mt19937 &random, Bytes *file) {
  const auto below = [&random](size_t limit) { return random() % limit; };
  const auto any_byte = [&random] { return std::byte(random()); };
  const int times = 1 + static_cast<int>(below(8));
  for (int i = 0; i < times && !file->empty(); ++i) {
    const size_t at = below(file->size());
    const size_t length = below(std::min<size_t>(file->size() - at, 1000)) + 1;
    switch (below(6)) {
      case 0:
        (*file)[at] ^= std::byte{1} << below(8);
        break;
      case 1:
        std::generate_n(&(*file)[at], length, any_byte);
        break;
      case 2:
        std::fill_n(&(*file)[at], length,
                    below(2) ? std::byte{0xff} : std::byte{0});
        break;
      case 3:
        file->resize(at);
        break;
      case 4:
        std::generate_n(std::back_inserter(*file), length, any_byte);
        break;
      case 5: {
        const size_t from = below(file->size() - length + 1);
        memmove(&(*file)[at], &(*file)[from], length);
      }
    }
  }
}

/** Makes the rows of the tables. */
void show(const Contents &contents) {
  (void)history_rows(contents.samples, contents.samples);
  (void)history_rows(contents.samples);
  (void)history_pool_rows(contents.samples, contents.samples);
}

TEST_F(Black_box, AnyMutationIsSeen) {
  const Bytes file = file_with(m_path, 8);
  std::mt19937 random(20261120);
  size_t samples = 0;
  for (int i = 0; i < 20000; ++i) {
    Bytes mutated = file;
    mutate(random, &mutated);
    Contents contents;
    if (!parse(mutated, &contents)) continue;
    for (const Sample &sample : contents.samples)
      ASSERT_TRUE(is_sample_of(sample, sample.time_us)) << i;
    samples += contents.samples.size();
    show(contents);
  }
  EXPECT_LT(1000u, samples);
}

TEST_F(Black_box, AnyWholeRecordIsHarmless) {
  const Bytes file = file_with(m_path, 8);
  std::mt19937 random(20261121);
  size_t samples = 0;
  for (int i = 0; i < 10000; ++i) {
    Bytes mutated = file;
    mutate(random, &mutated);
    std::copy_n(file.begin(), std::min(page, mutated.size()), mutated.begin());
    for (size_t at = page; at + record_size <= mutated.size();
         at += record_size)
      memdiag_test::correct_checksum(&mutated[at], record_size);
    Contents contents;
    (void)parse(mutated, &contents);
    samples += contents.samples.size();
    show(contents);
    if (i % 100 != 0) continue;
    Box box;
    ASSERT_EQ(0, box.open(m_path, 10, contents.samples, 0));
    box.append(sample_of(1));
    show({box.former_runs(), 0});
  }
  EXPECT_LT(20000u, samples);
}

TEST_F(Black_box, AWriterThatIsKilledLeavesAReadableFile) {
  std::mt19937 random(20261122);
  for (int i = 0; i < 30; ++i) {
    Box box;
    ASSERT_EQ(0, box.open(m_path, 50, {}, 0));
    // The ring has been round.
    ASSERT_NO_FATAL_FAILURE(memdiag_test::kill_writer_after(
        50 + random() % 1000,
        [&box](uint64_t n) { box.append(sample_of(n)); }));

    Contents contents;
    (void)load(m_path, 0, &contents);
    ASSERT_LE(contents.damaged, 1u);
    ASSERT_EQ(50 - contents.damaged, contents.samples.size());
    expect_samples(contents.samples, contents.samples[0].time_us,
                   contents.samples.size());
  }
}

}  // namespace
}  // namespace memdiag::black_box
