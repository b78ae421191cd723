/*
  The giver's policy: which step is next, when memory comes back to the buffer
  pool, and which statement ends.

  Steps go in the order of their cost. The giver gives back until a quarter more
  than the mark of plenty is left, so that it does not begin anew at once:
  1. Purge the pools' unused pages.
  2. Park frames of the buffer pool, down to its floor.
  3. Write full-text caches and close unused tables. Statements that begin spill
     to disk what they can, until there is plenty again.
  4. Red, and nothing else is left: one statement ends (Choice).
     While some statement goes on, its end may bring room: then four seconds
  pass first, unless the reserve is nearly used up. While what is left falls
  nevertheless, the next one ends at once.

  Frames come back when more than twice the plenty was left for ten seconds, and
  the free ones are less than three quarters of the credit (below). They come
  back at once when the pool needs them for other than pages: InnoDB counts
  parked frames as occupied, and would refuse row locks.

  Free frames are the buffer pool's credit. It fills them without asking, faster
  than a giver that is starved of the CPU can act. So no more of them lie there
  than half of the room above the plenty; the rest is parked, and comes back as
  the pool uses its credit.

  Pure functions; nothing is read and nothing done here.
  Units: bytes; microseconds of a clock that does not go back.
*/

#ifndef MEMDIAG_CEILING_GIVING_H
#define MEMDIAG_CEILING_GIVING_H

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>

#include "mysys/memdiag/ceiling/going_on.h"
#include "mysys/memdiag/ceiling/levels.h"
#include "mysys/memdiag/ceiling/sensor.h"
#include "plugin/memdiag/base/reading.h"

namespace memdiag::ceiling {

constexpr uint64_t purge_pause_us = 5'000;
constexpr uint64_t caches_pause_us = 1'000'000;
/** After less than worth_shrinking_bytes: to close tables that are opened again
a second later helps no statement. */
constexpr uint64_t long_caches_pause_us = 10'000'000;
constexpr uint64_t worth_shrinking_bytes = 1 << 20;
constexpr uint64_t end_pause_us = 250'000;
/** Every statement waits for memory: no end of one can bring any. */
constexpr uint64_t stuck_pause_us = 20'000;
/** Less than longest_ask_us: the others wait meanwhile. */
constexpr uint64_t hope_us = 4'000'000;
constexpr uint64_t calm_before_return_us = 10'000'000;
constexpr uint64_t return_pause_us = 1'000'000;
/** A step for threads that wait parks no more, so that they look often. */
constexpr uint64_t most_parked_at_once = 4 << 20;
/** Nobody waits for the frames of the credit. A SET of the target waits for the
round. */
constexpr uint64_t most_of_credit_at_once = 256 << 20;
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
  /** So much of it must come back: the buffer pool is below its floor. */
  uint64_t missing_bytes;
  /** Frames that are on InnoDB's lists of free ones: they are taken without a
  question. 0 where none of them is to be parked. */
  uint64_t free_bytes;
  /** No large statement goes on: each waits for memory. */
  bool stuck;
  /** Caches may be shrunk: the server neither starts nor shuts down. */
  bool caches;
  /** Threads wait for so much. It is not in left_bytes. */
  int64_t asked_bytes{0};
};

enum class Step : uint8_t {
  none,
  purge,
  park,
  shrink_caches,
  end_statement,
  give_back_frames,
  give_back_missing
};

struct Next {
  Step step;
  uint64_t bytes;
  /** The step moves free frames. It takes no page from the buffer pool. */
  bool of_credit{false};
};

/** The giver's memory between two rounds. */
class Giving {
 public:
  Next next(const Situation &situation, uint64_t now_us);
  /** A park found less than it was asked for: no frame to park for now. */
  void note_parked(const Next &next, uint64_t parked_bytes, uint64_t now_us);
  void note_given_back(const Next &next, uint64_t given_bytes);
  void note_shrunk(uint64_t bytes) {
    m_caches_pause_us =
        bytes < worth_shrinking_bytes ? long_caches_pause_us : caches_pause_us;
  }
  /** After next(): all wait, and some time has not brought room. */
  bool all_kept(const Situation &situation, uint64_t now_us) const;
  /** A statement was looked for, to tell it to end. */
  void note_ended(uint64_t now_us) { m_ended_us = now_us; }
  /** After next(): pages and frames are used up. */
  bool spills() const { return m_spills; }

 private:
  Next next_return(const Situation &situation, uint64_t now_us);
  Next next_credit(const Situation &situation);
  bool must_end(const Situation &situation, uint64_t now_us) const;

  std::optional<uint64_t> m_purged_us;
  std::optional<uint64_t> m_no_frames_us;
  std::optional<uint64_t> m_caches_us;
  uint64_t m_caches_pause_us{caches_pause_us};
  std::optional<uint64_t> m_ended_us;
  int64_t m_left_when_ended{0};
  std::optional<uint64_t> m_calm_since_us;
  std::optional<uint64_t> m_returned_us;
  std::optional<uint64_t> m_red_since_us;
  bool m_spills{false};
  /** Parked of the credit. */
  int64_t m_lent_bytes{0};
};

/** A statement that runs. */
struct Candidate {
  /** With what it waits for. */
  int64_t grown_bytes;
  /** Statements are numbered as they begin. */
  uint64_t number;
  /** Never one of DDL, COMMIT, ROLLBACK or an exempt session, nor one that
  commits: it ends by itself. */
  bool may_end;
  /** It was told to end. */
  bool ends;
  /** Its session may keep what it takes. */
  bool keeps{false};
  /** It waits in malloc(), and its end brings nothing before it has the block.
   */
  bool ends_late{false};
};

/** Statements that grew less free nothing worth an error. */
constexpr int64_t worth_ending_bytes = 1 << 20;
/** But those that may keep it end where all wait and none grew more: sessions
keep what is missing, and one statement after the other would take the rest. */
constexpr int64_t least_ending_bytes = 64 << 10;

/** Finds the statement that ends: the one that grew most. Of those that grew
half as much or more, the last that began ends instead. Otherwise of many equal
statements the one that is nearest to its end would always be the victim, and
none would ever have an answer. One that ends late is told so only if there is
no other. See every candidate twice, in the same order. */
class Choice {
 public:
  /** @param all_kept  see least_ending_bytes */
  explicit Choice(bool all_kept) : m_all_kept(all_kept) {}
  void see_first(const Candidate &candidate);
  /** @return true: it is the best so far */
  bool see_again(const Candidate &candidate);

 private:
  bool may_be_chosen(const Candidate &candidate) const;

  const bool m_all_kept;
  /** The most of any that does not end late; of any at all if each does. */
  int64_t m_most_bytes{0};
  bool m_all_end_late{true};
  uint64_t m_last{0};
};

/** The most that statements of a digest took, as an average that forgets. A
digest has one of four places, which it shares with others: a load whose
statements have a digest each fills all of them. A part of the hash in the place
tells most of these from another. Where all four are taken, a large digest loses
its place where the other three are of large ones, too, and one time in 1,024
beside a small one (most_spared). Otherwise any account could make the ceiling
forget them, by texts that differ. Threads: any. */
class Peaks {
 public:
  /** @param hash  of a digest; 0: there is none, and nothing is known of it */
  std::optional<int64_t> peak_bytes(uint64_t hash) const {
    if (hash == 0) return std::nullopt;
    const size_t first = first_place(hash);
    for (size_t i = first; i < first + places; ++i) {
      const uint32_t word = m_words[i].load(std::memory_order_relaxed);
      if (is_of(word, hash)) return int64_t{(word & kb_mask) - 1} << 10;
    }
    return std::nullopt;
  }
  /** Statements of the digest were seen, and took less than small_bytes. */
  bool is_small(uint64_t hash) const {
    return peak_bytes(hash).value_or(small_bytes) < small_bytes;
  }
  /** The same, for one that begins now.
  @param spills  it would; what its digest takes so is remembered apart */
  std::optional<int64_t> expected_bytes(uint64_t hash, bool spills) const {
    if (spills && !is_small(hash))
      if (const auto bytes = peak_bytes(spilled(hash))) return bytes;
    return peak_bytes(hash);
  }
  /** @param has_spilled  a large one would take more if it did not */
  void note(uint64_t hash, int64_t peak_bytes, bool has_spilled);
  /** A running statement has taken so much already.
  @param unknown_bytes  the gate expects so much of an unknown digest. A
                        statement that took less may still take more, and
                        teaches nothing */
  void note_at_least(uint64_t hash, int64_t bytes, int64_t unknown_bytes,
                     bool spills) {
    if (spills) hash = spilled(hash);
    if (hash != 0 && peak_bytes(hash).value_or(unknown_bytes) < bytes)
      set(hash, bytes);
  }

 private:
  static constexpr size_t places = 4;
  /** A small digest spares a large one so many times less one, and then takes
  its place. A large digest that does not come again would keep its place for
  ever otherwise, and small ones would displace each other. */
  static constexpr uint32_t most_spared = 1024;
  static constexpr unsigned kb_bits = 22;
  static constexpr uint32_t kb_mask = (1U << kb_bits) - 1;

  /** Another place and another tag. */
  static constexpr uint64_t spilled(uint64_t hash) {
    return hash == 0 ? 0 : hash ^ UINT64_C(0x9e3779b97f4a7c15);
  }
  static constexpr uint32_t tag(uint64_t hash) {
    return static_cast<uint32_t>(hash >> 32) & ~kb_mask;
  }
  static constexpr bool is_of(uint32_t word, uint64_t hash) {
    return (word & kb_mask) != 0 && (word & ~kb_mask) == tag(hash);
  }
  size_t first_place(uint64_t hash) const {
    return hash % (m_words.size() / places) * places;
  }
  void set(uint64_t hash, int64_t bytes);
  /** Others have all of its places. @return the place that it takes over */
  size_t place_to_give(uint64_t hash);

  std::atomic<uint32_t> m_spared{0};
  /** The tag, and a number of KB and one more: 0 is unknown. */
  std::array<std::atomic<uint32_t>, 65536> m_words{};
};

/** A beginner waits while less would be left than Marks::plenty_bytes, and
after this time while less would be left than Marks::reserve_bytes. */
constexpr uint64_t patient_us = 1'000'000;
/** After this time, the first one begins at the pace of unknown ones while the
reserve would be left, whatever others are expected to take. */
constexpr uint64_t long_patient_us = 5'000'000;

/** The bytes that a statement is expected to take.
- By its digest's last statements, but four times the plenty at most: a guess
  that is too high must not keep it from running.
- If nothing is known of its digest, the plenty: few such statements begin at
  once.
- If it has no digest (performance_schema=OFF), a quarter of the average peak of
  all statements, 16 MB at most.
@param peak_bytes  of its digest
@return 0: it is small (small_bytes), is not waited for, and waits only where
little of the reserve is left (Small_pace) */
int64_t expected_of_beginner(bool has_digest, std::optional<int64_t> peak_bytes,
                             int64_t average_peak_bytes, int64_t plenty_bytes);

/** A statement of an unknown digest that reads no table is taken for a small
one. For some time after one of them grew large, it is not: a crowd of them
would have begun before the first one shows what they take. Threads: any. */
class Guess {
 public:
  static constexpr uint64_t doubt_us = 5'000'000;
  void was_wrong(uint64_t now_us) {
    m_wrong_us.store(now_us, std::memory_order_relaxed);
  }
  bool is_small(uint64_t now_us) const {
    const uint64_t wrong_us = m_wrong_us.load(std::memory_order_relaxed);
    // It may have been wrong after the caller's look at the clock.
    return wrong_us == 0 || now_us >= wrong_us + doubt_us;
  }

 private:
  /** 0: never. */
  std::atomic<uint64_t> m_wrong_us{0};
};

/** Statements of unknown digests begin at this pace although the room is less
than what is expected of them. Most are small, and must not wait behind large
ones. Of a crowd of large ones, few begin before the first one shows what they
take. */
class Pace {
 public:
  struct Beginner {
    int64_t left_bytes;
    int64_t left_for_beginners_bytes;
    int64_t reserve_bytes;
    uint64_t waited_us;
  };
  /** @return true: it begins, and the next one pauses */
  bool may_begin(const Beginner &beginner, uint64_t now_us);

 private:
  std::optional<uint64_t> m_began_us;
};

/** The room of statements that may keep what they take, as a variable or a
prepared statement. */
struct Room_to_keep {
  int64_t left_bytes;
  int64_t reserve_bytes;
  /** See Marks. */
  int64_t beyond_bytes{reserve_bytes / 2};
  /** Taken by statements that run, and given back when they end. */
  int64_t running_bytes{0};

  bool is_beyond() const { return left_bytes < -beyond_bytes; }
  /** Sessions keep what is missing, or more is missing than running statements
  may take together. None begins: it would be told to end, and its session would
  keep what it took until then. */
  bool is_used_up() const {
    return left_bytes + running_bytes < -beyond_bytes ||
           left_bytes < -beyond_bytes - reserve_bytes / 4;
  }
};

/** Small statements begin at once while a quarter of the reserve is left; those
that nothing is known of, one after the other. Behind it, they begin after a
moment. But those that may keep what they take begin one after the other, the
one that has waited for longest first. Beyond Marks::beyond_bytes, those that
are known to be small begin at the pace of Going_on, and none does once the room
is used up. A statement of a session that others wait for begins at once while
this last rule knows no pace. */
class Small_pace {
 public:
  struct Beginner {
    int64_t left_bytes;
    int64_t reserve_bytes;
    int64_t beyond_bytes{reserve_bytes / 2};
    /** See Room_to_keep. */
    int64_t running_bytes{0};
    /** 0: nothing is changed, and one of which nothing is known waits. */
    uint64_t waited_us;
    /** False: it reads no table, and nothing else is known of it. */
    bool known;
    /** The session may keep the statement's memory when the statement has
    ended. */
    bool may_keep;
    /** Others may wait for what its session holds. */
    bool holds;
  };
  /** @return true: it begins, and the next one pauses */
  bool may_begin(const Beginner &beginner, uint64_t now_us);

 private:
  Going_on m_keeping{20'000};
  Going_on m_beyond;
  std::optional<uint64_t> m_unknown_us;
};

/** The giver sleeps between its rounds. Rounds that give nothing take the
processor from the statements whose end brings memory. */
class Rest {
 public:
  /** @param look_ms  the kernel has to be read after so long */
  uint64_t next_ms(bool gave, uint64_t look_ms);

 private:
  uint64_t m_idle_ms{1};
};

/** What InnoDB will write of the buffer pool's floor, and has not written; of
that, the plenty at most. */
int64_t missing_of_floor(uint64_t floor_bytes, Reading present_bytes,
                         int64_t plenty_bytes);

/** The floor of the buffer pool is promised until it is in physical memory, but
for what is more than the plenty: InnoDB writes its frames and asks no malloc()
for them, faster than statements can end. A server with little data may never
write the rest. */
class Floor {
 public:
  /** To ask the system for the pages takes a millisecond for each gigabyte.
  @param parked_bytes  frames that were parked may have been written ones
  @return it is time to ask */
  bool is_due(uint64_t floor_bytes, uint64_t parked_bytes,
              uint64_t now_us) const;
  /** @param present_bytes  of the buffer pool, in physical memory
  @param took_us  to ask
  @return so much more is promised now */
  int64_t see(uint64_t floor_bytes, uint64_t parked_bytes,
              Reading present_bytes, int64_t plenty_bytes, uint64_t now_us,
              uint64_t took_us);
  /** Nothing is promised any more. @return so much was */
  int64_t forget();

 private:
  int64_t m_promised_bytes{0};
  uint64_t m_floor_bytes{0};
  uint64_t m_parked_bytes{0};
  uint64_t m_next_us{0};
};

/** What the server keeps when all went back that can.
@param can_go  parts of what is kept
@return empty: a part is not known, or they are more than what is kept */
Reading needed_at_rest(int64_t kept_bytes,
                       std::initializer_list<Reading> can_go);
/** The memory that goes back when frames of the buffer pool are parked. A frame
that was never written has none.
@param frames_bytes  frames that can be parked
@param present_bytes  of the whole buffer pool, in physical memory
@param staying_bytes  the part of it that stays */
Reading frames_give(uint64_t frames_bytes, Reading present_bytes,
                    uint64_t staying_bytes);
/** The average after a statement that grew by so much at most. */
int64_t next_average(int64_t average_bytes, int64_t peak_bytes);

}  // namespace memdiag::ceiling

#endif  // MEMDIAG_CEILING_GIVING_H
