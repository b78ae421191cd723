/*
  Memory of pools by its holders: bytes that each thread allocated minus those
  it freed, by pool; and bytes that statements allocate, by digest. The counts
  begin when they are switched on.

  Blocks are counted for the thread that allocates them and against the thread
  that frees them: a thread that freed more than it allocated is below 0. The
  sum over live and ended threads is exactly the bytes allocated since counting
  began minus the bytes freed since. Counted are blocks of pools that have a
  route, not malloc()'s, nor those that malloc() served for a pool.

  A statement is what the session's own thread does from the end of the one
  before: reading the packet is in it, what other threads do for it is not.

  Threads: any. A thread counts in memory that no other thread writes;
  a mutex is taken when a thread first counts, when a session ends and when a
  statement ends. After a fork() the child has one thread; the others have
  ended. Memory: nothing is allocated but by holdings() and digests(), for the
  caller. Units: bytes of size classes; microseconds since the epoch.
*/

#ifndef MEMDIAG_SESSIONS_H
#define MEMDIAG_SESSIONS_H

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mysys/memdiag/pools/pool.h"
#include "mysys/memdiag/upstream/interval_hooks.h"

namespace memdiag::sessions {

/** Begin to count, with none, or end it: digests stay on show. */
void track(bool on);

/** @name Events of the calling thread, while counting is on @{ */
/** Listens to block events. */
void note(Pool pool, pools::Account account, int64_t bytes) noexcept;
/** Blocks that came before belong to no statement. */
void session_began() noexcept;
/** Blocks that the thread still holds belong to no thread from now on. */
void session_ended() noexcept;
/** The heap profile's stack that held most at a peak, as
profiling::Site_of_run, which this room does not know. */
struct Peak_stack {
  uint32_t run;
  /** 0: not known. */
  uint32_t site;
};
/** @param digest  as in mysys/memdiag/upstream/scope_hooks.h
@param top  at the statement's peak */
void statement_ended(unsigned char *digest, Peak_stack top = {}) noexcept;
/** See mysys/memdiag/upstream/interval_hooks.h. */
void interval_begins(Interval *interval) noexcept;
bool interval_so_far(const Interval &interval,
                     Interval_memory *memory) noexcept;
void interval_ends(const Interval &interval) noexcept;
/** @} */

/** By pool: taken less freed. */
using Nets = std::array<int64_t, pool_count>;

struct Thread_nets {
  pthread_t thread;
  Nets nets;
};
struct Holdings {
  std::vector<Thread_nets> threads;
  /** Sums of threads and sessions that ended. */
  Nets gone;
};

/** None while counting is off, because frees are not counted then.
@throws std::bad_alloc */
Holdings holdings();

/** SHA-256, as Performance Schema computes it; zeros: none. */
using Digest = std::array<unsigned char, 32>;

/** As Performance Schema writes it; empty for none. */
std::optional<std::string> text_of(const Digest &digest);

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

/** @name For admission @{ */

/** A statement that never has so much, taken and not freed, is small. */
constexpr uint64_t large_statement_bytes = 256 << 10;
/** A digest is known when so many of its statements have ended. */
constexpr unsigned known_statements = 8;
/** One load. @param digest  of Digest's size
@return false: the digest is known, and all its statements were small. The marks
are a hash table without chains: of 1000 known digests, some 60 share a mark
with another and count as not known */
bool may_be_large(const unsigned char *digest) noexcept;

struct Past {
  uint64_t statements;
  uint64_t peak_bytes;

  bool is_small() const {
    return statements >= known_statements && peak_bytes < large_statement_bytes;
  }
};
/** As in digests(); zeros: the digest is not there, or gave way to another one.
Takes a mutex. */
Past past_of(const Digest &digest) noexcept;

/** Bytes that the calling thread's statement has taken and not freed. Below 0
if it freed more that came before. Other threads may read the figure until this
thread ends. */
const std::atomic<int64_t> &held_by_statement() noexcept;
/** @} */

/** Around fork(), see mysys/memdiag/fork.cc: both mutexes are held. */
void hold() noexcept;
void let_go(bool in_child) noexcept;

}  // namespace memdiag::sessions

#endif  // MEMDIAG_SESSIONS_H
