/*
  Memory of pools that statements take, by digest.

  A statement that ends adds its bytes (thread_bytes.h) to those of its digest.
  Digests stay on show when counting ends, until it begins anew.

  Threads: any. A mutex is taken when a statement ends, and by readers. Memory:
  nothing is allocated but by digests() and text_of(), for the caller; the table
  is fixed. Units: bytes of size classes; microseconds since the epoch. Errors:
  a statement of a thread that cannot count is left out.
*/

#ifndef MEMDIAG_DIGESTS_H
#define MEMDIAG_DIGESTS_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace memdiag::sessions {

/** Begin anew, with no digest. Part of track(), see tracking.h: after
track_threads(), so that a statement that began before finds its thread's count
begun anew, too. */
void forget_digests() noexcept;

/** The heap profile's stack that held most at a peak, as
profiling::Site_of_run, which this room does not know. */
struct Peak_stack {
  uint32_t run;
  /** 0: not known. */
  uint32_t site;
};
/** The calling thread's statement ends, while counting is on.
@param digest  as in mysys/memdiag/upstream/scope_hooks.h
@param top  at the statement's peak */
void statement_ended(unsigned char *digest, Peak_stack top = {}) noexcept;

/** SHA-256, as Performance Schema computes it; zeros: none. */
using Digest = std::array<unsigned char, 32>;

/** As Performance Schema writes it; empty for none. */
std::optional<std::string> text_of(const Digest &digest);

/** A statement that never has so much, taken and not freed, is small. */
constexpr uint64_t large_statement_bytes = 256 << 10;
/** Once there are so many, a further digest is counted as one without, until
one of its statements is large. It then takes the place of the digest that
matters least: the oldest of the small ones, or else the smallest. */
constexpr size_t max_digests = 1000;

struct Digest_row {
  std::optional<std::string> digest;
  uint64_t statements;
  /** Taken by all of them, freed or not. */
  uint64_t taken_bytes;
  /** The most that one of them had taken and not freed at a moment. */
  uint64_t peak_bytes;
  Peak_stack peak_stack;
  /** When the last one ended. */
  uint64_t last_us;
  /** Statements whose digest found no room, or gave way to another one. Only
  the row without a digest has the figure, and counts them among its own; 0 in
  others. */
  uint64_t overflowed;
};

/** @throws std::bad_alloc */
std::vector<Digest_row> digests();

/** Around fork(), see mysys/memdiag/fork.cc: the mutex is held. */
void hold_digests() noexcept;
void let_go_of_digests() noexcept;

}  // namespace memdiag::sessions

#endif  // MEMDIAG_DIGESTS_H
