/*
  The log of the ceiling, and its texts for clients.

  Threads: the caller's mutex protects a Log. Units: bytes; microseconds.
*/

#ifndef MEMDIAG_CEILING_LOG_H
#define MEMDIAG_CEILING_LOG_H

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mysys/memdiag/accounting/digests.h"
#include "mysys/memdiag/ceiling/levels.h"

namespace memdiag::ceiling {

enum class Action : uint8_t {
  purge,
  park,
  give_back,
  caches,
  wait,
  end,
  refuse,
  went_on,
  spill
};
inline constexpr const char *action_names[] = {"purge",  "park",    "return",
                                               "caches", "wait",    "end",
                                               "refuse", "went_on", "spill"};

struct Done {
  /** Since the epoch. */
  uint64_t time_us;
  Action action;
  /** False: memdiag_memory_target is WATCH. */
  bool acted;
  /** 0: the giver. */
  uint64_t processlist_id;
  sessions::Digest digest;
  uint64_t bytes;
  uint64_t duration_us;
  int64_t left_before_bytes;
  int64_t left_after_bytes;
  Level level;
};

struct Row {
  uint64_t time_us;
  const char *action;
  bool acted;
  std::optional<uint64_t> processlist_id;
  std::optional<std::string> digest;
  uint64_t bytes;
  uint64_t duration_us;
  int64_t left_before_bytes;
  int64_t left_after_bytes;
  const char *level;
};

/** The last actions. Ends and refusals of statements, and waits that ended
without room, have rows of their own: the others are many. */
class Log {
 public:
  static constexpr size_t max_lost = 256;
  static constexpr size_t max_others = 768;

  /** Steps of one kind that follow each other within a second become one. */
  void add(const Done &done);
  /** Oldest first. @throws std::bad_alloc */
  std::vector<Row> rows() const;

 private:
  struct Numbered {
    uint64_t number;
    Done done;
  };
  template <size_t size>
  struct Ring {
    std::array<Numbered, size> places{};
    uint64_t count{0};

    void add(uint64_t number, const Done &done) {
      places[count++ % size] = {number, done};
    }
    /** The oldest first. */
    template <typename Visit>
    void each(Visit visit) const {
      for (uint64_t i = count - std::min<uint64_t>(count, size); i < count; ++i)
        visit(places[i % size]);
    }
  };

  Ring<max_lost> m_lost;
  Ring<max_others> m_others;
  uint64_t m_count{0};
};

/** What a statement gets that was told to end.
@param limit_bytes  the target
@param grown_bytes  it had grown by so much, or asked for it
@param statements   so many ran
@param with_transaction  its transaction is rolled back
@throws std::bad_alloc */
std::string text_of_end(uint64_t limit_bytes, uint64_t grown_bytes,
                        size_t statements, bool with_transaction);
enum class Refused : uint8_t {
  statement,
  /** To keep a large value in a variable or a parameter. */
  value,
  /** A block that is larger than what can be given back. */
  block,
  /** A run of an event, while an earlier one waits. */
  run_of_event
};
/** The text of the error for what waited in vain. @throws std::bad_alloc */
std::string text_of_refusal(uint64_t waited_us, Refused what);

}  // namespace memdiag::ceiling

#endif  // MEMDIAG_CEILING_LOG_H
