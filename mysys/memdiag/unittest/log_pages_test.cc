/* Which pages of the log buffer become resident next, and that they do. */

#include "storage/innobase/memdiag_log_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace memdiag_test {

using memdiag::Log_pages;
using memdiag::Ring_ahead;

constexpr size_t kb = 1024;
constexpr size_t ring_bytes = 16'000 * kb;  // no power of two
constexpr uint64_t start = 5 * ring_bytes + 1000;
constexpr uint64_t least = Ring_ahead::least_ahead;
constexpr uint64_t times = Ring_ahead::times_ahead;

struct All {
  size_t offset;  ///< of the first piece
  size_t bytes;   ///< of all pieces
};

/** All pieces for a position. */
All pieces(Ring_ahead &ahead, uint64_t position) {
  All all{};
  ahead.move_to(position);
  while (const auto piece = ahead.next()) {
    EXPECT_LE(piece->bytes, Ring_ahead::most_bytes_of_piece);
    EXPECT_LE(piece->offset + piece->bytes, ring_bytes);
    if (all.bytes == 0) all.offset = piece->offset;
    all.bytes += piece->bytes;
  }
  return all;
}

TEST(LogPages, AQuietRingHasTheLeastDistance) {
  Ring_ahead ahead(ring_bytes);
  EXPECT_FALSE(ahead.next());  // there is no position yet
  const All first = pieces(ahead, start);
  EXPECT_EQ(1000u, first.offset);
  EXPECT_EQ(least, first.bytes);
  EXPECT_EQ(0u, pieces(ahead, start).bytes);
  EXPECT_EQ(10u, pieces(ahead, start + 10).bytes);
}

TEST(LogPages, TheDistanceFollowsWhatIsReservedAndStays) {
  Ring_ahead ahead(ring_bytes);
  pieces(ahead, start);
  const uint64_t step = 100 * kb;
  const All all = pieces(ahead, start + step);
  EXPECT_EQ(1000u + least, all.offset);
  EXPECT_EQ(step + times * step - least, all.bytes);
  EXPECT_EQ(10u, pieces(ahead, start + step + 10).bytes);
}

TEST(LogPages, TheDistanceHasALimit) {
  Ring_ahead ahead(ring_bytes);
  pieces(ahead, start);
  EXPECT_EQ(Ring_ahead::most_ahead, pieces(ahead, start + 7'000 * kb).bytes);
}

TEST(LogPages, WhatWasPassedIsLeftOut) {
  Ring_ahead ahead(ring_bytes);
  pieces(ahead, start);
  EXPECT_EQ(1000u + 2 * least, pieces(ahead, start + 2 * least).offset);
}

TEST(LogPages, EachByteOnceAndThenNone) {
  constexpr uint64_t step = 64 * kb;
  Ring_ahead ahead(ring_bytes);
  std::vector<unsigned> made(ring_bytes / 8);
  uint64_t position = start;
  for (; position < start + ring_bytes; position += step) {
    ahead.move_to(position);
    while (const auto piece = ahead.next())
      for (size_t at = 0; at < piece->bytes; at += 8)
        ++made.at((piece->offset + at) / 8);
  }
  EXPECT_EQ(std::vector<unsigned>(ring_bytes / 8, 1), made);
  for (; position < start + 4 * ring_bytes; position += step)
    EXPECT_EQ(0u, pieces(ahead, position).bytes);
}

TEST(LogPages, ABackwardPositionStaysInTheRing) {
  Ring_ahead ahead(ring_bytes);
  pieces(ahead, start);
  pieces(ahead, start - 1000);
  pieces(ahead, start + 9 * ring_bytes);
}

/** Pages of the process that no one has written yet. */
class Mapped {
 public:
  static constexpr size_t bytes = ring_bytes;

  Mapped()
      : m_begin(static_cast<char *>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    EXPECT_NE(MAP_FAILED, static_cast<void *>(m_begin));
    madvise(m_begin, bytes, MADV_NOHUGEPAGE);
  }
  ~Mapped() { munmap(m_begin, bytes); }
  Mapped(const Mapped &) = delete;
  Mapped &operator=(const Mapped &) = delete;

  char *begin() const { return m_begin; }

  size_t resident() const {
    const size_t page = sysconf(_SC_PAGESIZE);
    std::vector<unsigned char> pages((bytes + page - 1) / page);
    EXPECT_EQ(0, mincore(m_begin, bytes, pages.data()));
    size_t sum = 0;
    for (const unsigned char flags : pages) sum += flags & 1 ? page : 0;
    return sum;
  }

 private:
  char *m_begin;
};

/** The kernel has MADV_POPULATE_WRITE. */
bool supported() { return madvise(nullptr, 0, Log_pages::populate_write) == 0; }

TEST(LogPages, ThePagesAreResidentAndKeepWhatTheyHold) {
  if (!supported()) GTEST_SKIP() << "needs Linux 5.14";
  const Mapped ring;
  ring.begin()[5] = 'x';
  Log_pages pages;
  pages.make_resident(0);  // there is no ring yet
  pages.begin(ring.begin(), Mapped::bytes);
  pages.make_resident(5 * ring_bytes);
  EXPECT_EQ(least, ring.resident());
  EXPECT_EQ('x', ring.begin()[5]);
  for (uint64_t done = 0; done <= ring_bytes; done += least)
    pages.make_resident(5 * ring_bytes + done);
  EXPECT_EQ(ring_bytes, ring.resident());
}

TEST(LogPages, ANewRingAtTheSamePlaceIsNew) {
  if (!supported()) GTEST_SKIP() << "needs Linux 5.14";
  const Mapped ring;
  Log_pages pages;
  for (int i = 0; i < 2; ++i) {
    pages.begin(ring.begin(), Mapped::bytes);
    pages.make_resident(0);
    EXPECT_EQ(least, ring.resident());
    pages.end();
    madvise(ring.begin(), Mapped::bytes, MADV_DONTNEED);
    pages.make_resident(least);
    EXPECT_EQ(0u, ring.resident());
  }
}

TEST(LogPages, TheRingMayBeReplacedMeanwhile) {
  const Mapped ring;
  Log_pages pages;
  std::thread replaces([&pages, &ring] {
    for (int i = 0; i < 1000; ++i) {
      pages.begin(ring.begin(), Mapped::bytes / (1 + i % 3));
      pages.end();
    }
  });
  for (uint64_t position = 0; position < 1000 * kb; position += kb)
    pages.make_resident(position);
  replaces.join();
}

}  // namespace memdiag_test
