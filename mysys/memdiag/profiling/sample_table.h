/*
  The live samples, in a fixed table that threads change without a lock.

  A block's address selects a window of 64 places. The sample takes any free
  place of its window, and a search looks at all 64 addresses, which lie side by
  side. So nothing moves when samples come and go. A full window drops the
  sample. With half of all places taken, this happens less than once in a
  million samples: a full window is then 5.6 standard deviations from the mean.

  An address may have several samples for a moment, because jemalloc reports a
  reallocation late: first the new block, then the end of the old one. By then a
  block that stayed in place has both samples. If it moved, another thread may
  already have a sampled block at the old address. So add() leaves other samples
  alone, and remove() takes the one that was added first.

  Ownership: the memory is the caller's, zeroed, and must outlive the table.
  Threads: any. A reader sees each sample whole or not at all.
  Errors: add() fails if the window is full.
  Units: bytes of size classes; microseconds of CLOCK_MONOTONIC, so that ages
  are right where the other clock was set.
*/

#ifndef MEMDIAG_SAMPLE_TABLE_H
#define MEMDIAG_SAMPLE_TABLE_H

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace memdiag::profiling {

/** SHA-256, as Performance Schema computes it; zeros: none. */
using Digest = std::array<unsigned char, 32>;

struct Sample {
  uintptr_t block;
  uint64_t bytes;
  uint64_t time_us;
  /** The number of the session in PROCESSLIST; 0: none. */
  uint64_t session;
  /** A number of site_table.h; 0: there was no room for the stack. */
  uint32_t site;
  Digest digest;
};

class Sample_table {
 public:
  /** One use of a place in the table. */
  struct Handle {
    uint32_t place;
    uint32_t generation;
  };

  /** The number of places that fit into so many bytes: a power of two, at least
  one window; 0: none fit. */
  static size_t places_in(size_t bytes);
  /** Bytes that so many places need. */
  static size_t bytes_of(size_t places);

  /** @param memory  bytes_of(places), aligned as a pointer
  @param places  as places_in() gives them: a power of two, not 0 */
  Sample_table(void *memory, size_t places);

  std::optional<Handle> add(const Sample &sample) noexcept;

  struct Removed {
    uint32_t site;
    uint64_t bytes;
  };
  /** @return empty: the block has no sample */
  std::optional<Removed> remove(uintptr_t block) noexcept;

  /** Sets the digest of a sample, unless the sample has been removed. */
  void set_digest(Handle handle, const Digest &digest) noexcept;

  /** So many samples were ever added. */
  uint64_t added() const noexcept {
    return m_added.load(std::memory_order_relaxed);
  }

  /** Calls visit(const Sample &) for each sample. It stops no thread. Samples
  that are added meanwhile are left out: the reader's own blocks among them. */
  template <typename Visitor>
  void for_each(Visitor visit) const {
    for_each(added(), visit);
  }
  /** The same for those that were there when added() gave `end`. */
  template <typename Visitor>
  void for_each(uint64_t end, Visitor visit) const {
    Sample sample;
    for (size_t place = 0; place < m_places; ++place)
      if (read(place, end, &sample)) visit(sample);
  }

 private:
  static constexpr size_t window = 64;
  /** In place of an address: the place is free, or a thread writes to it. No
  block has these addresses. */
  static constexpr uintptr_t free_place = 0;
  static constexpr uintptr_t busy_place = 1;

  /** All stores release and all loads acquire: a reader that sees part of a
  later sample then also sees that the generation changed. */
  struct Body {
    std::atomic<uint32_t> generation;
    std::atomic<uint32_t> site;
    std::atomic<uint64_t> bytes;
    std::atomic<uint64_t> time_us;
    std::atomic<uint64_t> session;
    std::atomic<uint64_t> digest[4];
    /** check_of() digest and generation. A thread may set a digest while
    another reuses the place. A digest that fails its check is not known. */
    std::atomic<uint64_t> check;
    /** In the order in which samples are added. */
    std::atomic<uint64_t> number;
  };

  size_t first_of_window(uintptr_t block) const;
  /** @param end  a sample with this number or a later one is left out */
  bool read(size_t place, uint64_t end, Sample *sample) const noexcept;
  void write(size_t place, const Sample &sample) noexcept;
  static uint64_t check_of(const uint64_t (&digest)[4], uint32_t generation);
  static void write_digest(Body *body, const Digest &digest,
                           uint32_t generation) noexcept;

  const size_t m_places;
  std::atomic<uintptr_t> *const m_blocks;
  Body *const m_bodies;
  std::atomic<uint64_t> m_added{0};
};

}  // namespace memdiag::profiling

#endif  // MEMDIAG_SAMPLE_TABLE_H
