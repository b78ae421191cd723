/*
  The giver's policy: which step is next, when memory comes back to the buffer
  pool, and which statement ends.

  Steps go in the order of their cost. The giver gives back until a quarter more
  than the mark of plenty is left, so that it does not begin anew at once:
  1. Purge the pools' unused pages.
  2. Park frames of the buffer pool, down to its floor.
  3. Write full-text caches and close unused tables.
  4. Red, and nothing else is left: one statement ends, the one that grew most.

  Frames come back when more than twice the plenty was left for ten seconds.

  Pure functions; nothing is read and nothing done here.
  Units: bytes; microseconds of a clock that does not go back.
*/

#ifndef MEMDIAG_CEILING_GIVING_H
#define MEMDIAG_CEILING_GIVING_H

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "mysys/memdiag/ceiling/levels.h"

namespace memdiag::ceiling {

constexpr uint64_t purge_pause_us = 20'000;
constexpr uint64_t caches_pause_us = 1'000'000;
constexpr uint64_t end_pause_us = 250'000;
constexpr uint64_t calm_before_return_us = 10'000'000;
constexpr uint64_t return_pause_us = 1'000'000;
/** A step parks no more, so that waiting threads look often. */
constexpr uint64_t most_parked_at_once = 4 << 20;
/** Unused pages of so much are worth a purge. */
constexpr uint64_t worth_purging_bytes = 256 << 10;

/** The figures of a round. */
struct Situation {
  Level level;
  int64_t left_bytes;
  Marks marks;
  /** Unused pages of the pools. */
  uint64_t unused_bytes;
  /** Frames that the buffer pool can still give. */
  uint64_t parkable_bytes;
  uint64_t parked_bytes;
  /** Caches may be shrunk: the server neither starts nor shuts down. */
  bool caches;
};

enum class Step : uint8_t {
  none,
  purge,
  park,
  shrink_caches,
  end_statement,
  give_back_frames
};

struct Next {
  Step step;
  uint64_t bytes;
};

/** The giver's memory between two rounds. */
class Giving {
 public:
  Next next(const Situation &situation, uint64_t now_us);
  /** A park found less than it was asked for: no frame to park for now. */
  void note_parked(uint64_t asked_bytes, uint64_t parked_bytes,
                   uint64_t now_us);
  /** A statement was looked for, to tell it to end. */
  void note_ended(uint64_t now_us) { m_ended_us = now_us; }

 private:
  Next next_return(const Situation &situation, uint64_t now_us);

  std::optional<uint64_t> m_purged_us;
  std::optional<uint64_t> m_no_frames_us;
  std::optional<uint64_t> m_caches_us;
  std::optional<uint64_t> m_ended_us;
  std::optional<uint64_t> m_calm_since_us;
  std::optional<uint64_t> m_returned_us;
};

/** A statement that runs. */
struct Candidate {
  int64_t grown_bytes;
  /** Never one of DDL, COMMIT, ROLLBACK or an exempt session. */
  bool may_end;
  /** It was told to end. */
  bool ends;
};

/** Statements that grew less free nothing worth an error. */
constexpr int64_t worth_ending_bytes = 1 << 20;

/** @param most  the best so far; nullptr: none
@return true: the candidate may end, and grew more than that one */
bool ends_rather(const Candidate &candidate, const Candidate *most);

/** Digests whose last statement was small. Two digests may share a mark, and
then either sets it. Threads: any. */
class Small_digests {
 public:
  static constexpr int64_t small_bytes = 256 << 10;

  /** @param hash  of a digest; 0: there is none, and nothing is known of it */
  bool is_small(uint64_t hash) const;
  void note(uint64_t hash, int64_t peak_bytes);

 private:
  std::array<std::atomic<bool>, 4096> m_small{};
};

/** What a statement promises when it begins: a quarter of the average peak of
statements, 1 to 16 MB. A digest that is known to be small promises nothing. */
int64_t promise_of_beginner(int64_t average_peak_bytes);
/** The average after a statement that grew by so much at most. */
int64_t next_average(int64_t average_bytes, int64_t peak_bytes);

}  // namespace memdiag::ceiling

#endif  // MEMDIAG_CEILING_GIVING_H
